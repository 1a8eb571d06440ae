/*
 * Loads the shared library, multiplies on two threads by the default context and unloads it, again
 * and again: nothing grows. Then unloads a plugin that holds the static library: its threads end
 * first.
 *
 * usage: test_reload LIBRARY PLUGIN
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tilegemm.h"

#define SIZE 300
#define FIRST_COUNT 20       /* cycles before the first series */
#define CYCLE_COUNT 180      /* cycles of a series */
#define SERIES_COUNT 3       /* series at most */
#define GROWTH_MAX_BYTES 400 /* for each cycle of a series */

static const char *library_path, *plugin_path;
static float a[SIZE * SIZE], b[SIZE * SIZE], d[SIZE * SIZE];

/* Returns the number that follows `key` in /proc/self/status: VmRSS in KiB, Threads. */
static long read_status(const char *key)
{
    char line[256];
    long value = -1;
    const size_t length = strlen(key);
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            value = atol(line + length + 1);
    }
    fclose(file);
    return value;
}

/* Returns the mappings of files whose path has `text`. */
static int count_maps(const char *text)
{
    char line[512];
    int count = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        count += strstr(line, text) != NULL;
    fclose(file);
    return count;
}

static void run_cycle(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    union {
        void *found;
        tg_status (*call)(tg_context *context, const tg_problem *problem);
    } multiply = {.found = dlsym(library, "tg_multiply")};
    assert_non_null(multiply.found);
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, SIZE, SIZE),
                                         tg_make_matrix(TG_TYPE_FP32, b, SIZE, SIZE),
                                         tg_make_matrix(TG_TYPE_FP32, d, SIZE, SIZE));
    assert_int_equal(multiply.call(NULL, &problem), TG_STATUS_OK);
    assert_int_equal(dlclose(library), 0);
}

/* Runs a series of cycles. Returns the bytes by which the process grew. */
static long run_series(void)
{
    const long memory_kib = read_status("VmRSS");
    for (int i = 0; i < CYCLE_COUNT; i++)
        run_cycle(library_path);
    return (read_status("VmRSS") - memory_kib) * 1024;
}

/* A thread that gets its first task late touches pages of its stack late, once. A leak grows in
 * every series. */
static void test_library(void **state)
{
    const long most_bytes = (long)GROWTH_MAX_BYTES * CYCLE_COUNT;
    long growth_bytes = most_bytes;
    (void)state;
    for (int i = 0; i < FIRST_COUNT; i++)
        run_cycle(library_path);
    const long thread_count = read_status("Threads");
    const int map_count = count_maps("libtilegemm");
    for (int i = 0; i < SERIES_COUNT && growth_bytes >= most_bytes; i++) {
        growth_bytes = run_series();
        printf("%ld bytes more, %ld threads\n", growth_bytes, thread_count);
    }
    assert_true(growth_bytes < most_bytes);
    assert_int_equal(read_status("Threads"), thread_count);
    assert_int_equal(count_maps("libtilegemm"), map_count);
    assert_int_equal(count_maps("libgomp"), 0);
}

static void test_plugin(void **state)
{
    (void)state;
    const long thread_count = read_status("Threads");
    for (int i = 0; i < 50; i++) {
        run_cycle(plugin_path);
        assert_int_equal(count_maps("plugin"), 0);
        assert_int_equal(read_status("Threads"), thread_count);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plugin),
        cmocka_unit_test(test_library),
    };
    if (argc != 3)
        return 2;
    library_path = argv[1];
    plugin_path = argv[2];
    setenv("TILEGEMM_THREADS", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
