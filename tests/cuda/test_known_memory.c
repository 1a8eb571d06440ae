/*
 * tg_multiply asks the driver about D in each call and about other operands once. Its answers stay
 * right when memory is given back and an address becomes the processor's.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "fake_control.h"
#include "fake_products.h"
#include "plan/known_memory.h"

enum { size = 8, elems = size * size };

static float memory[4][elems];

static tg_context *open_context(void)
{
    const tg_context_options options = {
        .struct_bytes = sizeof options, .device = "cuda", .isa = "sm75"};
    tg_context *context = NULL;
    fake_compute_products(fake_reset());
    if (tg_create_context(&options, &context))
        fail_msg("%s", tg_get_error_detail());
    return context;
}

static tg_problem make_problem(const void *a, const void *b, void *d)
{
    return tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, size, size),
                           tg_make_matrix(TG_TYPE_FP32, b, size, size),
                           tg_make_matrix(TG_TYPE_FP32, d, size, size));
}

/* Multiplies, and returns the number of operands that the driver was asked about. */
static int count_questions(tg_context *context, const tg_problem *problem, tg_status expected)
{
    fake_reach()->pointer_count = 0;
    assert_int_equal(tg_multiply(context, problem), expected);
    return fake_reach()->pointer_count;
}

static void test_known_operands_are_not_asked_about(void **state)
{
    (void)state;
    tg_context *context = open_context(), *other = open_context();
    tg_problem problem = make_problem(memory[0], memory[1], memory[2]);
    problem.bias = TG_BIAS_COL;
    problem.bias_data = memory[3];
    assert_true(count_questions(context, &problem, TG_STATUS_OK) >= 4);
    assert_int_equal(count_questions(context, &problem, TG_STATUS_OK), 1);
    problem.beta = 1; /* C, which is D */
    assert_int_equal(count_questions(context, &problem, TG_STATUS_OK), 1);
    problem.bias_data = memory[3] + 16;
    assert_true(count_questions(context, &problem, TG_STATUS_OK) > 1);
    assert_int_equal(count_questions(context, &problem, TG_STATUS_OK), 1);
    problem.b.data = memory[1] + 16;
    problem.beta = 0;
    problem.b.row_count = problem.a.col_count = 4;
    assert_true(count_questions(context, &problem, TG_STATUS_OK) > 1);
    assert_int_equal(count_questions(context, &problem, TG_STATUS_OK), 1);
    assert_true(count_questions(other, &problem, TG_STATUS_OK) > 1);
    /* Memory of the processor is not remembered. */
    fake_reach()->has_host_memory = 1;
    for (int i = 0; i < 3; i++)
        assert_true(count_questions(context, &problem, TG_STATUS_OK) > 1);
    tg_destroy_context(other);
    tg_destroy_context(context);
}

/* Addresses belong to the device, then to the processor, then to the device again. */
static void test_addresses_change_their_memory(void **state)
{
    (void)state;
    tg_context *context = open_context();
    const tg_problem problem = make_problem(memory[0], memory[1], memory[2]);
    for (int i = 0; i < elems; i++)
        memory[0][i] = memory[1][i] = 1;
    for (int turn = 0; turn < 6; turn++) {
        fake_reach()->has_host_memory = turn % 2;
        fake_reach()->wait_count = 0;
        for (int i = 0; i < 2; i++) {
            memset(memory[2], 0, sizeof memory[2]);
            assert_int_equal(tg_multiply(context, &problem), TG_STATUS_OK);
            /* Only a product of the processor's memory waits for its copies. */
            assert_int_equal(fake_reach()->wait_count > 0, turn % 2);
            for (int j = 0; j < elems; j++)
                assert_true(memory[2][j] == size);
        }
    }
    tg_destroy_context(context);
}

/* After memory is given back, what lies at its address is looked at anew. */
static void test_released_memory_is_forgotten(void **state)
{
    (void)state;
    tg_context *context = open_context();
    void *d, *block;
    assert_int_equal(tg_allocate_memory(context, sizeof memory[2], &d), 0);
    const tg_problem problem = make_problem(memory[0], memory[1], d);
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_OK);
    assert_int_equal(count_questions(context, &problem, TG_STATUS_OK), 1);
    assert_int_equal(tg_allocate_memory(context, 64, &block), 0);
    tg_release_memory(context, block);
    fake_reach()->has_host_memory = 1; /* now A and B are the processor's */
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("is the processor's memory", "D at");
    tg_release_memory(context, d);
    tg_destroy_context(context);
}

static tgi_known_memory known;

/* Adds addresses of its own, and finds none that nobody added. Places are shared by all threads. */
static void *use_known(void *argument)
{
    const uintptr_t first = (uintptr_t)argument;
    for (uintptr_t i = 1; i < 20000; i++) {
        const void *mine = (const void *)((first + 4 * i) << 8);
        tgi_known_memory_add(&known, mine);
        if (i % 5000 == 0)
            tgi_known_memory_forget(&known);
        if (!tgi_known_memory_lacks(&known, (const char *)mine + 1))
            return argument;
    }
    return NULL;
}

static void test_threads_share_what_is_known(void **state)
{
    (void)state;
    static char numbers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_known, numbers + i), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    tgi_known_memory_forget(&known);
    assert_true(tgi_known_memory_lacks(&known, numbers));
    assert_false(tgi_known_memory_lacks(&known, NULL));
    tgi_known_memory_add(&known, numbers);
    assert_false(tgi_known_memory_lacks(&known, numbers));
    tgi_known_memory_forget(&known);
    assert_true(tgi_known_memory_lacks(&known, numbers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_operands_are_not_asked_about),
                                       cmocka_unit_test(test_addresses_change_their_memory),
                                       cmocka_unit_test(test_released_memory_is_forgotten),
                                       cmocka_unit_test(test_threads_share_what_is_known)};
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
