/*
 * The micro-kernel on AMX tiles forms 32 x 32 sums in four tile registers of 16 x 16. A step takes
 * 32 values of k: two registers of A, 16 rows of pairs each, and two of B, 16 rows of 16 pairs.
 *
 * The including file has included the vectors and defines ISA_NAME, TARGET and the operations on
 * tile registers, whose numbers are literals. Tests define them in C:
 *   TILE_CONFIGURE(config)          the shapes of all registers, from an amx_config
 *   TILE_RELEASE()                  leaves the registers without shapes
 *   TILE_ZERO(tile)
 *   TILE_LOAD(tile, rows, stride)   rows of 64 bytes or less, `stride` bytes apart
 *   TILE_STORE(tile, rows, stride)
 *   TILE_DOT(sums, a, b)            sums += a b, BF16 pairs along k
 *   TILE_FILL(row, numbers, count)  64 aligned bytes of `count` numbers and of zeros
 */
#define ACC_NAME fp32
#define IN_NAME bf16x2
#define TILE_ROWS 32
#define TILE_VECTORS (32 / VECTOR_ELEMS)
#define HAS_BF16_D 1
#define D_AT(d, i) ((void *)((uintptr_t)(d) + (uintptr_t)((i) * (t->is_bf16 ? 2 : 4))))
#ifndef AMX_SHARES_FINISH
#include "cpu/finish_tile_body.h"
#endif

#define SIDE 16     /* rows of a register, and 32-bit elements of its rows */
#define OWN_STEPS 8 /* steps of k ahead that a tile without a next one prefetches its own A */

/* The operand of LDTILECFG. */
typedef struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;

/* Gives all registers their whole size. LDTILECFG takes as long as 16 products or more, so that it
 * comes once a task; a product of fewer rows takes hardly less time. Registers 0 to 3 hold sums:
 * upper left, upper right, lower left, lower right; 4 and 5 hold A, 6 and 7 B. */
static TARGET void TILE(open)(void)
{
    amx_config config = {.palette = 1};
    for (int tile = 0; tile < 8; tile++) {
        config.rows[tile] = SIDE;
        config.row_bytes[tile] = 4 * SIDE;
    }
    TILE_CONFIGURE(config);
}

static TARGET void TILE(close)(void)
{
    TILE_RELEASE();
}

/* A matrix of pairs in registers. A step of k has two: the upper and the lower one of A, the left
 * and the right one of B. Distances count pairs. */
typedef struct amx_operand {
    const uint32_t *pairs;
    int64_t row_bytes;    /* from one row of a register to the next */
    int64_t other;        /* from the first register of a step to the second */
    int64_t step;         /* from step to step */
    int64_t slice;        /* from one slice to the next, see tgi_slices */
    int count;            /* slices */
    const uint32_t *last; /* the last step, in 64 bytes a row; NULL: it follows the others */
    int64_t ahead;        /* from a row to the one that is prefetched; 0: none is */
} amx_operand;

/* Clears the registers of sums: register 0, and those on its right and below it. */
static inline __attribute__((always_inline)) TARGET void TILE(clear_sums)(const int has_lower,
                                                                          const int has_right)
{
    TILE_ZERO(0);
    if (has_right)
        TILE_ZERO(1);
    if (has_lower)
        TILE_ZERO(2);
    if (has_lower && has_right)
        TILE_ZERO(3);
}

/* Writes the registers of sums to rows that are `sums_stride` bytes apart. */
static inline __attribute__((always_inline)) TARGET void
TILE(store_sums)(float *sums, int64_t sums_stride, const int has_lower, const int has_right)
{
    TILE_STORE(0, sums, sums_stride);
    if (has_right)
        TILE_STORE(1, sums + SIDE, sums_stride);
    sums += SIDE * sums_stride / (int64_t)sizeof *sums;
    if (has_lower)
        TILE_STORE(2, sums, sums_stride);
    if (has_lower && has_right)
        TILE_STORE(3, sums + SIDE, sums_stride);
}

/* Writes to `sums`, whose rows are `sums_stride` bytes apart, the products of slices whose numbers
 * add up to at most `most`. In a step the smallest products come first. Registers are read and
 * written whole: a packed A or B has room behind its last row or column. */
static inline __attribute__((always_inline)) TARGET void
TILE(sum_products)(const amx_operand *a, const amx_operand *b, int64_t steps, int most, float *sums,
                   int64_t sums_stride, const int has_lower, const int has_right)
{
    const int64_t b_stride = b->row_bytes;
    const uint32_t *upper = a->pairs, *left = b->pairs;
    int64_t a_stride = a->row_bytes, other = a->other;
    TILE(clear_sums)(has_lower, has_right);
    for (; steps > 0; steps--, upper += a->step, left += b->step) {
        for (int i = 0; a->ahead && i < TILE_ROWS; i++)
            __builtin_prefetch((const char *)(upper + a->ahead) + i * a->row_bytes);
        if (steps == 1 && a->last) {
            upper = a->last;
            a_stride = SIDE * (int64_t)sizeof *upper;
            other = SIDE * SIDE;
        }
        for (int i = a->count - 1; i >= 0; i--) {
            const uint32_t *of_a = upper + i * a->slice;
            TILE_LOAD(4, of_a, a_stride);
            if (has_lower)
                TILE_LOAD(5, of_a + other, a_stride);
            for (int j = most - i < b->count ? most - i : b->count - 1; j >= 0; j--) {
                const uint32_t *of_b = left + j * b->slice;
                TILE_LOAD(6, of_b, b_stride);
                TILE_DOT(0, 4, 6);
                if (has_lower)
                    TILE_DOT(2, 5, 6);
                if (has_right) {
                    TILE_LOAD(7, of_b + b->other, b_stride);
                    TILE_DOT(1, 4, 7);
                }
                if (has_lower && has_right)
                    TILE_DOT(3, 5, 7);
            }
        }
    }
    TILE(store_sums)(sums, sums_stride, has_lower, has_right);
}

/* Multiplies with the registers that `rows` and `cols` need, at most 32 of each. */
static inline __attribute__((always_inline)) TARGET void
TILE(choose_registers)(const amx_operand *a, const amx_operand *b, int64_t steps, int most,
                       float *sums, int64_t sums_stride, int64_t rows, int64_t cols)
{
    if (rows > SIDE && cols > SIDE)
        TILE(sum_products)(a, b, steps, most, sums, sums_stride, 1, 1);
    else if (rows > SIDE)
        TILE(sum_products)(a, b, steps, most, sums, sums_stride, 1, 0);
    else if (cols > SIDE)
        TILE(sum_products)(a, b, steps, most, sums, sums_stride, 0, 1);
    else
        TILE(sum_products)(a, b, steps, most, sums, sums_stride, 0, 0);
}

/* Writes A B of one tile to `sums`, and prefetches A `ahead` elements behind its own. */
static TARGET void TILE(multiply)(const tgi_tile *t, const uint32_t *a, const uint32_t *b,
                                  float *sums, int64_t sums_stride, int64_t ahead)
{
    uint32_t *last = t->k_tail ? t->tail : NULL;
    const int64_t a_row_bytes = t->a_stride * (int64_t)sizeof(uint16_t);
    const amx_operand left = {.pairs = a,
                              .row_bytes = a_row_bytes,
                              .other = SIDE / 2 * t->a_stride,
                              .step = SIDE,
                              .count = 1,
                              .last = last,
                              .ahead = ahead};
    const amx_operand right = {.pairs = b,
                               .row_bytes = t->b_row * (int64_t)sizeof *b,
                               .other = SIDE,
                               .step = SIDE * t->b_row,
                               .count = 1};
    const char *tail = (const char *)(a + t->k - SIDE);
    for (int i = 0; last && i < t->rows; i++)
        TILE_FILL(last + i * SIDE, (const uint16_t *)(tail + i * a_row_bytes), t->k_tail);
    TILE(choose_registers)(&left, &right, t->k / SIDE, 0, sums, sums_stride, t->rows, t->cols);
}

/* Multiplies to local memory and finishes D from there. The sums have a frame of their own, because
 * a caller whose D has room for them keeps other sums on its stack. */
static __attribute__((noinline)) TARGET void
TILE(multiply_and_finish)(const tgi_tile *t, const uint32_t *a, const uint32_t *b, const float *c,
                          float *d, const float *bias, double alpha, double beta, int64_t ahead)
{
    _Alignas(64) float sums[TILE_ROWS * TILE_ROWS];
    TILE(multiply)(t, a, b, sums, TILE_ROWS * (int64_t)sizeof *sums, ahead);
    TILE(finish_tile)(t, d, c, sums, bias, t->rows, alpha, beta);
}

/* Computes all tiles of a call. */
static TARGET void TILE(tile_line)(const tgi_tile *t, const void *a_start, const void *b_start,
                                   const void *c_start, void *d_start, const void *bias_start,
                                   double alpha, double beta)
{
    const uint32_t *a = a_start, *b = b_start;
    const float *c = c_start, *bias = bias_start;
    float *d = d_start;
    const int is_whole = t->rows % SIDE == 0 && t->cols % SIDE == 0;
    for (int64_t left = t->tile_count;;) {
        const int is_own = left == 1 && t->is_last_a && t->a_ahead != 0;
        const int64_t ahead = !is_own                       ? t->a_ahead
                              : t->k < 4 * OWN_STEPS * SIDE ? 0
                                                            : OWN_STEPS * SIDE;
        if (t->is_d_far) {
            for (int i = 0; i < t->rows; i++)
                for (int j = 0; j < t->cols; j += SIDE)
                    __builtin_prefetch(D_AT(d, t->d_ahead + i * t->d_row + j), 0, 2);
            if (beta != 0.0 && c != d)
                TILE(prefetch_c)(t, c, t->rows);
        }
        if (t->has_room || (t->is_plain && !t->is_bf16 && is_whole))
            TILE(multiply)(t, a, b, d, t->d_row * (int64_t)sizeof *d, ahead);
        else
            TILE(multiply_and_finish)(t, a, b, c, d, bias, alpha, beta, ahead);
        if (--left == 0)
            return;
        a += t->a_tile_stride;
        b += t->b_tile_stride;
        c = D_AT(c, t->c_tile_stride);
        d = D_AT(d, t->d_tile_stride);
        bias = D_AT(bias, t->bias_tile_stride);
    }
}

/* Runs as many products as `iterations` x TGI_PEAK_CHAINS vectors of sums take, in four chains. */
static TARGET double TILE(fma_loop)(int64_t iterations)
{
    static const uint32_t zeros[SIDE * SIDE];
    const int64_t vectors_per_dot =
        SIDE * SIDE; /* a vector has 16 sums, to which a pair is added */
    TILE(open)();
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_LOAD(4, zeros, (int64_t)sizeof zeros / SIDE);
    TILE_LOAD(6, zeros, (int64_t)sizeof zeros / SIDE);
    for (int64_t left = iterations * TGI_PEAK_CHAINS / vectors_per_dot; left > 0; left -= 4) {
        TILE_DOT(0, 4, 6);
        TILE_DOT(1, 4, 6);
        TILE_DOT(2, 4, 6);
        TILE_DOT(3, 4, 6);
    }
    float sums[SIDE * SIDE];
    TILE_STORE(0, sums, (int64_t)sizeof sums / SIDE);
    TILE(close)();
    return sums[0];
}

/* One function serves tiles of all rows; A always lies along k. */
#define FUNCTIONS                                                                                  \
    {                                                                                              \
        TILE(tile_line), NULL                                                                      \
    }
#define FUNCTIONS_8                                                                                \
    FUNCTIONS, FUNCTIONS, FUNCTIONS, FUNCTIONS, FUNCTIONS, FUNCTIONS, FUNCTIONS, FUNCTIONS
static tgi_tile_fn *const TILE(tile_functions)[][TGI_A_ORDER_COUNT] = {FUNCTIONS_8, FUNCTIONS_8,
                                                                       FUNCTIONS_8, FUNCTIONS_8};

/* A core multiplies two registers, 256 vectors of sums, in 16 cycles. Loads and the
 * lower clock of AMX halve this rate. */
static const tgi_tile_set TILE(tile_set) = {.rows = TILE_ROWS,
                                            .cols = TILE_ROWS,
                                            .vector_elems = SIDE,
                                            .elem_bytes = sizeof(uint32_t),
                                            .k_per_elem = 2,
                                            .k_multiple = SIDE,
                                            .accum_bytes = sizeof(float),
                                            .has_bf16_d = 1,
                                            .has_fma = 1,
                                            .vectors_per_cycle = 8,
                                            .functions = TILE(tile_functions),
                                            .fma_loop = TILE(fma_loop),
                                            .open = TILE(open),
                                            .close = TILE(close)};

#undef HAS_BF16_D
#undef D_AT
#undef FUNCTIONS
#undef FUNCTIONS_8
