/* Runs cases of attention on a GPU.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu_attention.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"
#include "core/types.h"
#include "gpu.h"
#include "harness/stride.h"

#define CASE_COUNT 400
#define LIST_COUNT 5 /* slopes and four lists */

/* The memory of a case on the device. */
typedef struct device_case {
    tg_attention attention;
    void *memory[TGI_ATTENTION_TENSOR_COUNT], *list[LIST_COUNT];
} device_case;

static void *copy_in(tg_context *context, const void *host, int64_t bytes)
{
    void *memory = NULL;
    assert_int_equal(tg_allocate_memory(context, bytes + 1, &memory), TG_STATUS_OK);
    assert_int_equal(tg_copy_to_device(context, memory, host, bytes), TG_STATUS_OK);
    return memory;
}

static void open_device_case(tg_context *context, const attention_case *c, device_case *made)
{
    *made = (device_case){.attention = c->attention};
    tg_attention *a = &made->attention;
    const int64_t b = a->batch_count;
    tg_heads *const heads[] = {&a->q, &a->k, &a->v, &a->d, &a->bias, &a->log_sum_exp};
    const struct {
        const void **at;
        int64_t bytes;
    } lists[LIST_COUNT] = {{&a->slopes, tgi_type_bytes(tgi_attention_sum_type(a)) * a->head_count},
                           {(const void **)&a->query_offsets, 4 * (b + 1)},
                           {(const void **)&a->key_offsets, 4 * (b + 1)},
                           {(const void **)&a->key_lengths, 4 * b},
                           {(const void **)&a->pages, 4 * b * a->pages_stride}};
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT; id++) {
        if (!c->memory[id])
            continue;
        made->memory[id] = copy_in(context, c->memory[id], c->bytes[id]);
        heads[id]->data = (char *)made->memory[id] + ((char *)heads[id]->data - c->memory[id]);
    }
    for (int i = 0; i < LIST_COUNT; i++) {
        if (*lists[i].at)
            *lists[i].at = made->list[i] = copy_in(context, *lists[i].at, lists[i].bytes);
    }
}

/* Copies the outputs to the host's case and frees the device's memory. */
static void close_device_case(tg_context *context, attention_case *c, device_case *made)
{
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT; id++) {
        if (made->memory[id] && (id == TGI_ATTENTION_D || id == TGI_ATTENTION_LOG_SUM_EXP))
            assert_int_equal(
                tg_copy_from_device(context, c->memory[id], made->memory[id], c->bytes[id]),
                TG_STATUS_OK);
        tg_release_memory(context, made->memory[id]);
    }
    for (int i = 0; i < LIST_COUNT; i++)
        tg_release_memory(context, made->list[i]);
}

tg_status gpu_attend(tg_context *context, attention_case *c, const tg_attention *broken)
{
    device_case device;
    attention_case copy = *c;
    if (broken)
        copy.attention = *broken;
    open_device_case(context, &copy, &device);
    const tg_status status = tg_attend(context, &device.attention);
    close_device_case(context, c, &device);
    return status;
}

void gpu_check_attention(tg_context *context, attention_case *c, int number)
{
    char text[1024];
    const tg_status status = gpu_attend(context, c, NULL);
    const double worst = status ? INFINITY : case_compare(c, "cuda");
    if (status || !(worst <= 1.0)) {
        tg_format_attention(&c->attention, text, sizeof text);
        fail_msg("case %d %s: %s, %g of the bound", number, text,
                 status ? tg_get_error_detail() : "wrong", worst);
    }
    case_close(c);
}

void gpu_check_hostile(tg_context *context, const tg_type types[2], attention_fill fill,
                       uint64_t seed)
{
    uint64_t random = stride_choose_seed(seed);
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        tg_attention a = draw_attention(&random);
        attention_case c;
        a.type = types[i % 2];
        case_open(&c, &a, fill, i % 3 != 0, &random);
        gpu_check_attention(context, &c, i);
    }
}

void gpu_check_long(tg_context *context, const tg_type types[2], uint64_t seed)
{
    static const int64_t lengths[][3] = {{1, 1, 5003},  {2, 3, 4096},   {1, 16, 8191},
                                         {1, 77, 3001}, {1, 200, 2500}, {3, 129, 1100}};
    const int case_count = 2 * (int)(sizeof lengths / sizeof lengths[0]);
    uint64_t random = stride_choose_seed(seed);
    for (int i = stride_get_first(); i < case_count; i += stride_get()) {
        const int64_t *length = lengths[i / 2];
        tg_attention a;
        attention_case c;
        tg_init_attention(&a, sizeof a, types[i % 2], length[0], 4, 2, length[1], length[2],
                          i % 4 < 2 ? 64 : 128);
        a.causal = (tg_causal)(i % 3);
        a.has_log_sum_exp = 1;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        gpu_check_attention(context, &c, i);
    }
}

void gpu_check_ones(tg_context *context, const tg_type types[2], int case_count, double units,
                    uint64_t seed)
{
    uint64_t random = stride_choose_seed(seed);
    for (int i = stride_get_first(); i < case_count; i += stride_get()) {
        tg_attention a = draw_attention(&random);
        attention_case c;
        a.type = types[i % 2];
        case_open(&c, &a, FILL_V_ONES, 0, &random);
        assert_int_equal(gpu_attend(context, &c, NULL), TG_STATUS_OK);
        const tgi_attention_tensor d = tgi_attention_get(&c.attention, TGI_ATTENTION_D);
        const int64_t count =
            a.has_query_offsets ? 0 : d.counts[0] * d.counts[1] * d.counts[2] * d.counts[3];
        const double most = units * (a.type == TG_TYPE_FP64 ? 0x1p-53 : 0x1p-24);
        for (int64_t e = 0; e < count; e++) {
            const double value = check_get_element(a.type, c.attention.d.data, e);
            if (!(fabs(value - 1.0) <= most) && value != 0.0)
                fail_msg("case %d: %.17g", i, value);
        }
        assert_true(case_compare(&c, "cuda") <= 1.0);
        case_close(&c);
    }
}

void gpu_check_batch_invariance(tg_context *context, tg_type type)
{
    static const int64_t lengths[][2] = {{1, 3000}, {1, 40}, {70, 70}, {300, 500}};
    uint64_t random = 26;
    for (int i = 0; i < 4; i++) {
        tg_attention a;
        attention_case c;
        tg_init_attention(&a, sizeof a, type, 9, 4, 2, lengths[i][0], lengths[i][1], 64);
        a.is_batch_invariant = 1;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        assert_int_equal(gpu_attend(context, &c, NULL), TG_STATUS_OK);
        assert_true(case_compare(&c, "cuda") <= 1.0);
        const size_t bytes = (size_t)c.bytes[TGI_ATTENTION_D];
        char *whole = malloc(bytes);
        assert_non_null(whole);
        memcpy(whole, c.memory[TGI_ATTENTION_D], bytes);
        a = c.attention;
        a.batch_count = 1;
        case_poison(&c);
        assert_int_equal(gpu_attend(context, &c, &a), TG_STATUS_OK);
        const size_t first = (size_t)((char *)a.d.data - c.memory[TGI_ATTENTION_D]);
        const size_t entry = (size_t)(a.d.batch_stride * tgi_type_bytes(type));
        assert_memory_equal((char *)a.d.data, whole + first, entry);
        free(whole);
        case_close(&c);
    }
}

/* Makes an attention a little wrong, as a broken kernel would compute it. */
static void break_attention(tg_attention *a, int mutant)
{
    switch (mutant) {
    case 0:
        a->causal = TG_CAUSAL_TOP_LEFT;
        break;
    case 1:
        a->scale *= 1.0 + 0x1p-4;
        break;
    case 2:
        a->keys_before -= 1;
        break;
    case 3:
        a->n -= 1;
        break;
    default:
        a->v.row_stride = 0;
        break;
    }
}
#define MUTANT_COUNT 5

void gpu_check_mutants(tg_context *context, tg_type type)
{
    for (int mutant = 0; mutant < MUTANT_COUNT; mutant++) {
        tg_attention a;
        attention_case c;
        uint64_t random = 15;
        tg_init_attention(&a, sizeof a, type, 1, 4, 2, 50, 70, 24);
        a.causal = TG_CAUSAL_BOTTOM_RIGHT;
        a.keys_before = 5;
        a.has_bias = a.has_slopes = 1;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        assert_int_equal(gpu_attend(context, &c, NULL), TG_STATUS_OK);
        assert_true(case_compare(&c, "cuda") <= 1.0);
        tg_attention broken = c.attention;
        break_attention(&broken, mutant);
        case_poison(&c);
        assert_int_equal(gpu_attend(context, &c, &broken), TG_STATUS_OK);
        if (case_compare(&c, "cuda") <= 1.0)
            fail_msg("mutant %d passes", mutant);
        case_close(&c);
    }
}
