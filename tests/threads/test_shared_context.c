/*
 * Runs 16 threads that share one context and one plan: one-shot calls, plans of their own, errors.
 * The test also serves the thread sanitizer.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"

#define THREAD_COUNT 16
#define ROUND_COUNT 12
#define ALL_FLOPS 1e9

static const int64_t sizes[][3] = {{3, 5, 7},   {33, 40, 20}, {1, 90, 60}, {90, 1, 60},
                                   {16, 70, 9}, {70, 70, 70}, {8, 8, 600}};
#define SIZE_COUNT (int)(sizeof sizes / sizeof *sizes)
#define SHARED_SIZE 5 /* the size of the plan that all threads use */

/* cmocka's asserts work only in the main thread, so a worker writes down what went wrong. */
typedef struct worker {
    tg_context *context; /* NULL: the default one */
    const tg_plan *shared_plan;
    int index;
    char failure[300];
} worker;

static void note_failure(worker *self, const char *what, const char *reason)
{
    if (!self->failure[0])
        snprintf(self->failure, sizeof self->failure, "thread %d, %s: %.200s", self->index, what,
                 reason);
}

static tg_problem make_problem(int size_index, tg_type type)
{
    const int64_t *size = sizes[size_index];
    return tg_make_problem(tg_make_matrix(type, NULL, size[0], size[2]),
                           tg_make_matrix(type, NULL, size[2], size[1]),
                           tg_make_matrix(type, NULL, size[0], size[1]));
}

/* Computes by the plan given, or in one call if it is NULL, and compares. */
static void compute(worker *self, const char *what, const tg_plan *plan, tg_problem problem,
                    uint64_t seed)
{
    check_operands operands;
    check_result result;
    if (!check_make_operands(&problem, seed, &operands)) {
        note_failure(self, what, "no memory");
        return;
    }
    tg_buffers buffers = {.struct_bytes = sizeof buffers,
                          .a = problem.a.data,
                          .b = problem.b.data,
                          .d = problem.d.data};
    tg_status status =
        plan ? tg_execute_plan(plan, &buffers) : tg_multiply(self->context, &problem);
    if (status != TG_STATUS_OK) {
        note_failure(self, what, tg_get_error_detail());
    } else {
        check_compare(&problem, ALL_FLOPS, &result);
        if (!result.is_ok)
            note_failure(self, what, "wrong result");
    }
    check_free_operands(&operands);
}

static void compute_by_own_plan(worker *self, tg_problem problem, uint64_t seed)
{
    tg_plan *plan;
    if (tg_create_plan(self->context, &problem, NULL, &plan) != TG_STATUS_OK) {
        note_failure(self, "planning", tg_get_error_detail());
        return;
    }
    compute(self, "own plan", plan, problem, seed);
    tg_destroy_plan(plan);
}

/* The error detail must tell of this thread's own failure. */
static void fail_on_purpose(worker *self)
{
    char expected[40];
    tg_problem problem = make_problem(0, TG_TYPE_FP32);
    problem.batch_count = -1 - self->index;
    snprintf(expected, sizeof expected, "batch_count = %d;", -1 - self->index);
    if (tg_multiply(self->context, &problem) != TG_STATUS_INVALID_ARGUMENT ||
        !strstr(tg_get_error_detail(), expected))
        note_failure(self, "error detail", tg_get_error_detail());
}

static void *work(void *argument)
{
    worker *self = argument;
    for (int round = 0; round < ROUND_COUNT; round++) {
        int number = round + self->index;
        tg_type type = (tg_type)(number % 4);
        uint64_t seed = (uint64_t)number + 1;
        compute(self, "one call", NULL, make_problem(number % SIZE_COUNT, type), seed);
        fail_on_purpose(self);
        compute_by_own_plan(self, make_problem((number + 3) % SIZE_COUNT, type), seed);
        compute(self, "shared plan", self->shared_plan, make_problem(SHARED_SIZE, TG_TYPE_FP32),
                seed);
        /* No other thread has this shape: the cache of plans grows while the others use it. */
        tg_problem own = tg_make_problem(tg_make_matrix(type, NULL, 2 + self->index, 3 + round),
                                         tg_make_matrix(type, NULL, 3 + round, 9),
                                         tg_make_matrix(type, NULL, 2 + self->index, 9));
        compute(self, "own shape", NULL, own, seed);
    }
    return NULL;
}

static void run_workers(tg_context *context)
{
    static worker workers[THREAD_COUNT];
    pthread_t threads[THREAD_COUNT];
    tg_plan *plan;
    tg_problem shared = make_problem(SHARED_SIZE, TG_TYPE_FP32);
    assert_int_equal(tg_create_plan(context, &shared, NULL, &plan), TG_STATUS_OK);
    for (int i = 0; i < THREAD_COUNT; i++) {
        workers[i] = (worker){.context = context, .shared_plan = plan, .index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREAD_COUNT; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREAD_COUNT; i++)
        assert_string_equal(workers[i].failure, "");
    tg_destroy_plan(plan);
}

static void check_with_threads(int thread_count)
{
    tg_context *context;
    tg_context_options options = {.struct_bytes = sizeof options, .thread_count = thread_count};
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    run_workers(context);
    tg_destroy_context(context);
}

static void test_single_threaded_context(void **state)
{
    (void)state;
    check_with_threads(1);
}

static void test_threaded_context(void **state)
{
    (void)state;
    check_with_threads(2);
}

/* Asks for the device. The thread that comes first makes the default context. */
static void *ask_device(void *seen)
{
    tg_device_info info;
    *(int *)seen = tg_get_device_info(NULL, &info, sizeof info) == TG_STATUS_OK;
    return NULL;
}

static void test_default_context(void **state)
{
    (void)state;
    pthread_t threads[THREAD_COUNT];
    int seen[THREAD_COUNT] = {0};
    for (int i = 0; i < THREAD_COUNT; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_device, &seen[i]), 0);
    for (int i = 0; i < THREAD_COUNT; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREAD_COUNT; i++)
        assert_true(seen[i]);
    run_workers(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_context),
        cmocka_unit_test(test_single_threaded_context),
        cmocka_unit_test(test_threaded_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
