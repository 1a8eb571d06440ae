/*
 * Tests how many threads a context has by default: OMP_NUM_THREADS, the affinity mask, CPU quotas
 * of control groups.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "threads/threads.h"
#include "tilegemm.h"

static char root[] = "/tmp/tilegemm_groups_XXXXXX";

static void write_quota(const char *group, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s%s", root, group);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_quota(void **state)
{
    (void)state;
    static const struct {
        const char *membership;
        int quota;
    } cases[] = {
        {"0::/a/b\n", 2},                     /* 1.5, rounded up */
        {"0::/a\n", 3},                       /* the group alone */
        {"0::/\n", INT_MAX},                  /* "max" */
        {"0::/a/b/none\n", 2},                /* a group without the file has its parent's */
        {"2:cpu:/x\n1:cpuset:/\n0::/a\n", 3}, /* version 1 beside version 2 */
        {"0::/wide\n", 8},                    /* more than this machine need have */
        {"0::/odd\n", INT_MAX},               /* no number */
        {"1:cpu:/a\n", INT_MAX},              /* version 1 alone */
        {"", INT_MAX},
    };
    assert_non_null(mkdtemp(root));
    write_quota("", "max 100000\n");
    write_quota("/a", "300000 100000\n");
    write_quota("/a/b", "75000 50000\n");
    write_quota("/wide", "800000 100000\n");
    write_quota("/odd", "none\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int found = tgi_threads_find_quota(root, cases[i].membership);
        if (found != cases[i].quota)
            fail_msg("%s: %d, expected %d", cases[i].membership, found, cases[i].quota);
    }
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static int get_default_count(void)
{
    tg_context *context;
    tg_device_info info;
    assert_int_equal(tg_create_context(NULL, &context), TG_STATUS_OK);
    assert_int_equal(tg_get_device_info(context, &info, sizeof info), TG_STATUS_OK);
    tg_destroy_context(context);
    return info.thread_count;
}

/* The affinity mask limits the default and not what the user asks for. */
static void test_affinity(void **state)
{
    (void)state;
    cpu_set_t before, one;
    unsetenv("TILEGEMM_THREADS");
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_in_range(get_default_count(), 1, CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(get_default_count(), 1);
    setenv("OMP_NUM_THREADS", "5", 1);
    assert_int_equal(get_default_count(), 5);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static void test_environment(void **state)
{
    (void)state;
    static const struct {
        const char *threads, *omp_threads;
        int count; /* 0: as with neither */
    } cases[] = {
        {NULL, "3", 3},  {NULL, "7,2", 7},  {"2", "3", 2}, {NULL, "0", 0},
        {NULL, "-4", 0}, {NULL, "many", 0}, {NULL, "", 0}, {NULL, "9999999", 1024},
    };
    unsetenv("TILEGEMM_THREADS");
    unsetenv("OMP_NUM_THREADS");
    const int neither = get_default_count();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].threads)
            setenv("TILEGEMM_THREADS", cases[i].threads, 1);
        else
            unsetenv("TILEGEMM_THREADS");
        setenv("OMP_NUM_THREADS", cases[i].omp_threads, 1);
        assert_int_equal(get_default_count(), cases[i].count ? cases[i].count : neither);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_affinity),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
