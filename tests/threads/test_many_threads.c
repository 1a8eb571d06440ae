/*
 * Threads of the program that multiply, fail and end leave nothing: neither memory nor threads.
 *
 * usage: test_many_threads [COUNT]        (default: 10000)
 *
 * SPDX-License-Identifier: MIT
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/public_calls.h"

#define GROWTH_MAX_BYTES 16 /* for each thread */

static tg_context *context;

/* Is what each thread does: a product in the pool, one without it, and an error with its detail. */
static void *work(void *unused)
{
    (void)unused;
    static float a[64 * 64];
    float d[4];
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 2, 2),
                                         tg_make_matrix(TG_TYPE_FP32, a, 2, 2),
                                         tg_make_matrix(TG_TYPE_FP32, d, 2, 2));
    if (tg_multiply(context, &problem))
        return context;
    problem.batch_count = -1;
    if (tg_multiply(context, &problem) != TG_STATUS_INVALID_ARGUMENT ||
        !strstr(tg_get_error_detail(), "batch_count"))
        return context;
    static float large[200 * 200];
    problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, large, 200, 1),
                              tg_make_matrix(TG_TYPE_FP32, large, 1, 200),
                              tg_make_matrix(TG_TYPE_FP32, NULL, 200, 200));
    return tg_multiply(context, &problem) ? NULL : context; /* D has no memory */
}

static long read_resident_bytes(void)
{
    long total_pages = 0, resident_pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &total_pages, &resident_pages) != 2)
        resident_pages = -1;
    if (file)
        fclose(file);
    return resident_pages * 4096;
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 10000;
    long first_bytes = 0;
    public_calls_fill();
    if (public_calls_open(&context) || public_calls_find("multiply_large")->run(context))
        return 1;
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        void *failed;
        if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, &failed) || failed) {
            printf("thread %d fails: %s\n", i, tg_get_error_detail());
            return 1;
        }
        if (i == count / 10)
            first_bytes = read_resident_bytes();
    }
    const long growth_bytes = read_resident_bytes() - first_bytes;
    printf("%d threads, %ld bytes more\n", count, growth_bytes);
    tg_destroy_context(context);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0; /* sanitizers keep freed memory, and look for leaks themselves */
#else
    return count >= 10000 && growth_bytes > (long)GROWTH_MAX_BYTES * count;
#endif
}
