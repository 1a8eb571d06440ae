/*
 * Tests contexts: options, environment, what they say of the device.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tilegemm_lab.h"

static void assert_refused(const tg_context_options *options, tg_status expected, const char *part)
{
    tg_context *context = (tg_context *)(uintptr_t)1;
    assert_int_equal(tg_create_context(options, &context), expected);
    assert_null(context);
    if (!strstr(tg_get_error_detail(), part))
        fail_msg("the detail does not name %s: %s", part, tg_get_error_detail());
}

static void test_bad_options(void **state)
{
    (void)state;
    assert_refused(
        &(tg_context_options){.struct_bytes = sizeof(tg_context_options), .device = "gpu9"},
        TG_STATUS_UNKNOWN_NAME, "gpu9");
    assert_refused(&(tg_context_options){.struct_bytes = sizeof(tg_context_options), .device = ""},
                   TG_STATUS_UNKNOWN_NAME, "device");
    assert_refused(&(tg_context_options){.struct_bytes = sizeof(tg_context_options), .isa = "avx3"},
                   TG_STATUS_UNKNOWN_NAME, "avx3");
    assert_refused(&(tg_context_options){.struct_bytes = sizeof(tg_context_options), .isa = "AVX2"},
                   TG_STATUS_UNKNOWN_NAME, "AVX2");
    assert_refused(
        &(tg_context_options){.struct_bytes = sizeof(tg_context_options), .thread_count = -1},
        TG_STATUS_INVALID_ARGUMENT, "-1");
    assert_refused(&(tg_context_options){.struct_bytes = sizeof(tg_context_options),
                                         .workspace_limit_bytes = -2},
                   TG_STATUS_INVALID_ARGUMENT, "workspace_limit_bytes = -2");
    assert_refused(
        &(tg_context_options){.struct_bytes = sizeof(tg_context_options), .thread_count = 1025},
        TG_STATUS_INVALID_ARGUMENT, "1025");
    assert_int_equal(tg_create_context(NULL, NULL), TG_STATUS_INVALID_ARGUMENT);
}

static void test_options(void **state)
{
    (void)state;
    tg_context *context;
    tg_device_info info;
    char device[] = "cpu", isa[] = "generic";
    tg_context_options options = {
        .struct_bytes = sizeof options, .device = device, .isa = isa, .thread_count = 5};
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    memset(device, '#', sizeof device - 1); /* the strings were copied */
    memset(isa, '#', sizeof isa - 1);
    assert_int_equal(tg_get_device_info(context, &info, sizeof info), TG_STATUS_OK);
    assert_string_equal(info.device, "cpu");
    assert_string_equal(info.isa, "generic");
    assert_int_equal(info.thread_count, 5);
    assert_non_null(info.name);
    assert_true(info.l1_bytes >= 0 && info.l2_bytes >= 0 && info.l3_bytes >= 0);
    tg_destroy_context(context);
    tg_destroy_context(NULL);
    assert_int_equal(tg_get_device_info(NULL, &info, sizeof info), TG_STATUS_OK);
    assert_true(info.thread_count >= 1);
    assert_int_equal(tg_get_device_info(NULL, NULL, 0), TG_STATUS_INVALID_ARGUMENT);
    options =
        (tg_context_options){.struct_bytes = sizeof(tg_context_options), .thread_count = 1024};
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    tg_destroy_context(context);
}

/* Creates a default context in a child process with one variable set, and returns the status.
 * Returns 99 if the detail of a failure does not name the variable, and 100 if the context does not
 * have `isa` or `thread_count` (NULL, 0: any). */
static int create_in_child(const char *variable, const char *value, const char *isa,
                           int thread_count)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tg_context *context;
        tg_device_info info;
        setenv(variable, value, 1);
        tg_status status = tg_create_context(NULL, &context);
        if (status != TG_STATUS_OK)
            _exit(strstr(tg_get_error_detail(), variable) ? (int)status : 99);
        tg_get_device_info(context, &info, sizeof info);
        int is_right = (!isa || strcmp(info.isa, isa) == 0) &&
                       (!thread_count || info.thread_count == thread_count);
        tg_destroy_context(context);
        _exit(is_right ? 0 : 100);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_environment(void **state)
{
    (void)state;
    assert_int_equal(create_in_child("TILEGEMM_DEVICE", "cpu", NULL, 0), 0);
    assert_int_equal(create_in_child("TILEGEMM_DEVICE", "abacus", NULL, 0), TG_STATUS_UNKNOWN_NAME);
    assert_int_equal(create_in_child("TILEGEMM_ISA", "generic", "generic", 0), 0);
    assert_int_equal(create_in_child("TILEGEMM_ISA", "mmx", NULL, 0), TG_STATUS_UNKNOWN_NAME);
    assert_int_equal(create_in_child("TILEGEMM_THREADS", "3", NULL, 3), 0);
    static const char *const bad_counts[] = {"-1", "1025", "x", "3x", "99999999999999999999"};
    for (int i = 0; i < 5; i++)
        assert_int_equal(create_in_child("TILEGEMM_THREADS", bad_counts[i], NULL, 0),
                         TG_STATUS_INVALID_ARGUMENT);
}

/* A log file never gets the descriptor of a standard stream that the program has closed. */
static void test_log_descriptor(void **state)
{
    (void)state;
    char path[] = P_tmpdir "/tilegemm-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tg_context *context;
        const int expected = fcntl(STDERR_FILENO, F_DUPFD, STDERR_FILENO + 1);
        close(expected);
        setenv("TILEGEMM_LOG", path, 1);
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        int is_created = tg_create_context(NULL, &context) == TG_STATUS_OK;
        int is_free = fcntl(STDIN_FILENO, F_GETFD) < 0 && fcntl(STDOUT_FILENO, F_GETFD) < 0;
        int is_logging = fcntl(expected, F_GETFD) == FD_CLOEXEC;
        tg_destroy_context(context);
        _exit(is_created && is_free && is_logging && fcntl(expected, F_GETFD) < 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(path);
    assert_int_equal(status, 0);
}

static void test_sixteen_bit(void **state)
{
    (void)state;
    static const tg_type types[] = {TG_TYPE_BF16, TG_TYPE_FP16};
    for (int t = 0; t < 2; t++) {
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            float value = tg_decode_bits(types[t], (uint16_t)bits);
            uint16_t again = tg_encode_bits(types[t], value);
            if (value != value)
                assert_true(tg_decode_bits(types[t], again) != tg_decode_bits(types[t], again));
            else
                assert_int_equal(again, bits);
        }
    }
    assert_int_equal(tg_encode_bits(TG_TYPE_BF16, 1.0f + 0x1p-8f), 0x3f80); /* tie to even */
    assert_int_equal(tg_encode_bits(TG_TYPE_BF16, 1.0f + 0x3p-8f), 0x3f82);
    assert_int_equal(tg_encode_bits(TG_TYPE_FP16, 65519.0f), 0x7bff);
    assert_int_equal(tg_encode_bits(TG_TYPE_FP16, 65520.0f), 0x7c00);
    assert_int_equal(tg_encode_bits(TG_TYPE_FP16, 0x1p-25f), 0);
    assert_int_equal(tg_encode_bits(TG_TYPE_FP16, -0x1.8p-25f), 0x8001);
}

static void test_peak(void **state)
{
    (void)state;
    double flop_per_s = 0;
    assert_int_equal(tg_measure_peak(NULL, TG_TYPE_FP32, 1, &flop_per_s), TG_STATUS_OK);
    assert_true(flop_per_s > 1e6 && flop_per_s < 1e15);
    assert_int_equal(tg_measure_peak(NULL, TG_TYPE_FP32, 0, &flop_per_s),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_measure_peak(NULL, (tg_type)9, 1, &flop_per_s), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_measure_peak(NULL, TG_TYPE_FP32, 1, NULL), TG_STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment), /* runs first: its children want no default context */
        cmocka_unit_test(test_log_descriptor), cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_options),        cmocka_unit_test(test_sixteen_bit),
        cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
