/*
 * A child of fork() multiplies: after its parent has, and while another thread of its parent does.
 * The parent goes on. A child that waits for ever is ended by its alarm.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/public_calls.h"

#define SIZE 200
#define SECONDS_MAX 20
#define CHILD_COUNT 200

static float a[SIZE * SIZE], b[SIZE * SIZE], expected[SIZE * SIZE];

static tg_status multiply(tg_context *context, float *d)
{
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, SIZE, SIZE),
                                         tg_make_matrix(TG_TYPE_FP32, b, SIZE, SIZE),
                                         tg_make_matrix(TG_TYPE_FP32, d, SIZE, SIZE));
    return tg_multiply(context, &problem);
}

static int is_right(tg_context *context)
{
    static float d[SIZE * SIZE];
    memset(d, 0xff, sizeof d);
    return multiply(context, d) == TG_STATUS_OK && memcmp(d, expected, sizeof d) == 0;
}

/* Returns 1 if the process has made a thread. */
static int has_threads(void)
{
    struct stat tasks; /* a folder with one link for each folder in it and two more */
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 + 1;
}

/* Starts a child that multiplies, by the parent's context and by one of its own. */
static pid_t start_child(tg_context *context)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        tg_context *own;
        alarm(SECONDS_MAX);
        int is_ok = is_right(context) && is_right(context) && is_right(NULL) && has_threads() &&
                    public_calls_open(&own) == TG_STATUS_OK;
        if (is_ok) {
            is_ok = is_right(own);
            tg_destroy_context(own);
        }
        exit(is_ok ? 0 : 1); /* the child's own threads end here */
    }
    assert_true(child > 0);
    return child;
}

static void expect_success(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("the child ended by %s %d", WIFEXITED(status) ? "exit code" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static void test_fork_after_use(void **state)
{
    tg_context *context = *state;
    assert_true(is_right(context) && is_right(NULL));
    expect_success(start_child(context));
    assert_true(is_right(context));
    expect_success(start_child(context));
}

static tg_context *shared;
static atomic_int is_over, failure_count;

static void *multiply_on(void *unused)
{
    static float d[SIZE * SIZE];
    while (!is_over) {
        tg_context *own;
        failure_count += multiply(shared, d) != TG_STATUS_OK;
        if (public_calls_open(&own) == TG_STATUS_OK) {
            failure_count += multiply(own, d) != TG_STATUS_OK;
            tg_destroy_context(own);
        }
    }
    return unused;
}

static void test_fork_beside_a_call(void **state)
{
    pthread_t other;
    shared = *state;
    assert_int_equal(pthread_create(&other, NULL, multiply_on, NULL), 0);
    for (int i = 0; i < CHILD_COUNT; i++)
        expect_success(start_child(shared));
    assert_true(is_right(shared));
    is_over = 1;
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(failure_count, 0);
}

static int set_up(void **state)
{
    tg_context *context;
    for (int i = 0; i < SIZE * SIZE; i++) {
        a[i] = (float)(i % 7 - 3);
        b[i] = (float)(i % 5 - 2);
    }
    if (public_calls_open(&context) || multiply(context, expected))
        return 1;
    *state = context;
    return 0;
}

static int tear_down(void **state)
{
    tg_destroy_context(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_after_use),
        cmocka_unit_test(test_fork_beside_a_call),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
