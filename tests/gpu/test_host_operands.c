/*
 * Products of the processor's memory on a GPU, in so little memory that they take many panels, are
 * right in every element, and write nothing beside D.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "harness/panel_product.h"

/* Multiplies the problem of the text in panels of at most `memory_bytes`, 0: by tg_multiply, from
 * every placement. Returns the panels. */
static int64_t multiply(tg_context *context, const char *text, int64_t memory_bytes,
                        int is_in_place)
{
    tg_panel_run run = {.panels.panel_count = 1};
    for (int placement = 0; placement < PLACEMENT_COUNT; placement++) {
        const char *fault = panel_product_find_fault(context, text, memory_bytes, is_in_place,
                                                     (operand_placement)placement, &run);
        if (fault)
            fail_msg("%s", fault);
    }
    return run.panels.panel_count;
}

static void test_panels(void **state)
{
    static const struct {
        const char *text;
        int is_in_place;
    } cases[] = {{"301x203x97", 0},
                 {"301x203x97:tt:fp64:beta=1", 1},
                 {"203x301x97:nt:bf16:d=fp32:bias=col:act=relu", 0},
                 {"301x203x97:tn:lda=303:ldb=207:ldd=211:bias=row:beta=-0.5", 0},
                 {"200x300x100:fp8_e4m3:d=bf16:sa=vector:sb=vector", 0},
                 {"301x203x97:fp16:dcol:beta=1", 1},
                 {"61x53x47:batch=23:beta=1", 1},
                 {"150x130x110:batch=3:bsa=0:tn", 0},
                 {"150x130x110:rsa=-110:csb=3:rsb=400:rsd=2:csd=301", 0},
                 {"150x130x110:rsa=0:beta=1:rsc=0:csc=0", 0},
                 {"1x9001x113", 0},
                 {"9001x1x113:nt", 0},
                 {"7x11x30011:bf16", 0},
                 {"33x47x6001:fp64:bias=row:alpha=-3:act=relu", 0},
                 {"48x31x5000:nt:fp64:dcol:bias=col", 0},
                 {"301x203x0:beta=1", 1},
                 {"301x203x5:alpha=0:beta=1", 0},
                 {"1031x1033x517", 0},
                 {"1x1x1", 0}};
    tg_context *context = gpu_open_context();
    int64_t panel_count = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        multiply(context, cases[i].text, 0, cases[i].is_in_place);
        panel_count += multiply(context, cases[i].text, 200001, cases[i].is_in_place);
        multiply(context, cases[i].text, 900000, cases[i].is_in_place);
    }
    assert_true(panel_count > 200);
    tg_destroy_context(context);
}

/* Panels of several blocks of pinned memory, in the memory that the context allows. */
static void test_large_panels(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    multiply(context, "2500x2300x3001", 48 << 20, 0);
    multiply(context, "1200x900x4099:tn:fp64", 40 << 20, 0);
    tg_destroy_context(context);
}

static tg_status multiply_small(tg_context *context, const void *a, const void *b, void *d)
{
    const tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 8, 8),
                                               tg_make_matrix(TG_TYPE_FP32, b, 8, 8),
                                               tg_make_matrix(TG_TYPE_FP32, d, 8, 8));
    return tg_multiply(context, &problem);
}

/* Operands are all in one memory. The message names one of each. */
static void test_mixtures(void **state)
{
    tg_context *context = gpu_open_context();
    float host[64] = {0}, d[64];
    void *device = NULL;
    (void)state;
    assert_int_equal(tg_allocate_memory(context, sizeof host, &device), 0);
    assert_int_equal(tg_copy_to_device(context, device, host, sizeof host), 0);
    assert_int_equal(multiply_small(context, host, device, d), TG_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tg_get_error_detail(), "D at"));
    assert_non_null(strstr(tg_get_error_detail(), "B at"));
    assert_int_equal(multiply_small(context, host, host, device), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(multiply_small(context, device, device, d), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(multiply_small(context, host, host, d), TG_STATUS_OK);
    assert_int_equal(multiply_small(context, host, host, host), TG_STATUS_OVERLAP);
    tg_release_memory(context, device);
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_panels),
                                       cmocka_unit_test(test_large_panels),
                                       cmocka_unit_test(test_mixtures)};
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
