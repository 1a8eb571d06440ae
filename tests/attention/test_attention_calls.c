/*
 * Attention refuses these, and names the argument. Its text is read back.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attention/oracle.h"
#include "check/attention_check.h"
#include "check/check.h"

static tg_attention make_small(void)
{
    tg_attention a;
    assert_int_equal(tg_init_attention(&a, sizeof a, TG_TYPE_FP32, 2, 4, 2, 5, 7, 8), TG_STATUS_OK);
    return a;
}

/* Fails unless the attention is refused with this status and a detail that begins so. */
static void expect_refusal(const tg_attention *a, tg_status status, const char *start)
{
    tg_attention_plan *plan;
    assert_int_equal(tg_create_attention_plan(NULL, a, &plan), status);
    assert_null(plan);
    if (strncmp(tg_get_error_detail(), start, strlen(start)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", tg_get_error_detail(), start);
}

#define REFUSE(member, value, status, start)                                                       \
    do {                                                                                           \
        tg_attention changed = make_small();                                                       \
        changed.member = (value);                                                                  \
        expect_refusal(&changed, TG_STATUS_##status, start);                                       \
    } while (0)

static void test_plan_refusals(void **state)
{
    (void)state;
    REFUSE(batch_count, -1, INVALID_ARGUMENT, "batch_count = -1; pass 0 or more");
    REFUSE(kv_head_count, 3, INVALID_ARGUMENT, "kv_head_count = 3 does not divide head_count = 4");
    REFUSE(head_size, 0, INVALID_ARGUMENT, "head_size = 0; pass 1 or more");
    REFUSE(m, INT64_MAX, SIZE_OVERFLOW, "m = 9223372036854775807 is above");
    REFUSE(keys_before, -2, INVALID_ARGUMENT, "keys_before = -2");
    REFUSE(scale, NAN, INVALID_ARGUMENT, "scale = nan");
    REFUSE(soft_cap, -1.0, INVALID_ARGUMENT, "soft_cap = -1");
    REFUSE(type, TG_TYPE_FP8_E4M3, UNSUPPORTED, "type = 4 has no attention");
    REFUSE(causal, (tg_causal)7, INVALID_ARGUMENT, "causal = 7");
    REFUSE(d.row_stride, 3, OVERLAP, "d has a stride of 3 elements");
    REFUSE(k.row_stride, INT64_MIN, SIZE_OVERFLOW, "k: 7 entries with row_stride");
    REFUSE(struct_bytes, 8, INVALID_ARGUMENT, "struct_bytes = 8 is not a size of a tg_attention");
    tg_attention paged = make_small();
    paged.page_rows = 4;
    expect_refusal(&paged, TG_STATUS_INVALID_ARGUMENT, "pages_stride = 0; pass 2 or more");
}

static void expect_execution(const tg_attention *a, tg_status status, const char *start)
{
    assert_int_equal(tg_attend(NULL, a), status);
    if (strncmp(tg_get_error_detail(), start, strlen(start)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", tg_get_error_detail(), start);
}

static void test_execution_refusals(void **state)
{
    (void)state;
    static float memory[4096];
    static const int32_t lengths[] = {7, 8}, offsets[] = {0, 5, 3}, pages[] = {0, 1, 2, -1};
    tg_attention a = make_small();
    a.q.data = memory, a.k.data = memory + 512, a.v.data = memory + 1024;
    expect_execution(&a, TG_STATUS_INVALID_ARGUMENT, "d = NULL, but this attention uses it");
    a.d.data = memory + 319; /* the last element of q */
    expect_execution(&a, TG_STATUS_OVERLAP, "d at ");
    a.d.data = memory + 2048;
    a.has_key_lengths = 1, a.key_lengths = lengths;
    expect_execution(&a, TG_STATUS_INVALID_ARGUMENT, "key_lengths[1] = 8; pass 0 .. 7");
    a.has_key_lengths = 0;
    a.has_query_offsets = 1, a.query_offsets = offsets;
    expect_execution(&a, TG_STATUS_INVALID_ARGUMENT, "query_offsets[1 .. 2] = 5, 3");
    a.has_query_offsets = 0;
    a.page_rows = 4, a.page_count = 3, a.pages_stride = 2, a.pages = pages;
    expect_execution(&a, TG_STATUS_INVALID_ARGUMENT, "pages[1] of batch entry 1 = -1; pass 0 .. 2");
    for (int i = 0; i < 4096; i++)
        assert_true(memory[i] == 0.0f);
}

/* D may lie in the gaps of an input, and is then what it is elsewhere; one element further on it
 * shares memory. */
static void test_gaps(void **state)
{
    (void)state;
    static float memory[4096], expected[320];
    static int32_t lengths[] = {7, 3};
    tg_attention a = make_small();
    for (int i = 0; i < 1024; i++)
        memory[i] = (float)(i % 17) / 8 - 1;
    a.q.data = memory, a.k.data = memory + 1024, a.v.data = memory + 1536, a.d.data = expected;
    a.q.row_stride = 17; /* rows of 8 elements, then 9 of no use */
    a.q.head_stride = 5 * 17, a.q.batch_stride = 4 * 5 * 17;
    a.has_key_lengths = 1, a.key_lengths = lengths;
    assert_int_equal(tg_attend(NULL, &a), TG_STATUS_OK);
    a.d = a.q;
    a.d.data = memory + 8;
    assert_int_equal(tg_attend(NULL, &a), TG_STATUS_OK);
    for (int i = 0; i < 40; i++) /* all rows of all heads */
        assert_memory_equal(memory + 17 * i + 8, expected + 8 * i, 8 * sizeof(float));
    a.d.data = memory + 9;
    assert_int_equal(tg_attend(NULL, &a), TG_STATUS_OK);
    a.d.data = memory + 10; /* its last element is the first of the next row of Q */
    expect_execution(&a, TG_STATUS_OVERLAP, "d at ");
    assert_non_null(strstr(tg_get_error_detail(), "shares memory with q at "));
    a.d.data = memory + 7;
    expect_execution(&a, TG_STATUS_OVERLAP, "d at ");
    a.d.data = (float *)lengths + 1;
    expect_execution(&a, TG_STATUS_OVERLAP, "d at ");
    assert_non_null(strstr(tg_get_error_detail(), "shares memory with key_lengths at "));
    assert_true(lengths[0] == 7 && lengths[1] == 3);
}

#define FIELD 1024 /* floats that the tensors of test_overlap lie in */

/* Draws small strides and a start in the field. Returns 0 if the tensor reaches out of it. */
static int draw_place(tg_heads *heads, const int64_t counts[4], float *field, uint64_t *random)
{
    int64_t *const strides[] = {&heads->batch_stride, &heads->head_stride, &heads->row_stride,
                                &heads->element_stride};
    int64_t low = 0, high = 0;
    for (int i = 0; i < 4; i++) {
        *strides[i] = (int64_t)(check_next_random(random) % 31) - 8;
        if (i < 3 && check_next_random(random) % 2)
            *strides[i] *= 8;
        const int64_t reach = (counts[i] - 1) * *strides[i];
        *(reach < 0 ? &low : &high) += reach;
    }
    const int64_t at = (int64_t)(check_next_random(random) % FIELD);
    heads->data = field + at;
    return at + low >= 0 && at + high < FIELD;
}

/* Marks the tensor's elements with `bit`. */
static void mark(const tg_attention *a, int id, const float *field, unsigned char *marks, int bit)
{
    const tgi_attention_tensor t = tgi_attention_get(a, (tgi_attention_tensor_id)id);
    const float *data = t.heads->data;
    for (int64_t b = 0; b < t.counts[0]; b++)
        for (int64_t h = 0; h < t.counts[1]; h++)
            for (int64_t i = 0; i < t.counts[2]; i++)
                for (int64_t e = 0; e < t.counts[3]; e++)
                    marks[data - field + check_find_element(t.heads, (check_place){b, i}, h, e)] |=
                        (unsigned char)bit;
}

/* An attention is refused if D shares an element with an input, and only then: D may lie in their
 * gaps. */
static void test_overlap(void **state)
{
    (void)state;
    static float field[FIELD];
    uint64_t random = 8;
    int shared_count = 0, apart_count = 0;
    for (int turn = 0; turn < 200000; turn++) {
        unsigned char marks[FIELD] = {0};
        tg_attention a;
        tg_attention_plan *plan;
        int is_shared = 0, is_inside = 1;
        const int64_t kv_heads = 1 + (int64_t)(check_next_random(&random) % 2);
        tg_init_attention(&a, sizeof a, TG_TYPE_FP32, 1 + (int64_t)(check_next_random(&random) % 2),
                          kv_heads * 2, kv_heads, 1 + (int64_t)(check_next_random(&random) % 4),
                          1 + (int64_t)(check_next_random(&random) % 4),
                          1 + (int64_t)(check_next_random(&random) % 5));
        tg_heads *const heads[] = {&a.q, &a.k, &a.v, &a.d};
        for (int id = 0; id < 4 && is_inside; id++)
            is_inside = draw_place(heads[id], tgi_attention_get(&a, id).counts, field, &random);
        if (!is_inside || tg_create_attention_plan(NULL, &a, &plan) != TG_STATUS_OK)
            continue;
        for (int id = 0; id < 4; id++)
            mark(&a, id, field, marks, id == TGI_ATTENTION_D ? 2 : 1);
        for (int i = 0; i < FIELD; i++)
            is_shared |= marks[i] == 3;
        *(is_shared ? &shared_count : &apart_count) += 1;
        const tg_status status = tg_execute_attention(plan, &a, NULL, 0, NULL);
        tg_destroy_attention_plan(plan);
        assert_int_equal(status, is_shared ? TG_STATUS_OVERLAP : TG_STATUS_OK);
    }
    if (shared_count < 500 || apart_count < 500)
        fail_msg("%d shared, %d apart", shared_count, apart_count);
}

static void test_workspace(void **state)
{
    (void)state;
    static float memory[4096];
    static _Alignas(64) char little[64];
    tg_attention a = make_small();
    tg_attention_plan *plan;
    a.q.data = memory, a.k.data = memory + 512, a.v.data = memory + 1024, a.d.data = memory + 2048;
    assert_int_equal(tg_create_attention_plan(NULL, &a, &plan), TG_STATUS_OK);
    assert_true(tg_get_attention_workspace_bytes(plan) > 64);
    assert_non_null(strstr(tg_get_attention_kernel(plan), "cpu_attention_"));
    assert_int_equal(tg_execute_attention(plan, &a, little, 64, NULL),
                     TG_STATUS_WORKSPACE_TOO_SMALL);
    assert_int_equal(tg_execute_attention(plan, &a, little + 1, INT64_MAX, NULL),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_execute_attention(plan, &a, NULL, 0, NULL), TG_STATUS_OK);
    tg_destroy_attention_plan(plan);
    tg_destroy_attention_plan(NULL);
}

/* A drawn attention is read back from its text as it was. */
static void test_text(void **state)
{
    (void)state;
    uint64_t random = 6;
    for (int i = 0; i < 300; i++) {
        const tg_attention drawn = draw_attention(&random);
        attention_case c;
        tg_attention read;
        char text[1024], again[1024];
        case_open(&c, &drawn, FILL_UNIFORM_HEADS, i % 2, &random);
        assert_int_equal(tg_format_attention(&c.attention, text, sizeof text), TG_STATUS_OK);
        assert_int_equal(tg_parse_attention(text, &read, sizeof read), TG_STATUS_OK);
        assert_int_equal(tg_format_attention(&read, again, sizeof again), TG_STATUS_OK);
        assert_string_equal(text, again);
        assert_true(read.scale == c.attention.scale && read.n == c.attention.n);
        assert_int_equal(read.k.row_stride, c.attention.k.row_stride);
        assert_int_equal(read.d.head_stride, c.attention.d.head_stride);
        case_close(&c);
    }
    static const char *const wrong[] = {
        "", "1,2,3", "1,1,1,1,1,1:what", "1,1,1,1,1,x", "1,1,1,1,1,1:dv=", "1,1,1,1,1,1:qz=3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tg_attention read;
        assert_int_equal(tg_parse_attention(wrong[i], &read, sizeof read),
                         TG_STATUS_INVALID_ARGUMENT);
    }
    char little[4];
    const tg_attention a = make_small();
    assert_int_equal(tg_format_attention(&a, little, sizeof little), TG_STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_refusals), cmocka_unit_test(test_execution_refusals),
        cmocka_unit_test(test_gaps),          cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_workspace),     cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
