/*
 * Draws random arguments; see draw.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t state;

void draw_start(uint64_t seed)
{
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static uint64_t draw_bits(void)
{
    uint64_t bits = state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

int64_t draw(int64_t count)
{
    return (int64_t)(draw_bits() % (uint64_t)count);
}

int draw_chance(int count)
{
    return draw(count) == 0;
}

int64_t draw_int64(void)
{
    const uint64_t power = UINT64_C(1) << draw(64);
    switch (draw(4)) {
    case 0:
        return (int64_t)draw_bits();
    case 1:
        return (int64_t)(draw_bits() >> draw(64));
    case 2:
        return (int64_t)(power + (uint64_t)draw(5) - 2);
    default:
        return (int64_t)(0 - power + (uint64_t)draw(5) - 2);
    }
}

int64_t draw_size(void)
{
    const int64_t power = INT64_C(1) << draw(50);
    switch (draw(16)) {
    case 0:
        return draw_chance(4) ? draw_int64() : 0;
    case 1:
    case 2:
    case 3:
        return power + draw(3) - 1;
    case 4:
    case 5:
        return 1 + draw(power);
    case 6:
    case 7:
    case 8:
        return 1 + draw(5000);
    default:
        return 1 + draw(300);
    }
}

double draw_double(void)
{
    static const double values[] = {
        0.0, -0.0,  1.0,    -1.0,    0.5,    3.0,       1e-300, 1e39,
        NAN, 1e-45, 3.5e38, 1.7e308, 5e-324, -INFINITY, 1e-38,  INFINITY,
    };
    return draw_chance(2) ? values[draw(3)] : values[draw(16)];
}

int draw_enum(int count)
{
    return draw_chance(100) ? (int)draw_int64() : (int)draw(count);
}

/* Returns a pointer that nothing reads through. */
static void *draw_pointer(void)
{
    return (void *)(uintptr_t)(draw_chance(2) ? 0 : draw_int64());
}

/* Gives a matrix of rows x cols strides: row-major, column-major, padded, repeated, backward or
 * anything. */
static tg_matrix draw_matrix(tg_type type, int64_t rows, int64_t cols, int is_output)
{
    tg_matrix matrix = tg_make_matrix(type, draw_pointer(), rows, cols);
    const int64_t padding = draw_chance(2) ? 0 : draw(40);
    if (draw_chance(3)) {
        matrix.row_stride = 1;
        matrix.col_stride = rows;
    }
    int64_t *longer =
        matrix.col_stride == 1 && !draw_chance(20) ? &matrix.row_stride : &matrix.col_stride;
    if (*longer <= INT64_MAX - padding)
        *longer += padding;
    if (!is_output && draw_chance(5))
        *longer = draw_chance(2) ? 0 : 1;
    if (!is_output && draw_chance(8))
        matrix.row_stride = matrix.col_stride = 0;
    if (draw_chance(12) && *longer != INT64_MIN)
        *longer = -*longer;
    if (draw_chance(60))
        matrix.row_stride = draw_int64();
    if (draw_chance(60))
        matrix.col_stride = draw_int64();
    if (draw_chance(200))
        matrix.row_count = draw_int64();
    if (draw_chance(200))
        matrix.col_count = draw_int64();
    matrix.batch_stride = 0;
    if (is_output || draw_chance(2)) {
        int64_t width, reach;
        if (!__builtin_add_overflow(cols > 0 ? cols : 1, padding, &width) &&
            !__builtin_mul_overflow(rows > 0 ? rows : 1, width, &reach))
            matrix.batch_stride = reach;
    }
    if (draw_chance(60))
        matrix.batch_stride = draw_int64();
    return matrix;
}

/* Draws types of A, B and D that go together, most often. */
static void draw_types(tg_type types[3])
{
    const int64_t type = draw(6);
    const int is_wide = type <= TG_TYPE_FP64, is_fp8 = type >= TG_TYPE_FP8_E4M3;
    types[0] = (tg_type)type;
    types[1] = is_fp8 ? (tg_type)(TG_TYPE_FP8_E4M3 + draw(2)) : types[0];
    if (is_wide || draw_chance(2))
        types[2] = is_wide ? types[0] : TG_TYPE_FP32;
    else
        types[2] = (tg_type)(TG_TYPE_BF16 + draw(is_fp8 ? 4 : 2));
    if (draw_chance(25))
        types[draw(3)] = (tg_type)draw_enum(6);
}

/* Draws a precision that is one of the type's, most often. */
static tg_precision draw_precision(tg_type type)
{
    static const tg_precision of_fp32[] = {TG_PRECISION_IEEE_FP32, TG_PRECISION_TF32,
                                           TG_PRECISION_BF16X3,    TG_PRECISION_BF16X6,
                                           TG_PRECISION_BF16X9,    TG_PRECISION_FP16X3};
    if (draw_chance(25))
        return (tg_precision)draw_enum(8);
    if (draw_chance(2))
        return TG_PRECISION_DEFAULT;
    if (type == TG_TYPE_FP32)
        return of_fp32[draw(6)];
    return type == TG_TYPE_FP64 ? TG_PRECISION_IEEE_FP64 : TG_PRECISION_IEEE_FP32;
}

/* Draws all that is beside shapes and layouts. Most problems have few of these. */
static void draw_epilogue(tg_problem *p)
{
    p->precision = draw_precision(p->a.type);
    p->is_batch_invariant = draw_chance(8) ? draw_enum(2) : 0;
    p->alpha = draw_chance(3) ? draw_double() : 1.0;
    p->beta = draw_chance(3) ? draw_double() : 0.0;
    p->bias = draw_chance(4) ? (tg_bias)draw_enum(3) : TG_BIAS_NONE;
    p->activation = draw_chance(4) ? (tg_activation)draw_enum(5) : TG_ACTIVATION_NONE;
    if (p->a.type >= TG_TYPE_FP8_E4M3 ? draw_chance(2) : draw_chance(50)) {
        p->a_scale = (tg_scale)draw_enum(3);
        p->b_scale = (tg_scale)draw_enum(3);
    }
    if (p->d.type >= TG_TYPE_FP8_E4M3 ? draw_chance(2) : draw_chance(50))
        p->d_scale = (tg_scale)draw_enum(2);
}

/* Draws a problem of m x n x k with a batch. */
static void draw_of_size(int64_t m, int64_t n, int64_t k, int64_t batch_count, tg_problem *p)
{
    tg_type types[3];
    draw_types(types);
    const tg_operation op_a = (tg_operation)draw_enum(2), op_b = (tg_operation)draw_enum(2);
    const int is_a_transposed = op_a == TG_OPERATION_TRANSPOSE;
    const int is_b_transposed = op_b == TG_OPERATION_TRANSPOSE;
    *p = tg_make_problem(draw_matrix(types[0], is_a_transposed ? k : m, is_a_transposed ? m : k, 0),
                         draw_matrix(types[1], is_b_transposed ? n : k, is_b_transposed ? k : n, 0),
                         draw_matrix(types[2], m, n, 1));
    p->op_a = op_a;
    p->op_b = op_b;
    p->batch_count = batch_count;
    if (draw_chance(3))
        p->c = draw_matrix(types[2], m, n, 0);
    draw_epilogue(p);
}

void draw_problem(tg_problem *problem)
{
    int64_t sizes[] = {draw_size(), draw_size(), draw_size(), draw_chance(3) ? draw_size() : 1};
    if (draw_chance(4)) { /* one side is huge, and the others let it be legal */
        for (int i = 0; i < 3; i++)
            sizes[i] = 1 + draw(draw_chance(2) ? 20 : 300);
        sizes[3] = 1;
        sizes[draw(4)] = INT64_C(1) << (20 + draw(28));
    }
    draw_of_size(sizes[0], sizes[1], sizes[2], sizes[3], problem);
    problem->bias_data = draw_pointer();
    problem->a_scale_data = draw_pointer();
    problem->b_scale_data = draw_pointer();
    problem->d_scale_data = draw_pointer();
}

/* Places `count` elements with a reach of strides in memory. Returns 0 if they do not fit. */
static int place_matrix(char *memory, int64_t memory_bytes, int64_t batch_count, tg_matrix *matrix)
{
    const int64_t counts[] = {matrix->row_count, matrix->col_count, batch_count};
    const int64_t strides[] = {matrix->row_stride, matrix->col_stride, matrix->batch_stride};
    const int64_t element_bytes = tg_get_type_bytes(matrix->type);
    int64_t low = 0, high = 1;
    for (int i = 0; i < 3; i++) {
        if (counts[i] < 0 || counts[i] > memory_bytes || strides[i] < -memory_bytes ||
            strides[i] > memory_bytes)
            return 0;
        const int64_t reach = counts[i] > 1 ? (counts[i] - 1) * strides[i] : 0;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    const int64_t room = memory_bytes / (element_bytes ? element_bytes : 1) - (high - low);
    if (room < 1)
        return 0;
    matrix->data = memory + (draw(room) - low) * element_bytes;
    return 1;
}

int draw_problem_in(char *memory, int64_t memory_bytes, tg_problem *p)
{
    const int64_t size = draw_chance(4) ? 90 : 20;
    draw_of_size(draw(size), draw(size), draw_chance(20) ? draw(3000) : draw(size),
                 draw_chance(3) ? draw(4) : 1, p);
    tg_matrix *matrices[] = {&p->a, &p->b, &p->c, &p->d};
    const int64_t part_bytes = memory_bytes / 4;
    for (int i = 0; i < 4; i++) { /* apart from the others, or anywhere */
        const int is_apart = !draw_chance(4);
        if (!place_matrix(is_apart ? memory + i * part_bytes : memory,
                          is_apart ? part_bytes : memory_bytes, p->batch_count, matrices[i]))
            return 0;
    }
    if (draw_chance(4))
        p->c = p->d;
    p->bias_data = draw_chance(20) ? NULL : memory + 8 * draw(256);
    p->a_scale_data = draw_chance(20) ? NULL : (const float *)(memory + 8 * draw(256));
    p->b_scale_data = draw_chance(20) ? NULL : (const float *)(memory + 8 * draw(256));
    p->d_scale_data = draw_chance(20) ? NULL : (const float *)(memory + 8 * draw(256));
    return 1;
}

/* Changes one figure of the chip to any value, or to an end of a range. */
static void change_figure(tg_chip *chip)
{
    int *const ints[] = {&chip->compute_capability, &chip->sm_count,       &chip->fp32_lanes_per_sm,
                         &chip->registers_per_sm,   &chip->threads_per_sm, &chip->blocks_per_sm};
    int64_t *const longs[] = {&chip->shared_bytes_per_sm, &chip->shared_bytes_per_block,
                              &chip->l2_bytes, &chip->memory_bytes};
    double *const reals[] = {&chip->clock_hz, &chip->memory_bytes_per_s, &chip->fp64_flop_per_s,
                             &chip->tf32_flop_per_s, &chip->fp16_flop_per_s};
    static const int int_ends[] = {1,   2,   31,  32,   64,    75,    90,
                                   100, 256, 384, 1024, 65535, 65536, 9999};
    static const double real_ends[] = {0.0, 1e6, 1e12, 1e18, 1e21, 9.99e5, 1.1e12};
    const int64_t kind = draw(3), figure = draw(60);
    const int is_any = draw_chance(3);
    if (kind == 0)
        *ints[figure % 6] = is_any ? (int)draw_int64() : int_ends[draw(14)];
    else if (kind == 1)
        *longs[figure % 4] = is_any ? draw_int64() : INT64_C(1) << draw(41);
    else
        *reals[figure % 5] = is_any ? draw_double() : real_ends[draw(7)];
}

void draw_chip(tg_chip *chip)
{
    tg_get_chip((int)draw(tg_get_chip_count()), chip);
    for (int64_t left = draw_chance(2) ? 0 : 1 + draw(3); left > 0; left--)
        change_figure(chip);
}

void draw_text(char *text, size_t text_bytes)
{
    static const char *const parts[] = {
        "nt",         "tn",         "tt",       "bf16",   "fp16",      "fp64",
        "fp8_e4m3",   "d=fp32",     "d=bf16",   "batch=", "alpha=",    "beta=",
        "bias=col",   "act=relu",   "lda=",     "ldb=",   "ldd=",      "rsa=",
        "csa=",       "bsa=",       "bsd=",     "dcol",   "prec=tf32", "prec=bf16x3",
        "sa=vector",  "sb=tensor",  "rsd=",     "csb=",   "bsb=",      "batch_invariant",
        "b=fp8_e5m2", "d=fp8_e4m3", "sd=tensor"};
    size_t used = (size_t)snprintf(text, text_bytes, "%lldx%lldx%lld", (long long)draw_size(),
                                   (long long)draw_size(), (long long)draw_size());
    for (int64_t left = draw(6); left > 0 && used < text_bytes; left--) {
        const char *part = parts[draw((int64_t)(sizeof parts / sizeof *parts))];
        used += (size_t)snprintf(text + used, text_bytes - used, ":%s", part);
        if (part[strlen(part) - 1] == '=' && used < text_bytes)
            used += (size_t)snprintf(text + used, text_bytes - used, "%lld",
                                     (long long)(draw_chance(4) ? draw_int64() : draw_size()));
    }
    if (draw_chance(10))
        text[draw((int64_t)strlen(text) + 1)] = (char)draw(256);
}
