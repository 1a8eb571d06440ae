/*
 * Tests public structs of other versions: smaller ones, larger ones, and illegal sizes.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tilegemm_lab.h"

#define NEWER_BYTES 16 /* a later version has more members */

static const float a[2] = {3, 4}, b[2] = {5, 6};

/* Makes D = A B = 39 with alpha 1. */
static tg_problem make_dot(float *d)
{
    return tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 1, 2),
                           tg_make_matrix(TG_TYPE_FP32, b, 2, 1),
                           tg_make_matrix(TG_TYPE_FP32, d, 1, 1));
}

/* Returns memory of exactly `struct_bytes` bytes, so that a sanitizer sees a read behind its end.
 * It holds `made` as far as it goes, then zeros. */
static void *resize(const void *made, size_t made_bytes, size_t struct_bytes)
{
    unsigned char *copy = calloc(1, struct_bytes);
    assert_non_null(copy);
    memcpy(copy, made, made_bytes < struct_bytes ? made_bytes : struct_bytes);
    memcpy(copy, &struct_bytes, sizeof struct_bytes);
    return copy;
}

static void assert_detail_has(const char *text)
{
    if (!strstr(tg_get_error_detail(), text))
        fail_msg("\"%s\" lacks \"%s\"", tg_get_error_detail(), text);
}

/* Gives the problem to every function that reads one; asserts that each returns `expected`. */
static void give_problem(const tg_problem *problem, tg_status expected)
{
    char text[640];
    tg_buffers buffers;
    tg_plan *plan;
    tg_chip chip;
    int count;
    assert_int_equal(tg_multiply(NULL, problem), expected);
    assert_int_equal(tg_multiply_on_stream(NULL, problem, NULL), expected);
    assert_int_equal(tg_create_plan(NULL, problem, NULL, &plan), expected);
    tg_destroy_plan(plan);
    assert_int_equal(tg_init_buffers(&buffers, sizeof buffers, problem), expected);
    assert_int_equal(tg_format_problem(problem, text, sizeof text), expected);
    assert_int_equal(tg_list_candidates(NULL, problem, NULL, 0, &count), expected);
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    assert_int_equal(tg_list_chip_candidates(&chip, problem, NULL, 0, &count), expected);
}

static void test_older_and_newer_problems(void **state)
{
    static const size_t sizes[] = {offsetof(tg_problem, precision),
                                   offsetof(tg_problem, activation), sizeof(tg_problem),
                                   sizeof(tg_problem) + NEWER_BYTES};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        float d = -1;
        tg_problem dot = make_dot(&d);
        dot.alpha = 2;
        tg_problem *other = resize(&dot, sizeof dot, sizes[i]);
        give_problem(other, TG_STATUS_OK);
        assert_true(d == 78);
        free(other);
    }
}

/* Members that an older version lacks have their defaults, whatever lies behind the struct. */
static void test_what_lies_behind_is_not_read(void **state)
{
    float d = -1;
    (void)state;
    tg_problem dot = make_dot(&d);
    dot.struct_bytes = offsetof(tg_problem, activation);
    dot.activation = (tg_activation)99;
    dot.a_scale = (tg_scale)99;
    assert_int_equal(tg_multiply(NULL, &dot), TG_STATUS_OK);
    assert_true(d == 39);
}

static void test_an_unknown_member_is_refused(void **state)
{
    float d = -1;
    (void)state;
    tg_problem dot = make_dot(&d);
    unsigned char *newer = resize(&dot, sizeof dot, sizeof dot + NEWER_BYTES);
    newer[sizeof dot + NEWER_BYTES - 1] = 1;
    give_problem((const tg_problem *)newer, TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_multiply(NULL, (const tg_problem *)newer), TG_STATUS_INVALID_ARGUMENT);
    assert_detail_has("tg_problem");
    assert_detail_has("is not zero");
    assert_detail_has("load a later libtilegemm");
    assert_true(d == -1);
    free(newer);
}

static void test_sizes_that_are_none(void **state)
{
    static const size_t sizes[] = {0, 1, sizeof(void *), sizeof(tg_problem) + 1, SIZE_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        float d = -1;
        tg_problem dot = make_dot(&d), kept = dot;
        tg_context *context;
        tg_device_info device;
        tg_plan *plan, *refused;
        assert_int_equal(tg_init_problem(&kept, sizes[i], &dot.a, &dot.b, &dot.d),
                         TG_STATUS_INVALID_ARGUMENT);
        assert_detail_has("tg_init_problem");
        assert_memory_equal(&kept, &dot, sizeof dot);
        assert_int_equal(tg_parse_problem("8x8x8", &kept, sizes[i]), TG_STATUS_INVALID_ARGUMENT);
        assert_memory_equal(&kept, &dot, sizeof dot);
        kept.struct_bytes = sizes[i];
        give_problem(&kept, TG_STATUS_INVALID_ARGUMENT);
        assert_true(d == -1);

        const tg_context_options options = {.struct_bytes = sizes[i]};
        assert_int_equal(tg_create_context(&options, &context), TG_STATUS_INVALID_ARGUMENT);
        assert_detail_has("sizeof(tg_context_options)");
        assert_null(context);
        const tg_plan_options plan_options = {.struct_bytes = sizes[i]};
        assert_int_equal(tg_create_plan(NULL, &dot, &plan_options, &refused),
                         TG_STATUS_INVALID_ARGUMENT);
        assert_detail_has("sizeof(tg_plan_options)");
        assert_null(refused);
        assert_int_equal(tg_create_plan(NULL, &dot, NULL, &plan), TG_STATUS_OK);
        const tg_buffers buffers = {.struct_bytes = sizes[i], .a = a, .b = b, .d = &d};
        assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_INVALID_ARGUMENT);
        assert_detail_has("sizeof(tg_buffers)");
        assert_true(d == -1);
        tg_plan_info info;
        assert_int_equal(tg_get_plan_info(plan, &info, sizes[i]), TG_STATUS_INVALID_ARGUMENT);
        assert_detail_has("sizeof(tg_plan_info)");
        assert_int_equal(tg_get_device_info(NULL, &device, sizes[i]), TG_STATUS_INVALID_ARGUMENT);
        assert_detail_has("sizeof(tg_device_info)");
        tg_destroy_plan(plan);
    }
}

static void test_older_options_and_buffers(void **state)
{
    (void)state;
    float d = -1;
    tg_problem dot = make_dot(&d);
    tg_context *context;
    tg_plan *plan;
    const tg_context_options options = {.struct_bytes = offsetof(tg_context_options, isa),
                                        .device = "cpu",
                                        .isa = "not read",
                                        .thread_count = -1};
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    assert_int_equal(tg_create_plan(context, &dot, NULL, &plan), TG_STATUS_OK);
    const tg_buffers buffers = {.struct_bytes = offsetof(tg_buffers, bias),
                                .a = a,
                                .b = b,
                                .d = &d,
                                .workspace = &d,
                                .workspace_bytes = 1};
    assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
    assert_true(d == 39);
    tg_destroy_plan(plan);
    tg_destroy_context(context);
}

/* Fills infos of every possible size. Asserts that the bytes behind them stay, and that those
 * behind what the library knows become zero. */
static void test_infos_of_other_sizes(void **state)
{
    /* These members have 8 bytes. */
    static const size_t members[] = {offsetof(tg_device_info, device),
                                     offsetof(tg_device_info, name), offsetof(tg_device_info, isa),
                                     offsetof(tg_device_info, l2_bytes),
                                     offsetof(tg_device_info, memory_bytes_per_s)};
    unsigned char memory[sizeof(tg_device_info) + 2 * NEWER_BYTES];
    tg_device_info info;
    (void)state;
    assert_int_equal(tg_get_device_info(NULL, &info, sizeof info), TG_STATUS_OK);
    assert_int_equal(info.struct_bytes, sizeof info);
    for (size_t size = offsetof(tg_device_info, isa); size <= sizeof info + NEWER_BYTES;
         size += sizeof(size_t)) {
        const size_t filled_bytes = size < sizeof info ? size : sizeof info;
        memset(memory, 0xee, sizeof memory);
        assert_int_equal(tg_get_device_info(NULL, (tg_device_info *)memory, size), TG_STATUS_OK);
        assert_memory_equal(memory, &size, sizeof size);
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
            if (members[i] < filled_bytes)
                assert_memory_equal(memory + members[i], (unsigned char *)&info + members[i], 8);
        }
        for (size_t i = filled_bytes; i < sizeof memory; i++)
            assert_int_equal(memory[i], i < size ? 0 : 0xee);
    }
}

/* A context may get the address of one that was destroyed. */
static void test_numbers_of_contexts(void **state)
{
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cpu"};
    int64_t last = tg_get_context_number(NULL);
    (void)state;
    assert_true(last > 0);
    for (int i = 0; i < 3; i++) {
        tg_context *context = NULL;
        assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
        assert_true(tg_get_context_number(context) > last);
        last = tg_get_context_number(context);
        tg_destroy_context(context);
    }
}

static void test_defaults_of_constructors(void **state)
{
    tg_context_options options;
    tg_plan_options plan_options;
    tg_buffers buffers;
    const tg_context_options default_options = {.struct_bytes = sizeof options};
    const tg_plan_options default_plan_options = {.struct_bytes = sizeof plan_options};
    const tg_buffers no_buffers = {.struct_bytes = sizeof buffers};
    (void)state;
    memset(&options, 0xee, sizeof options);
    assert_int_equal(tg_init_context_options(&options, sizeof options), TG_STATUS_OK);
    assert_memory_equal(&options, &default_options, sizeof options);
    assert_int_equal(tg_init_plan_options(&plan_options, sizeof plan_options), TG_STATUS_OK);
    assert_memory_equal(&plan_options, &default_plan_options, sizeof plan_options);
    assert_int_equal(tg_init_buffers(&buffers, sizeof buffers, NULL), TG_STATUS_OK);
    assert_memory_equal(&buffers, &no_buffers, sizeof buffers);

    tg_problem problem = make_dot(NULL);
    problem.bias_data = &buffers;
    problem.d_scale_data = b;
    assert_int_equal(tg_init_buffers(&buffers, sizeof buffers, &problem), TG_STATUS_OK);
    assert_ptr_equal(buffers.a, a);
    assert_ptr_equal(buffers.b, b);
    assert_ptr_equal(buffers.bias, &buffers);
    assert_ptr_equal(buffers.d_scale, b);
    assert_int_equal(tg_init_problem(NULL, sizeof problem, &problem.a, &problem.b, &problem.d),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_init_problem(&problem, sizeof problem, &problem.a, NULL, &problem.d),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_detail_has("b = NULL");
    assert_int_equal(tg_init_buffers(NULL, 0, NULL), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_init_context_options(NULL, 0), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_init_plan_options(NULL, 0), TG_STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older_and_newer_problems),
        cmocka_unit_test(test_what_lies_behind_is_not_read),
        cmocka_unit_test(test_an_unknown_member_is_refused),
        cmocka_unit_test(test_sizes_that_are_none),
        cmocka_unit_test(test_older_options_and_buffers),
        cmocka_unit_test(test_infos_of_other_sizes),
        cmocka_unit_test(test_numbers_of_contexts),
        cmocka_unit_test(test_defaults_of_constructors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
