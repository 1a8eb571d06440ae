/*
 * All threads of a product compute as its caller does: they round as it does, keep or flush
 * subnormal numbers as it does, and trap where it does, whichever thread made them. A caller that
 * is being canceled ends its product first, since the threads use its stack.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <cmocka.h>

#include "harness/stride.h"
#include "tilegemm.h"

enum { SIDE = 300 };

static float a[SIDE * SIDE], b[SIDE * SIDE], by_one[SIDE * SIDE], by_two[SIDE * SIDE];
static tg_context *one, *two, *three;
static int is_complete, repeat_count;

static void multiply(tg_context *context, float *d)
{
    const tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, SIDE, SIDE),
                                               tg_make_matrix(TG_TYPE_FP32, b, SIDE, SIDE),
                                               tg_make_matrix(TG_TYPE_FP32, d, SIDE, SIDE));
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_OK);
}

static void fill(float a_value, float b_value)
{
    for (int i = 0; i < SIDE * SIDE; i++) {
        a[i] = a_value * (float)(i % 7 + 1);
        b[i] = b_value;
    }
}

/* Compares one thread with two, often, because a worker may come late for a product. */
static void compare(void)
{
    multiply(one, by_one);
    for (int i = 0; i < repeat_count; i++) {
        multiply(two, by_two);
        assert_memory_equal(by_one, by_two, sizeof by_one);
    }
}

static void *multiply_canceled(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self());
    multiply(three, by_two); /* makes a thread, which is a point of cancellation too */
    is_complete = 1;
    pthread_testcancel();
    return NULL;
}

static void a_canceled_caller_ends_its_product(void **state)
{
    pthread_t thread;
    void *result = NULL;
    (void)state;
    fill(1, 1);
    assert_int_equal(pthread_create(&thread, NULL, multiply_canceled, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(is_complete, 1);
    compare();
}

static void threads_round_as_the_caller(void **state)
{
    (void)state;
    fill(0.1F, 0.3F);
    compare();
    assert_int_equal(fesetround(FE_UPWARD), 0);
    compare();
    assert_int_equal(fesetround(FE_TONEAREST), 0);
}

static void threads_flush_as_the_caller(void **state)
{
    (void)state;
#ifdef __SSE__
    const unsigned before = _mm_getcsr();
    fill(1e-41F, 1);
    compare();
    assert_true(by_one[0] > 0);
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
    compare();
    _mm_setcsr(before);
    assert_memory_equal(&by_one[0], &(float){0}, sizeof(float));
#else
    skip();
#endif
}

static void *multiply_with_traps(void *unused)
{
    (void)unused;
    feenableexcept(FE_INVALID);
    multiply(two, by_two);
    return NULL;
}

/* Must be the first test: its thread makes the workers. */
static void no_trap_is_inherited(void **state)
{
    pthread_t thread;
    (void)state;
    fill(1, 1);
    assert_int_equal(pthread_create(&thread, NULL, multiply_with_traps, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    fill(INFINITY, 0); /* every product is an invalid operation */
    for (int i = 0; i < repeat_count; i++)
        multiply(two, by_two);
    assert_true(isnan(by_two[0]));
}

static int open_contexts(void **state)
{
    tg_context **const contexts[] = {&one, &two, &three};
    (void)state;
    repeat_count = stride_count_cases(100);
    for (int i = 0; i < 3; i++) {
        const tg_context_options options = {
            .struct_bytes = sizeof options, .device = "cpu", .thread_count = i + 1};
        if (tg_create_context(&options, contexts[i]))
            return 1;
    }
    return 0;
}

static int close_contexts(void **state)
{
    (void)state;
    tg_destroy_context(one);
    tg_destroy_context(two);
    tg_destroy_context(three);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_trap_is_inherited),
        cmocka_unit_test(threads_round_as_the_caller),
        cmocka_unit_test(threads_flush_as_the_caller),
        cmocka_unit_test(a_canceled_caller_ends_its_product),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
