/*
 * Tests the thread pool from inside: every task runs once, callers never wait for each other,
 * threads that cannot be made are done without, and threads without work sleep. pthread_create and
 * the count of processors are wrapped, so that the tests choose what they return.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "threads/threads.h"

#define TASKS_MAX 5000

static int must_create_fail, processor_count = 64;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    return must_create_fail ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

int __wrap_tgi_threads_count_processors(void);

int __wrap_tgi_threads_count_processors(void)
{
    return processor_count;
}

typedef struct job {
    atomic_int runs[TASKS_MAX];              /* how often each task ran */
    atomic_int in_use[TGI_THREAD_COUNT_MAX]; /* 1 while a thread of that number runs */
    atomic_int is_shared, other_count;       /* two threads had one number; other threads */
    pthread_t caller;
} job;

static job jobs[2];

/* A program's thread-local data, which lie in the stacks of the workers. */
static _Thread_local volatile char thread_data[300 << 10];

static void run_task(void *state, int64_t index, int thread)
{
    job *j = state;
    thread_data[0] = thread_data[sizeof thread_data - 1] = 1;
    if (atomic_exchange(&j->in_use[thread], 1))
        j->is_shared = 1;
    if (!pthread_equal(pthread_self(), j->caller))
        j->other_count++;
    j->runs[index]++;
    j->in_use[thread] = 0;
}

static job *reset(job *j)
{
    memset(j, 0, sizeof *j);
    j->caller = pthread_self();
    return j;
}

static int has_run_once(const job *j, int64_t count)
{
    for (int64_t i = 0; i < TASKS_MAX; i++) {
        if (j->runs[i] != (i < count))
            return 0;
    }
    return !j->is_shared;
}

/* Returns the threads of this process whose names begin with `name`. */
static int count_threads(const char *name)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char path[300], found[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file && fgets(found, sizeof found, file))
            count += strncmp(found, name, strlen(name)) == 0;
        if (file)
            fclose(file);
    }
    closedir(folder);
    return count;
}

static void check_run(int64_t count, int thread_count)
{
    tgi_threads_run(run_task, reset(&jobs[0]), count, thread_count);
    if (!has_run_once(&jobs[0], count))
        fail_msg("%lld tasks, %d threads", (long long)count, thread_count);
}

static void test_no_thread_can_be_made(void **state)
{
    (void)state;
    must_create_fail = 1;
    check_run(100, 8);
    assert_int_equal(jobs[0].other_count, 0);
    must_create_fail = 0;
    for (int i = 0; i < 3000 && count_threads("tilegemm-") == 0; i++)
        check_run(10, 2);
    assert_int_equal(count_threads("tilegemm-"), 1);
}

static void test_no_more_threads_than_processors(void **state)
{
    (void)state;
    processor_count = 3;
    for (int i = 0; i < 3000; i++)
        check_run(10, 8);
    assert_int_equal(count_threads("tilegemm-"), 2);
    processor_count = 64;
    for (int i = 0; i < 30000 && count_threads("tilegemm-") < 7; i++)
        check_run(10, 8);
    assert_int_equal(count_threads("tilegemm-"), 7);
}

static void test_every_task_runs_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 100, 1001, TASKS_MAX};
    static const int thread_counts[] = {1, 2, 3, 8, 64, 2};
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            for (int round = 0; round < 20; round++)
                check_run(counts[i], thread_counts[t]);
        }
    }
    assert_in_range(count_threads("tilegemm-"), 1, 63);
}

/* A job that runs a task more than once, or under a thread's number that is in use, is noticed. */
static void test_wrong_run_is_caught(void **state)
{
    (void)state;
    job *j = reset(&jobs[0]);
    run_task(j, 0, 0);
    assert_true(has_run_once(j, 1));
    assert_false(has_run_once(j, 2));
    run_task(j, 0, 0);
    assert_false(has_run_once(j, 1));
    reset(j)->in_use[3] = 1;
    run_task(j, 0, 3);
    assert_false(has_run_once(j, 1));
}

static void run_nested(void *state, int64_t index, int thread)
{
    job *inner = state;
    (void)thread;
    if (index == 0) {
        inner->caller = pthread_self();
        tgi_threads_run(run_task, inner, 50, 8);
    }
}

static void test_nested_run(void **state)
{
    (void)state;
    tgi_threads_run(run_nested, reset(&jobs[1]), 4, 4);
    assert_true(has_run_once(&jobs[1], 50));
    assert_int_equal(jobs[1].other_count, 0);
}

static atomic_int is_first_inside, is_second_done;

static void wait_for_second(void *state, int64_t index, int thread)
{
    (void)state, (void)index, (void)thread;
    is_first_inside = 1;
    while (!is_second_done)
        usleep(100);
}

static void *run_first(void *unused)
{
    tgi_threads_run(wait_for_second, NULL, 2, 2);
    return unused;
}

/* The second caller finishes while the first one's tasks wait for it. */
static void test_second_caller_runs_alone(void **state)
{
    (void)state;
    pthread_t first;
    assert_int_equal(pthread_create(&first, NULL, run_first, NULL), 0);
    while (!is_first_inside)
        usleep(100);
    check_run(100, 8);
    assert_int_equal(jobs[0].other_count, 0);
    is_second_done = 1;
    assert_int_equal(pthread_join(first, NULL), 0);
}

static void *run_often(void *state)
{
    for (int i = 0; i < 300; i++) {
        tgi_threads_run(run_task, reset(state), 40, 8);
        if (!has_run_once(state, 40))
            return state;
    }
    return NULL;
}

static void test_callers_beside_each_other(void **state)
{
    (void)state;
    pthread_t other;
    void *failed;
    assert_int_equal(pthread_create(&other, NULL, run_often, &jobs[1]), 0);
    assert_null(run_often(&jobs[0]));
    assert_int_equal(pthread_join(other, &failed), 0);
    assert_null(failed);
}

static double read_cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Opens the next status of a worker in the folder of this process's threads. Returns NULL after
 * the last one. Its first line, the name, has been read. */
static FILE *open_next_worker(DIR *folder)
{
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        char path[300], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && strncmp(name, "Name:\ttilegemm-", 15) == 0)
            return file;
        if (file)
            fclose(file);
    }
    return NULL;
}

/* Returns the number of workers that run or wait for a processor. */
static int count_busy_workers(void)
{
    DIR *folder = opendir("/proc/self/task");
    FILE *file;
    int busy_count = 0;
    assert_non_null(folder);
    while ((file = open_next_worker(folder))) {
        char line[256];
        while (fgets(line, sizeof line, file))
            busy_count += strncmp(line, "State:\tR", 8) == 0;
        fclose(file);
    }
    closedir(folder);
    return busy_count;
}

/* A worker that polls runs, or waits for a processor, however few of these other programs leave. */
static void test_idle_threads_sleep(void **state)
{
    (void)state;
    const struct timespec moment = {.tv_nsec = 10000000}, rest = {.tv_nsec = 500000000};
    check_run(100, 8);
    for (int moments = 0; count_busy_workers() > 0 && moments < 3000; moments++)
        nanosleep(&moment, NULL);
    assert_int_equal(count_busy_workers(), 0);
    const double start_s = read_cpu_s();
    nanosleep(&rest, NULL);
    assert_true(read_cpu_s() - start_s < 0.1);
}

/* A signal to the process is for its own threads. A worker's own fault reaches their handlers. */
static void test_workers_block_signals(void **state)
{
    (void)state;
    DIR *folder = opendir("/proc/self/task");
    FILE *file;
    int worker_count = 0;
    assert_non_null(folder);
    while ((file = open_next_worker(folder))) {
        char line[256];
        unsigned long long blocked = 0;
        while (fgets(line, sizeof line, file))
            sscanf(line, "SigBlk: %llx", &blocked);
        fclose(file);
        worker_count++;
        static const int open[] = {SIGBUS, SIGFPE,  SIGILL,  SIGSEGV,
                                   SIGSYS, SIGTRAP, SIGKILL, SIGSTOP};
        unsigned long long expected = 0x7fffffff; /* signals 1 to 31 */
        for (size_t i = 0; i < sizeof open / sizeof *open; i++)
            expected &= ~(1ull << (open[i] - 1));
        assert_int_equal(blocked & 0x7fffffff, expected);
    }
    closedir(folder);
    assert_true(worker_count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_thread_can_be_made),
        cmocka_unit_test(test_no_more_threads_than_processors),
        cmocka_unit_test(test_every_task_runs_once),
        cmocka_unit_test(test_wrong_run_is_caught),
        cmocka_unit_test(test_nested_run),
        cmocka_unit_test(test_second_caller_runs_alone),
        cmocka_unit_test(test_callers_beside_each_other),
        cmocka_unit_test(test_idle_threads_sleep),
        cmocka_unit_test(test_workers_block_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
