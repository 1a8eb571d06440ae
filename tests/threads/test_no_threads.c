/*
 * The system refuses every thread, by a limit on processes or on address space: a product runs on
 * the calling thread, and the library neither ends the process nor prints.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tilegemm.h"

#define SIZE 700
#define NOBODY 65534

enum { RIGHT = 10, NO_LIMIT, WRONG, ENDED_BY_LIBRARY }; /* exit codes of the child */

static float a[SIZE * SIZE], b[SIZE * SIZE], d[SIZE * SIZE];

static void note_exit(void)
{
    _exit(ENDED_BY_LIBRARY);
}

static void *do_nothing(void *unused)
{
    return unused;
}

/* Sets the limit. Returns 0 unless threads fail from now on. */
static int set_limit(int resource)
{
    struct rlimit limit = {0, 0};
    pthread_t thread;
    if (resource == RLIMIT_NPROC && getuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
        return 0;
    if (resource == RLIMIT_AS) {
        long total_pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (!file || fscanf(file, "%ld", &total_pages) != 1)
            return 0;
        fclose(file);
        /* Workspace fits, and no stack: what there is, 64 MiB more, and then all but 2 MiB of it
         * are taken below. */
        limit.rlim_cur = limit.rlim_max = (rlim_t)total_pages * 4096 + (64 << 20);
    }
    if (setrlimit(resource, &limit))
        return 0;
    return resource == RLIMIT_AS || pthread_create(&thread, NULL, do_nothing, NULL) != 0;
}

/* Takes address space until no stack of a worker fits. */
static void fill_address_space(void)
{
    for (size_t bytes = (size_t)32 << 20; bytes >= 65536; bytes /= 2) {
        while (mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
            continue;
    }
}

static void run_child(int resource)
{
    tg_context_options options = {
        .struct_bytes = sizeof options, .device = "cpu", .thread_count = 8};
    tg_context *context;
    tg_plan *plan;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, SIZE, SIZE),
                                         tg_make_matrix(TG_TYPE_FP32, b, SIZE, SIZE),
                                         tg_make_matrix(TG_TYPE_FP32, d, SIZE, SIZE));
    atexit(note_exit);
    if (tg_create_context(&options, &context) || tg_create_plan(context, &problem, NULL, &plan))
        _exit(WRONG);
    tg_plan_info info;
    tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = a, .b = b, .d = d};
    if (tg_get_plan_info(plan, &info, sizeof info) || info.thread_count < 2 ||
        tg_allocate_memory(context, info.workspace_bytes, &buffers.workspace))
        _exit(WRONG);
    buffers.workspace_bytes = info.workspace_bytes;
    if (!set_limit(resource))
        _exit(NO_LIMIT);
    if (resource == RLIMIT_AS)
        fill_address_space();
    if (tg_execute_plan(plan, &buffers))
        _exit(WRONG);
    for (int i = 0; i < SIZE * SIZE; i++) {
        if (d[i] != (float)SIZE)
            _exit(WRONG);
    }
    _exit(RIGHT);
}

static void check_limit(int resource)
{
    int status;
    char printed[200] = "";
    FILE *output = tmpfile();
    assert_non_null(output);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(output), STDOUT_FILENO);
        dup2(fileno(output), STDERR_FILENO);
        run_child(resource);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(pread(fileno(output), printed, sizeof printed - 1, 0) >= 0);
    fclose(output);
    assert_string_equal(printed, "");
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_LIMIT)
        skip();
    assert_int_equal(WEXITSTATUS(status), RIGHT);
}

static void test_process_limit(void **state)
{
    (void)state;
    check_limit(RLIMIT_NPROC);
}

static void test_address_space_limit(void **state)
{
    (void)state;
    check_limit(RLIMIT_AS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process_limit),
        cmocka_unit_test(test_address_space_limit),
    };
    for (int i = 0; i < SIZE * SIZE; i++)
        a[i] = b[i] = 1.0f;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
