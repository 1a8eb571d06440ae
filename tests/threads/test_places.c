/*
 * Tests that a thread which libgomp has bound to one place (OMP_PROC_BIND) has all its processors
 * for contexts and for the pool. Each case is a child process, since libgomp binds the thread that
 * loads it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "threads/threads.h"

#define TASKS 64
enum { RIGHT, WRONG, NO_OPENMP };

static atomic_int worker_tasks, narrow_tasks;
static _Thread_local int is_caller;

/* Counts the tasks of workers, and those on workers that must not leave the caller's processor. */
static void run_task(void *state, int64_t index, int thread)
{
    cpu_set_t allowed;
    const cpu_set_t *own = state;
    (void)index, (void)thread;
    usleep(1000); /* so that workers come in time */
    if (is_caller || sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    worker_tasks++;
    narrow_tasks += CPU_EQUAL(&allowed, own);
}

/* Unsets what the user of the test may have set. */
static void forget_variables(void)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES",
                                        "GOMP_CPU_AFFINITY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

/* Loads libgomp with the variable set. Returns what the pool then does. */
static int load_and_run(const char *name, const char *value, int mode, int must_widen)
{
    cpu_set_t before, own;
    setenv(name, value, 1);
    sched_getaffinity(0, sizeof before, &before);
    const int count = tgi_threads_count_processors();
    if (!dlopen("libgomp.so.1", RTLD_NOW | mode))
        return NO_OPENMP;
    sched_getaffinity(0, sizeof own, &own);
    if (tgi_threads_count_processors() != count)
        return WRONG;
    is_caller = 1;
    for (int run = 0; run < 4; run++, usleep(20000)) /* workers sleep between runs */
        tgi_threads_run(run_task, &own, TASKS, count);
    if (count > 1 && must_widen && CPU_EQUAL(&own, &before))
        return WRONG; /* libgomp has not bound the thread, and nothing was tested */
    return count > 1 && (worker_tasks == 0 || (must_widen && narrow_tasks > 0)) ? WRONG : RIGHT;
}

/* A thread that the program itself has bound keeps to its processor. */
static int bind_and_count(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (!dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL))
        return NO_OPENMP;
    sched_setaffinity(0, sizeof one, &one);
    return tgi_threads_count_processors() == 1 ? RIGHT : WRONG;
}

static int run_case(int index)
{
    switch (index) {
    case 0:
        return load_and_run("OMP_PROC_BIND", "true", RTLD_GLOBAL, 1);
    case 1:
        return load_and_run("OMP_PROC_BIND", "close", RTLD_LOCAL, 1);
    case 2:
        return load_and_run("OMP_PLACES", "threads", RTLD_GLOBAL, 1);
    case 3:
        return load_and_run("OMP_PROC_BIND", "false", RTLD_GLOBAL, 0);
    default:
        return bind_and_count();
    }
}

static void test_places(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        int status = 0;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            forget_variables();
            _exit(run_case(i));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == NO_OPENMP)
            skip();
        if (WEXITSTATUS(status) != RIGHT)
            fail_msg("case %d: the pool has other processors than the program", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
