/*
 * Tests which call may use which block of the workspaces of a GPU's context, on a fake driver.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>

#include "fake_control.h"
#include "plan/context.h"

#define PER_THREAD ((void *)2) /* equals CU_STREAM_PER_THREAD */

/* Reaches the pool from inside, because no kernel that every build has needs a workspace. */
static void test_workspaces_belong_to_streams(void **state)
{
    (void)state;
    fake_driver *fake = fake_reset();
    char first_stream[8], second_stream[8];
    tgi_workspace *a, *b, *c;
    tg_context *context = fake_open_context("cuda");
    tgi_workspace_pool *pool = &context->workspaces;
    assert_int_equal(tgi_workspace_reserve(pool, 5000), 0);
    int allocated = fake->allocate_count;
    assert_int_equal(tgi_workspace_take(pool, 5000, first_stream, &a), 0);
    assert_int_equal(fake->allocate_count, allocated); /* took the spare block */
    assert_int_equal(tgi_workspace_take(pool, 5000, first_stream, &b), 0);
    assert_ptr_not_equal(a->memory, b->memory); /* the first block is not given back yet */
    tgi_workspace_give(pool, a);
    tgi_workspace_give(pool, b);
    assert_int_equal(tgi_workspace_take(pool, 5000, second_stream, &c), 0);
    assert_ptr_not_equal(c->memory, a->memory);
    assert_ptr_not_equal(c->memory, b->memory);
    tgi_workspace_give(pool, c);
    allocated = fake->allocate_count;
    for (int i = 0; i < 10; i++) {
        tgi_workspace *again;
        assert_int_equal(
            tgi_workspace_take(pool, 4000, i % 2 ? first_stream : second_stream, &again), 0);
        assert_true(i % 2 ? again->memory != c->memory : again->memory == c->memory);
        tgi_workspace_give(pool, again);
    }
    assert_int_equal(fake->allocate_count, allocated);
    assert_int_equal(fake->wait_count, 0);
    tg_destroy_context(context);
    assert_int_equal(fake->live_allocation_count, 0);
}

static void test_captured_workspaces_stay_with_their_graph(void **state)
{
    (void)state;
    fake_driver *fake = fake_reset();
    char stream[8];
    tgi_workspace *plain, *captured, *again, *other;
    tg_context *context = fake_open_context("cuda");
    tgi_workspace_pool *pool = &context->workspaces;
    assert_int_equal(tgi_workspace_take(pool, 100, stream, &plain), 0);
    tgi_workspace_give(pool, plain);
    fake->is_capturing = 1;
    fake->capture = 7;
    assert_int_equal(tgi_workspace_take(pool, 100, stream, &captured), 0);
    assert_ptr_not_equal(captured->memory, plain->memory);
    tgi_workspace_give(pool, captured);
    assert_int_equal(tgi_workspace_take(pool, 100, stream, &again), 0);
    assert_ptr_equal(again->memory, captured->memory); /* they run one after the other */
    tgi_workspace_give(pool, again);
    /* Another stream that joined the capture may run beside this one in the graph. */
    char joined[8];
    assert_int_equal(tgi_workspace_take(pool, 100, joined, &other), 0);
    assert_ptr_not_equal(other->memory, captured->memory);
    tgi_workspace_give(pool, other);
    fake->capture = 8;
    assert_int_equal(tgi_workspace_take(pool, 100, stream, &other), 0);
    assert_ptr_not_equal(other->memory, captured->memory);
    assert_ptr_not_equal(other->memory, plain->memory);
    tgi_workspace_give(pool, other);
    tg_destroy_context(context);
    assert_int_equal(fake->live_allocation_count, 0);
}

static void *take_on_default_stream(void *pool)
{
    tgi_workspace *block;
    if (tgi_workspace_take(pool, 100, PER_THREAD, &block))
        return NULL;
    tgi_workspace_give(pool, block);
    return block->memory;
}

static void test_each_thread_has_a_default_stream(void **state)
{
    (void)state;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    void *mine = take_on_default_stream(&context->workspaces), *other = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_on_default_stream, &context->workspaces),
                     0);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_non_null(mine);
    assert_non_null(other);
    assert_ptr_not_equal(mine, other);
    assert_ptr_equal(mine, take_on_default_stream(&context->workspaces));
    tg_destroy_context(context);
}

enum { thread_count = 4, block_count = 2 * thread_count };

/* The block that each thread holds, or NULL. */
static tgi_workspace *_Atomic held[thread_count];

typedef struct taker {
    tgi_workspace_pool *pool;
    int number, shared_count;
} taker;

/* Takes blocks on the default stream, as the other threads do, and counts those that another one
 * has at the same time. */
static void *take_and_give(void *argument)
{
    taker *t = argument;
    for (int i = 0; i < 300000; i++) {
        tgi_workspace *block;
        if (tgi_workspace_take(t->pool, 100, NULL, &block)) {
            t->shared_count++;
            continue;
        }
        atomic_store(&held[t->number], block);
        for (int other = 0; other < thread_count; other++)
            t->shared_count += other != t->number && atomic_load(&held[other]) == block;
        atomic_store(&held[t->number], NULL);
        tgi_workspace_give(t->pool, block);
    }
    return NULL;
}

/* Threads of one stream share its blocks, and never have one at once. As many blocks as threads can
 * hold are there from the beginning, so no more are allocated. */
static void test_threads_take_turns(void **state)
{
    (void)state;
    fake_driver *fake = fake_reset();
    tg_context *context = fake_open_context("cuda");
    tgi_workspace_pool *pool = &context->workspaces;
    tgi_workspace *blocks[block_count];
    taker takers[thread_count];
    pthread_t threads[thread_count];
    for (int i = 0; i < block_count; i++)
        assert_int_equal(tgi_workspace_take(pool, 100, NULL, &blocks[i]), 0);
    for (int i = 0; i < block_count; i++)
        tgi_workspace_give(pool, blocks[i]);
    const int allocated = fake->allocate_count;
    for (int i = 0; i < thread_count; i++) {
        takers[i] = (taker){pool, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
    }
    for (int i = 0; i < thread_count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(takers[i].shared_count, 0);
    }
    assert_int_equal(fake->allocate_count, allocated);
    tg_destroy_context(context);
    assert_int_equal(fake->live_allocation_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_thread_has_a_default_stream),
        cmocka_unit_test(test_workspaces_belong_to_streams),
        cmocka_unit_test(test_captured_workspaces_stay_with_their_graph),
        cmocka_unit_test(test_threads_take_turns),
    };
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
