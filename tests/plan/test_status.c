/*
 * Tests the version, names, and the error detail of a thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tilegemm_lab.h"

static void test_version(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", TG_VERSION_MAJOR, TG_VERSION_MINOR, TG_VERSION_PATCH);
    assert_string_equal(tg_get_version(), text);
}

static void test_status_texts(void **state)
{
    (void)state;
    assert_string_equal(tg_get_status_name(TG_STATUS_OK), "TG_STATUS_OK");
    assert_string_equal(tg_get_status_name(TG_STATUS_SIZE_OVERFLOW), "TG_STATUS_SIZE_OVERFLOW");
    assert_string_equal(tg_get_status_name(TG_STATUS_NO_DEVICE), "TG_STATUS_NO_DEVICE");
    for (int i = TG_STATUS_OK; i <= TG_STATUS_DEVICE_FAILURE; i++) {
        assert_non_null(strstr(tg_get_status_name((tg_status)i), "TG_STATUS_"));
        assert_true(tg_get_status_text((tg_status)i)[0] != 0);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(tg_get_status_name((tg_status)i),
                                    tg_get_status_name((tg_status)j));
            assert_string_not_equal(tg_get_status_text((tg_status)i),
                                    tg_get_status_text((tg_status)j));
        }
    }
    static const int outside[] = {-1, TG_STATUS_DEVICE_FAILURE + 1, 1 << 30};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(tg_get_status_name((tg_status)outside[i]), "TG_STATUS_UNKNOWN");
        assert_non_null(tg_get_status_text((tg_status)outside[i]));
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const types[] = {"fp32", "fp64", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"};
    static const int64_t bytes[] = {4, 8, 2, 2, 1, 1};
    for (int i = 0; i < 6; i++) {
        assert_string_equal(tg_get_type_name((tg_type)i), types[i]);
        assert_int_equal(tg_get_type_bytes((tg_type)i), bytes[i]);
    }
    assert_string_equal(tg_get_precision_name(TG_PRECISION_DEFAULT), "default");
    assert_string_equal(tg_get_precision_name(TG_PRECISION_IEEE_FP64), "ieee_fp64");
    assert_string_equal(tg_get_precision_name(TG_PRECISION_TF32), "tf32");
    assert_string_equal(tg_get_precision_name(TG_PRECISION_BF16X6), "bf16x6");
    assert_string_equal(tg_get_precision_name(TG_PRECISION_FP16X3), "fp16x3");
    assert_null(tg_get_type_name((tg_type)6));
    assert_string_equal(tg_get_scale_name(TG_SCALE_VECTOR), "vector");
    assert_string_equal(tg_get_bias_name(TG_BIAS_NONE), "none");
    assert_string_equal(tg_get_bias_name(TG_BIAS_COL), "col");
    assert_string_equal(tg_get_activation_name(TG_ACTIVATION_RELU), "relu");
    assert_string_equal(tg_get_activation_name(TG_ACTIVATION_SILU), "silu");
    static const int outside[] = {-1, 8, 1 << 30};
    for (int i = 0; i < 3; i++) {
        assert_null(tg_get_type_name((tg_type)outside[i]));
        assert_null(tg_get_precision_name((tg_precision)outside[i]));
        assert_null(tg_get_scale_name((tg_scale)outside[i]));
        assert_null(tg_get_bias_name((tg_bias)outside[i]));
        assert_null(tg_get_activation_name((tg_activation)outside[i]));
        assert_int_equal(tg_get_type_bytes((tg_type)outside[i]), 0);
    }
}

static void fail_once(const char *device)
{
    tg_context *context;
    tg_context_options options = {.struct_bytes = sizeof options, .device = device};
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_UNKNOWN_NAME);
}

static void succeed_once(void)
{
    float a = 2, b = 3, d = 0;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, &a, 1, 1),
                                         tg_make_matrix(TG_TYPE_FP32, &b, 1, 1),
                                         tg_make_matrix(TG_TYPE_FP32, &d, 1, 1));
    assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_OK);
    assert_true(d == 6);
}

/* cmocka's asserts work only in the thread of the test, so this thread reports what it saw. */
static void *see_detail_of_thread(void *seen)
{
    tg_context *context;
    tg_context_options options = {.struct_bytes = sizeof options, .device = "theirs"};
    int is_empty = tg_get_error_detail()[0] == 0;
    tg_create_context(&options, &context);
    *(int *)seen = is_empty && strstr(tg_get_error_detail(), "theirs") != NULL;
    return NULL;
}

static void test_detail(void **state)
{
    (void)state;
    pthread_t thread;
    int is_right = 0;
    assert_string_equal(tg_get_error_detail(), ""); /* nothing has failed yet */
    fail_once("mine");
    assert_non_null(strstr(tg_get_error_detail(), "mine"));
    assert_int_equal(pthread_create(&thread, NULL, see_detail_of_thread, &is_right), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_right);
    assert_non_null(strstr(tg_get_error_detail(), "mine"));
    succeed_once();
    assert_non_null(strstr(tg_get_error_detail(), "mine"));
    fail_once("another");
    assert_non_null(strstr(tg_get_error_detail(), "another"));
    assert_null(strstr(tg_get_error_detail(), "mine"));
}

/* A name from outside must neither overrun the detail nor be taken as a format. */
static void test_detail_of_long_names(void **state)
{
    (void)state;
    static char name[100000];
    memset(name, 'x', sizeof name - 1);
    fail_once(name);
    assert_true(strlen(tg_get_error_detail()) < 4096);
    fail_once("%s%n%100000d");
    assert_non_null(strstr(tg_get_error_detail(), "%s%n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detail), /* runs first: it wants a thread without failures */
        cmocka_unit_test(test_version), cmocka_unit_test(test_status_texts),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_detail_of_long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
