/*
 * test_ones [TYPE [SHAPES [SECONDS]]]: A = B = 1 of the type (default fp32; tf32, bf16x6, ...: fp32
 * in that precision) give D = k exactly, rounded to D's type, on random shapes and layouts: m and n
 * log-uniform in 1..4096, k in 1..60000. D is FP32, or one time in two what 16-bit and FP8 inputs
 * may have. Ends after SECONDS, but not before a tenth of the shapes.
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
#include "gpu.h"

#define SIDE_MAX 4096
#define DEPTH_MAX 60000
#define SEED UINT64_C(20240901)
#define NAN_BYTE 0xff /* repeated it is a NaN in all types */

static const char *kind = "fp32";
static tg_type type = TG_TYPE_FP32;
static tg_precision precision = TG_PRECISION_DEFAULT;
static int shape_count = 10000;
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

/* Fills device memory with ones of the type. */
static void fill_ones(const tg_context *context, void *device, int64_t count)
{
    const int64_t part = count < (1 << 22) ? count : 1 << 22, bytes = tg_get_type_bytes(type);
    char *host = malloc((size_t)(part * bytes));
    assert_non_null(host);
    for (int64_t i = 0; i < part; i++)
        check_set_element(type, host, i, 1.0);
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

static tg_problem draw_problem(void *ones, void *d, uint64_t *random)
{
    int64_t m = draw_log_uniform(SIDE_MAX, random), n = draw_log_uniform(SIDE_MAX, random);
    int64_t k = draw_log_uniform(DEPTH_MAX, random);
    int is_a_turned = (int)(check_next_random(random) & 1);
    int is_b_turned = (int)(check_next_random(random) & 1);
    tg_problem problem =
        tg_make_problem(tg_make_matrix(type, ones, is_a_turned ? k : m, is_a_turned ? m : k),
                        tg_make_matrix(type, ones, is_b_turned ? n : k, is_b_turned ? k : n),
                        tg_make_matrix(draw_d_type(random), d, m, n));
    problem.op_a = is_a_turned ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    problem.op_b = is_b_turned ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    problem.precision = precision;
    return problem;
}

/* Fails at the first element of `host`, a copy of D, that is not k. */
static void assert_exact(const tg_problem *problem, int64_t k, const char *host, const char *text)
{
    const int64_t n = problem->d.col_count, bytes = tg_get_type_bytes(problem->d.type);
    uint64_t want; /* room for an element of any type */
    check_set_element(problem->d.type, &want, 0, (double)k);
    for (int64_t i = 0; i < problem->d.row_count * n; i++) {
        if (memcmp(host + i * bytes, &want, (size_t)bytes) != 0)
            fail_msg("%s: element (%lld, %lld) is %.9g", text, (long long)(i / n),
                     (long long)(i % n), check_get_element(problem->d.type, host, i));
    }
}

static void test_ones(void **state)
{
    (void)state;
    const int64_t ones_count = (int64_t)SIDE_MAX * DEPTH_MAX;
    const int64_t d_bytes = (int64_t)SIDE_MAX * SIDE_MAX * (int64_t)sizeof(double);
    tg_context *context = gpu_open_context();
    void *ones = NULL, *d = NULL;
    char *host = malloc((size_t)d_bytes);
    uint64_t random = SEED;
    assert_non_null(host);
    assert_int_equal(tg_allocate_memory(context, ones_count * tg_get_type_bytes(type), &ones), 0);
    assert_int_equal(tg_allocate_memory(context, d_bytes, &d), 0);
    fill_ones(context, ones, ones_count);
    double start_s = read_clock_s();
    int done = 0;
    for (; done < shape_count; done++) {
        if (done >= shape_count / 10 && read_clock_s() - start_s > limit_s)
            break;
        char text[640];
        tg_problem problem = draw_problem(ones, d, &random);
        int64_t k = problem.op_a ? problem.a.row_count : problem.a.col_count;
        int64_t bytes =
            problem.d.row_count * problem.d.col_count * tg_get_type_bytes(problem.d.type);
        assert_int_equal(tg_format_problem(&problem, text, sizeof text), 0);
        memset(host, NAN_BYTE, (size_t)bytes);
        assert_int_equal(tg_copy_to_device(context, d, host, bytes), 0);
        if (tg_multiply(context, &problem) != TG_STATUS_OK)
            fail_msg("shape %d, %s: %s", done, text, tg_get_error_detail());
        assert_int_equal(tg_copy_from_device(context, host, d, bytes), 0);
        assert_exact(&problem, k, host, text);
    }
    printf("%s: %d of %d shapes exact\n", kind, done, shape_count);
    free(host);
    tg_release_memory(context, ones);
    tg_release_memory(context, d);
    tg_destroy_context(context);
}

/* Returns 0 where `name` is no type. */
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
    if (argc > 1 && !choose_kind(argv[1])) {
        fprintf(stderr, "usage: %s [TYPE|PRECISION [SHAPES [SECONDS]]]\n", argv[0]);
        return 2;
    }
    if (argc > 2)
        shape_count = atoi(argv[2]);
    if (argc > 3)
        limit_s = atof(argv[3]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ones)};
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
