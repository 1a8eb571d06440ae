#include "attention_memory.h"

#include <string.h>

tg_type cli_get_attention_sum_type(const tg_attention *a)
{
    return a->type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
}

void cli_list_attention(tg_attention *a, cli_attention_tensor tensors[cli_attention_tensors])
{
    const tg_type sums = cli_get_attention_sum_type(a);
    const int64_t h = a->head_count, kv = a->kv_head_count;
    int64_t b = a->batch_count, m = a->m, keys_b = b, n = a->n;
    if (a->has_query_offsets) {
        m = a->query_offsets[a->batch_count];
        b = 1;
    }
    if (a->page_rows > 0) {
        n = a->page_rows;
        keys_b = a->page_count;
    } else if (a->has_key_offsets) {
        n = a->key_offsets[a->batch_count];
        keys_b = 1;
    }
    const cli_attention_tensor list[cli_attention_tensors] = {
        {&a->q, 1, 0, a->type, {b, h, m, a->head_size}},
        {&a->k, 1, 0, a->type, {keys_b, kv, n, a->head_size}},
        {&a->v, 1, 0, a->type, {keys_b, kv, n, a->v_head_size}},
        {&a->d, 1, 1, a->type, {b, h, m, a->v_head_size}},
        {&a->bias, a->has_bias, 0, sums, {b, h, m, a->n}},
        {&a->log_sum_exp, a->has_log_sum_exp, 1, sums, {b, h, m, 1}}};
    memcpy(tensors, list, sizeof list);
}

int64_t cli_find_attention_reach(const cli_attention_tensor *tensor, int64_t *low)
{
    const tg_heads *heads = tensor->heads;
    const int64_t strides[] = {heads->batch_stride, heads->head_stride, heads->row_stride,
                               heads->element_stride};
    int64_t high = 1;
    *low = 0;
    for (int i = 0; i < 4; i++) {
        if (tensor->counts[i] == 0)
            return 0;
        const int64_t reach = (tensor->counts[i] - 1) * strides[i];
        *(reach < 0 ? low : &high) += reach;
    }
    return high - *low;
}

/* Copies `size_bytes` bytes from `host` into new memory of the device. */
static tg_status copy_in(tg_context *context, const void *host, int64_t size_bytes, void **memory)
{
    tg_status status = tg_allocate_memory(context, size_bytes > 0 ? size_bytes : 1, memory);
    return status == TG_STATUS_OK && size_bytes > 0
               ? tg_copy_to_device(context, *memory, host, size_bytes)
               : status;
}

static tg_status place_tensors(cli_placed_attention *placed)
{
    cli_attention_tensor tensors[cli_attention_tensors];
    tg_status status = TG_STATUS_OK;
    cli_list_attention(&placed->attention, tensors);
    for (int i = 0; i < cli_attention_tensors && status == TG_STATUS_OK; i++) {
        int64_t low;
        if (!tensors[i].is_used)
            continue;
        const int64_t bytes = tg_get_type_bytes(tensors[i].type);
        const int64_t count = cli_find_attention_reach(&tensors[i], &low);
        char *const first = (char *)tensors[i].heads->data + low * bytes;
        status = copy_in(placed->context, first, count * bytes, &placed->memory[i]);
        tensors[i].heads->data = (char *)placed->memory[i] - low * bytes;
    }
    return status;
}

static tg_status place_lists(cli_placed_attention *placed)
{
    tg_attention *a = &placed->attention;
    void **const memory = placed->memory + cli_attention_tensors;
    const int64_t sum_bytes = tg_get_type_bytes(cli_get_attention_sum_type(a));
    const int64_t offset_bytes = (a->batch_count + 1) * (int64_t)sizeof *a->query_offsets;
    const struct {
        int is_used;
        const void *data;
        int64_t size_bytes;
    } lists[cli_attention_lists] = {
        {a->has_slopes, a->slopes, a->head_count * sum_bytes},
        {a->has_query_offsets, a->query_offsets, offset_bytes},
        {a->has_key_offsets, a->key_offsets, offset_bytes},
        {a->has_key_lengths, a->key_lengths, a->batch_count * (int64_t)sizeof *a->key_lengths},
        {a->page_rows > 0, a->pages, a->batch_count * a->pages_stride * (int64_t)sizeof *a->pages}};
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < cli_attention_lists && status == TG_STATUS_OK; i++) {
        if (lists[i].is_used)
            status = copy_in(placed->context, lists[i].data, lists[i].size_bytes, &memory[i]);
    }
    a->slopes = memory[0];
    a->query_offsets = memory[1];
    a->key_offsets = memory[2];
    a->key_lengths = memory[3];
    a->pages = memory[4];
    return status;
}

tg_status cli_place_attention(tg_context *context, const tg_attention *host,
                              cli_placed_attention *placed)
{
    tg_device_info device;
    *placed = (cli_placed_attention){.context = context, .attention = *host};
    tg_status status = tg_get_device_info(context, &device, sizeof device);
    if (status != TG_STATUS_OK || strncmp(device.device, "cuda", 4) != 0)
        return status;
    status = place_tensors(placed);
    return status == TG_STATUS_OK ? place_lists(placed) : status;
}

/* Copies the outputs from the device to those of `host`, or with `is_poison` fills both. */
static tg_status move_outputs(const cli_placed_attention *placed, const tg_attention *host,
                              int is_poison)
{
    tg_attention copy = *host;
    cli_attention_tensor tensors[cli_attention_tensors];
    tg_status status = TG_STATUS_OK;
    cli_list_attention(&copy, tensors);
    for (int i = 0; i < cli_attention_tensors && status == TG_STATUS_OK; i++) {
        int64_t low;
        if (!tensors[i].is_used || !tensors[i].is_output)
            continue;
        const int64_t element_bytes = tg_get_type_bytes(tensors[i].type);
        const int64_t bytes = cli_find_attention_reach(&tensors[i], &low) * element_bytes;
        char *const first = (char *)tensors[i].heads->data + low * element_bytes;
        void *const placed_first = placed->memory[i];
        if (is_poison && bytes > 0)
            memset(first, 0xff, (size_t)bytes);
        if (!placed_first || bytes == 0)
            continue;
        status = is_poison ? tg_copy_to_device(placed->context, placed_first, first, bytes)
                           : tg_copy_from_device(placed->context, first, placed_first, bytes);
    }
    return status;
}

tg_status cli_poison_attention(const cli_placed_attention *placed, const tg_attention *host)
{
    return move_outputs(placed, host, 1);
}

tg_status cli_fetch_attention(const cli_placed_attention *placed, const tg_attention *host)
{
    return move_outputs(placed, host, 0);
}

void cli_release_attention(cli_placed_attention *placed)
{
    for (int i = 0; i < cli_attention_tensors + cli_attention_lists; i++) {
        if (placed->memory[i])
            tg_release_memory(placed->context, placed->memory[i]);
        placed->memory[i] = NULL;
    }
}
