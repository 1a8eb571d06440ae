/*
 * test_exact [VALUES [TYPE [SHAPES [SECONDS [LEFT_OUT]]]]] multiplies A and B whose sums FP32 holds
 * exactly. D must be exact, rounded to D's type, on random shapes and layouts: m and n are
 * log-uniform in 1..4096, k in 1..60000. VALUES is ones (default), whose sums are k, or integers,
 * of -7 to 7. TYPE is fp32 by default; tf32, bf16x6, ... mean fp32 in that precision. D is FP32, or
 * one time in two a type that 16-bit and FP8 inputs may have. The test ends after SECONDS, but not
 * before a tenth of the shapes. Before that it runs every kernel on a D of many tiles, except those
 * that take long and those with LEFT_OUT in their names. If SHAPES is 0, as under a sanitizer, each
 * kernel has one problem of fewer rows and values of k.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/check.h"
#include "exact.h"
#include "gpu.h"

#define SIDE_MAX 4096
#define DEPTH_MAX 60000
#define SEED UINT64_C(20240901)
#define NAN_BYTE 0xff                      /* repeated, it is a NaN in all types */
#define WORKSPACE_BYTES ((int64_t)1 << 30) /* has room for slices */
#define D_BYTES_MAX ((size_t)SIDE_MAX * SIDE_MAX * sizeof(double))
#define CANDIDATE_CAPACITY 512
#define CALL_S_MAX 0.005 /* predicted time; slower kernels are left out */
#define SHORT_ROWS 1504

static const char *kind = "fp32";
static tg_type type = TG_TYPE_FP32;
static tg_precision precision = TG_PRECISION_DEFAULT;
static int shape_count = 10000;
static const char *left_out; /* rounds leave out kernels with this in their names; or NULL */
static double limit_s = 120.0;

static double read_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int64_t draw_log_uniform(int64_t most, uint64_t *random)
{
    double share = 0.5 * (check_next_uniform(random) + 1.0);
    int64_t value = (int64_t)exp(share * log((double)most + 1.0));
    return value < 1 ? 1 : value > most ? most : value;
}

/* Fills device memory with the values. */
static void fill_operand(const tg_context *context, void *device, int64_t count)
{
    const int64_t bytes = tg_get_type_bytes(type),
                  most = (1 << 22) / exact_value_count() * exact_value_count();
    const int64_t part = count < most ? count : most;
    char *host = malloc((size_t)(part * bytes));
    assert_non_null(host);
    for (int64_t i = 0; i < part; i++)
        check_set_element(type, host, i, exact_value(i));
    for (int64_t i = 0; i < count; i += part) {
        int64_t rest = count - i < part ? count - i : part;
        assert_int_equal(tg_copy_to_device(context, (char *)device + i * bytes, host, rest * bytes),
                         0);
    }
    free(host);
}

static tg_type draw_d_type(uint64_t *random)
{
    static const tg_type narrow[] = {TG_TYPE_BF16, TG_TYPE_FP16, TG_TYPE_FP8_E4M3,
                                     TG_TYPE_FP8_E5M2};
    const uint64_t draw = check_next_random(random);
    const int count = tg_get_type_bytes(type) == 1 ? 4 : tg_get_type_bytes(type) == 2 ? 2 : 0;
    if (count == 0)
        return type;
    return draw & 1 ? TG_TYPE_FP32 : narrow[(draw >> 1) % (uint64_t)count];
}

static tg_problem draw_problem(void *operand, void *d, uint64_t *random)
{
    int64_t m = draw_log_uniform(SIDE_MAX, random), n = draw_log_uniform(SIDE_MAX, random);
    int64_t k = draw_log_uniform(DEPTH_MAX, random);
    int is_a_transposed = (int)(check_next_random(random) & 1);
    int is_b_transposed = (int)(check_next_random(random) & 1);
    tg_problem problem = tg_make_problem(
        tg_make_matrix(type, operand, is_a_transposed ? k : m, is_a_transposed ? m : k),
        tg_make_matrix(type, operand, is_b_transposed ? n : k, is_b_transposed ? k : n),
        tg_make_matrix(draw_d_type(random), d, m, n));
    problem.op_a = is_a_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    problem.op_b = is_b_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    problem.precision = precision;
    /* An FP8 D soon reaches its largest number: half of the cases are scaled so that it does
     * not. */
    if (tg_get_type_bytes(problem.d.type) == 1 && check_next_random(random) & 1)
        problem.alpha = exp2(-ceil(log2((double)k)));
    return problem;
}

/* Shows, without a GPU, that the wanted value is what three loops give and that an element that is
 * one off is found. */
static void test_oracle(void **state)
{
    (void)state;
    uint64_t random = SEED;
    for (int i = 0; i < 200; i++) {
        double d[12 * 9], want = 0.0;
        tg_problem p = draw_problem(NULL, NULL, &random);
        const int64_t m = 1 + p.d.row_count % 12, n = 1 + p.d.col_count % 9, k = 1 + i;
        p.d = tg_make_matrix(TG_TYPE_FP64, d, m, n);
        p.a = tg_make_matrix(type, NULL, p.op_a ? k : m, p.op_a ? m : k);
        p.b = tg_make_matrix(type, NULL, p.op_b ? n : k, p.op_b ? k : n);
        const int entry = i % 3;
        p.a.batch_stride = m * k;
        p.b.batch_stride = n * k + 1;
        const int64_t a = entry * p.a.batch_stride, b = entry * p.b.batch_stride;
        for (int64_t row = 0; row < m; row++)
            for (int64_t col = 0; col < n; col++) {
                double sum = 0.0;
                for (int64_t s = 0; s < k; s++)
                    sum += exact_value(a + (p.op_a ? s * m + row : row * k + s)) *
                           exact_value(b + (p.op_b ? col * k + s : s * n + col));
                d[row * n + col] = p.alpha * sum;
            }
        const char *host = (const char *)d;
        assert_int_equal(exact_find_wrong(&p, entry, k, host, &want), -1);
        const int64_t wrong = (int64_t)(check_next_random(&random) % (uint64_t)(m * n));
        d[wrong] += 1.0;
        assert_int_equal(exact_find_wrong(&p, entry, k, host, &want), wrong);
        assert_true(want == d[wrong] - 1.0);
    }
}

typedef struct device_memory {
    tg_context *context;
    void *operand, *d;
    char *host; /* a copy of D */
} device_memory;

static void open_memory(device_memory *memory)
{
    const int64_t elem_count = (int64_t)SIDE_MAX * DEPTH_MAX;
    /* Several of these tests share a GPU. */
    const tg_context_options options = {
        .struct_bytes = sizeof options, .device = "cuda", .workspace_limit_bytes = WORKSPACE_BYTES};
    const int64_t operand_bytes = elem_count * tg_get_type_bytes(type);
    memory->host = malloc(D_BYTES_MAX);
    assert_non_null(memory->host);
    assert_int_equal(tg_create_context(&options, &memory->context), 0);
    assert_int_equal(tg_allocate_memory(memory->context, operand_bytes, &memory->operand), 0);
    assert_int_equal(tg_allocate_memory(memory->context, D_BYTES_MAX, &memory->d), 0);
    fill_operand(memory->context, memory->operand, elem_count);
}

static void close_memory(device_memory *memory)
{
    free(memory->host);
    tg_release_memory(memory->context, memory->operand);
    tg_release_memory(memory->context, memory->d);
    tg_destroy_context(memory->context);
}

/* If `kernel` is NULL, the planner chooses. */
static tg_status multiply(const device_memory *memory, const tg_problem *problem,
                          const char *kernel)
{
    if (!kernel)
        return tg_multiply(memory->context, problem);
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                .a = problem->a.data,
                                .b = problem->b.data,
                                .d = problem->d.data};
    tg_plan *plan = NULL;
    tg_status status = tg_create_plan(memory->context, problem, &options, &plan);
    if (!status)
        status = tg_execute_plan(plan, &buffers);
    tg_destroy_plan(plan);
    return status;
}

/* Judges the result in a D that held NaN before. */
static void judge(const device_memory *memory, const tg_problem *problem, const char *kernel)
{
    const int64_t k = problem->op_a ? problem->a.row_count : problem->a.col_count;
    const int64_t bytes = problem->batch_count * problem->d.row_count * problem->d.col_count *
                          tg_get_type_bytes(problem->d.type);
    char text[640], label[720];
    assert_int_equal(tg_format_problem(problem, text, sizeof text), 0);
    snprintf(label, sizeof label, "%s %s", text, kernel ? kernel : "");
    memset(memory->host, NAN_BYTE, (size_t)bytes);
    assert_int_equal(tg_copy_to_device(memory->context, memory->d, memory->host, bytes), 0);
    if (multiply(memory, problem, kernel) != TG_STATUS_OK)
        fail_msg("%s: %s", label, tg_get_error_detail());
    assert_int_equal(tg_copy_from_device(memory->context, memory->host, memory->d, bytes), 0);
    exact_assert(problem, k, memory->host, label);
}

static void test_exact(void **state)
{
    (void)state;
    uint64_t random = SEED;
    device_memory memory;
    open_memory(&memory);
    double start_s = read_clock_s();
    int done = 0;
    for (; done < shape_count; done++) {
        if (done >= shape_count / 10 && read_clock_s() - start_s > limit_s)
            break;
        const tg_problem problem = draw_problem(memory.operand, memory.d, &random);
        judge(&memory, &problem, NULL);
    }
    printf("%s: %d of %d shapes exact\n", kind, done, shape_count);
    close_memory(&memory);
}

/* A problem of this kind gives each block of most kernels several tiles, one after the other. */
typedef struct round_case {
    int64_t m, n, k;
    int batch_count;
    tg_operation op_a, op_b;
    tg_type d_type, d_of_fp8; /* types of D for 16-bit operands, and for FP8 */
} round_case;

/* Returns the case with so few rows that most blocks still have several tiles. */
static round_case shorten(round_case c)
{
    c.m = c.m < SHORT_ROWS ? c.m : SHORT_ROWS;
    c.k = c.k / 4 + 8;
    c.batch_count = 1;
    return c;
}

static tg_problem make_round_problem(const device_memory *memory, const round_case *c)
{
    const int bytes = tg_get_type_bytes(type);
    const int64_t k = c->k;
    const tg_type d_type = bytes == 1 ? c->d_of_fp8 : bytes == 2 ? c->d_type : type;
    const int is_a_transposed = c->op_a == TG_OPERATION_TRANSPOSE;
    const int is_b_transposed = c->op_b == TG_OPERATION_TRANSPOSE;
    tg_problem p = tg_make_problem(tg_make_matrix(type, memory->operand, is_a_transposed ? k : c->m,
                                                  is_a_transposed ? c->m : k),
                                   tg_make_matrix(type, memory->operand, is_b_transposed ? c->n : k,
                                                  is_b_transposed ? k : c->n),
                                   tg_make_matrix(d_type, memory->d, c->m, c->n));
    p.op_a = c->op_a;
    p.op_b = c->op_b;
    p.precision = precision;
    p.batch_count = c->batch_count;
    p.a.batch_stride = c->m * k;
    p.b.batch_stride = c->n * k;
    p.d.batch_stride = c->m * c->n;
    return p;
}

/* Two of the cases: an odd pitch of D, and both operands along k. */
enum { SHORT_ODD = 1, SHORT_ALONG_K = 4 };

/* Returns 1 for families whose blocks form one tile each. */
static int has_one_tile(const char *kernel)
{
    return strstr(kernel, "_small_") != NULL || strstr(kernel, "_warp") != NULL;
}

/* Runs every kernel on problems with all layouts of operands and a batch. D has rows of whole units
 * of 16 bytes or not, or few columns of tiles. k is short, or is so long that some kernels cut
 * the last tiles. */
static void test_rounds(void **state)
{
    (void)state;
    const tg_operation none = TG_OPERATION_NONE, transposed = TG_OPERATION_TRANSPOSE;
    const round_case cases[] = {
        {3000, 4096, 330, 1, none, none, TG_TYPE_BF16, TG_TYPE_FP8_E4M3},
        {3000, 4093, 330, 1, none, none, TG_TYPE_BF16, TG_TYPE_FP8_E5M2},
        {2000, 4096, 333, 2, none, none, TG_TYPE_BF16, TG_TYPE_BF16},
        {9001, 511, 1001, 1, transposed, none, TG_TYPE_BF16, TG_TYPE_BF16},
        {1504, 4096, 336, 2, none, transposed, TG_TYPE_FP16, TG_TYPE_BF16},
        {1504, 4096, 232, 2, transposed, none, TG_TYPE_BF16, TG_TYPE_FP8_E4M3},
        {1504, 4072, 100, 2, none, transposed, TG_TYPE_BF16, TG_TYPE_FP8_E5M2},
        {1504, 4096, 3008, 1, transposed, transposed, TG_TYPE_FP16, TG_TYPE_FP16},
        {8192, 512, 336, 2, none, none, TG_TYPE_BF16, TG_TYPE_FP8_E4M3},
        {9000, 512, 3008, 1, none, transposed, TG_TYPE_BF16, TG_TYPE_BF16},
    };
    static tg_candidate candidates[CANDIDATE_CAPACITY];
    device_memory memory;
    int all_count = 0;
    open_memory(&memory);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int is_short = shape_count == 0;
        const round_case c = is_short ? shorten(cases[i]) : cases[i];
        const tg_problem p = make_round_problem(&memory, &c);
        int count = 0, run_count = 0;
        if (is_short && i != SHORT_ODD && i != SHORT_ALONG_K)
            continue;
        assert_int_equal(
            tg_list_candidates(memory.context, &p, candidates, CANDIDATE_CAPACITY, &count), 0);
        assert_true(count <= CANDIDATE_CAPACITY);
        for (int j = 0; j < count; j++) {
            if (!candidates[j].is_legal || candidates[j].predicted_s > CALL_S_MAX ||
                (left_out && strstr(candidates[j].kernel, left_out)))
                continue;
            if (is_short && (j % 2 == (i == SHORT_ODD) || has_one_tile(candidates[j].kernel)))
                continue;
            judge(&memory, &p, candidates[j].kernel);
            run_count++;
        }
        assert_true(run_count > 0);
        all_count += run_count;
    }
    printf("%s: %d products exact with tiles one behind the other\n", kind, all_count);
    close_memory(&memory);
}

/* Chooses the type. Returns 0 if `name` is no type. */
static int choose_kind(const char *name)
{
    kind = name;
    for (int i = TG_PRECISION_IEEE_FP32; tg_get_precision_name((tg_precision)i); i++) {
        if (strcmp(name, tg_get_precision_name((tg_precision)i)) == 0) {
            precision = (tg_precision)i;
            type = precision == TG_PRECISION_IEEE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
            return 1;
        }
    }
    for (int i = 0; tg_get_type_name((tg_type)i); i++) {
        if (strcmp(name, tg_get_type_name((tg_type)i)) == 0) {
            type = (tg_type)i;
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (!exact_choose_values(argc > 1 ? argv[1] : "ones") || (argc > 2 && !choose_kind(argv[2]))) {
        fprintf(stderr,
                "usage: %s [ones|integers [TYPE|PRECISION [SHAPES [SECONDS [LEFT_OUT]]]]]\n",
                argv[0]);
        return 2;
    }
    if (argc > 3)
        shape_count = atoi(argv[3]);
    if (argc > 4)
        limit_s = atof(argv[4]);
    if (argc > 5)
        left_out = argv[5];
    const struct CMUnitTest oracle[] = {cmocka_unit_test(test_oracle)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds), cmocka_unit_test(test_exact)};
    if (cmocka_run_group_tests(oracle, NULL, NULL) != 0)
        return 1;
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
