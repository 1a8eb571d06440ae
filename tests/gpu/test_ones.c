/*
 * test_ones [SHAPES [SECONDS]]: A = B = 1 give D = k exactly, on random shapes and layouts: m and n
 * log-uniform in 1..4096, k in 1..60000. Ends after SECONDS, but not before a tenth of the shapes.
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

/* Fills device memory with one value. */
static void fill(const tg_context *context, void *device, int64_t count, float value)
{
    const int64_t part = count < (1 << 22) ? count : 1 << 22;
    float *host = malloc((size_t)part * sizeof *host);
    assert_non_null(host);
    for (int64_t i = 0; i < part; i++)
        host[i] = value;
    for (int64_t i = 0; i < count; i += part) {
        int64_t rest = count - i < part ? count - i : part;
        assert_int_equal(
            tg_copy_to_device(context, (float *)device + i, host, rest * (int64_t)sizeof *host), 0);
    }
    free(host);
}

static void test_ones(void **state)
{
    (void)state;
    const int64_t d_bytes = (int64_t)SIDE_MAX * SIDE_MAX * (int64_t)sizeof(float);
    tg_context *context = gpu_open_context();
    void *ones = NULL, *d = NULL;
    float *host = malloc((size_t)d_bytes);
    uint64_t random = SEED;
    assert_non_null(host);
    assert_int_equal(tg_allocate_memory(context, (int64_t)SIDE_MAX * DEPTH_MAX * 4, &ones), 0);
    assert_int_equal(tg_allocate_memory(context, d_bytes, &d), 0);
    fill(context, ones, (int64_t)SIDE_MAX * DEPTH_MAX, 1.0F);
    fill(context, d, (int64_t)SIDE_MAX * SIDE_MAX, NAN);
    double start_s = read_clock_s();
    int done = 0;
    for (; done < shape_count; done++) {
        if (done >= shape_count / 10 && read_clock_s() - start_s > limit_s)
            break;
        int64_t m = draw_log_uniform(SIDE_MAX, &random), n = draw_log_uniform(SIDE_MAX, &random);
        int64_t k = draw_log_uniform(DEPTH_MAX, &random);
        int is_a_turned = (int)(check_next_random(&random) & 1);
        int is_b_turned = (int)(check_next_random(&random) & 1);
        tg_problem problem = tg_make_problem(
            tg_make_matrix(TG_TYPE_FP32, ones, is_a_turned ? k : m, is_a_turned ? m : k),
            tg_make_matrix(TG_TYPE_FP32, ones, is_b_turned ? n : k, is_b_turned ? k : n),
            tg_make_matrix(TG_TYPE_FP32, d, m, n));
        problem.op_a = is_a_turned ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        problem.op_b = is_b_turned ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        if (tg_multiply(context, &problem) != TG_STATUS_OK)
            fail_msg("shape %d, %lldx%lldx%lld: %s", done, (long long)m, (long long)n, (long long)k,
                     tg_get_error_detail());
        assert_int_equal(tg_copy_from_device(context, host, d, m * n * 4), 0);
        for (int64_t i = 0; i < m * n; i++) {
            if (host[i] != (float)k)
                fail_msg("shape %d, %lldx%lldx%lld, layout %c%c: element (%lld, %lld) is %.9g",
                         done, (long long)m, (long long)n, (long long)k, is_a_turned ? 't' : 'n',
                         is_b_turned ? 't' : 'n', (long long)(i / n), (long long)(i % n),
                         (double)host[i]);
            host[i] = NAN;
        }
        assert_int_equal(tg_copy_to_device(context, d, host, m * n * 4), 0);
    }
    printf("%d of %d shapes exact\n", done, shape_count);
    free(host);
    tg_release_memory(context, ones);
    tg_release_memory(context, d);
    tg_destroy_context(context);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        shape_count = atoi(argv[1]);
    if (argc > 2)
        limit_s = atof(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ones)};
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
