/* Unpacks streams, see core/pack_model.h. */
#include "core/pack.h"

#include <stddef.h>

#include "core/alloc.h"
#include "core/pack_model.h"
#include "core/status.h"

static tg_status fail_damaged(void)
{
    return tgi_status_fail(TG_STATUS_DEVICE_FAILURE,
                           "a part of the library is damaged; install it again");
}

/* Begins to read a stream, of which `bytes` bytes are wanted. *made receives a model for
 * tgi_alloc_free. */
static tg_status start(const unsigned char *packed, int64_t packed_bytes, int64_t bytes,
                       tgi_pack_model **made)
{
    *made = NULL;
    if (packed_bytes < TGI_PACK_START_BYTES || tgi_pack_count_bytes(packed) < bytes)
        return fail_damaged();
    tgi_pack_model *m = tgi_alloc_block(sizeof *m); /* its huge pages take 5 % off */
    if (!m)
        return TG_STATUS_OUT_OF_MEMORY;
    memset(m, 0, sizeof *m);
    tgi_pack_start_model(m, packed[0]);
    m->next = packed + TGI_PACK_START_BYTES;
    m->end = packed + packed_bytes;
    for (int i = 0; i < 4; i++)
        tgi_pack_move_byte(m);
    *made = m;
    return TG_STATUS_OK;
}

/* Unpacks bytes `at` .. `end` - 1. */
static tg_status read_bytes(tgi_pack_model *m, unsigned char *unpacked, int64_t at, int64_t end)
{
    tgi_pack_token token = {0};
    while (at < end && !m->is_damaged) {
        if (m->part_bytes == 0) {
            tgi_pack_code_token(m, unpacked, at, &token);
            if (token.kind == TGI_PACK_BYTE) {
                unpacked[at++] = (unsigned char)token.byte;
                continue;
            }
            m->part_bytes = token.count;
        }
        if (m->last[0] >= at)
            return fail_damaged();
        for (; m->part_bytes > 0 && at < end; m->part_bytes--, at++)
            unpacked[at] = unpacked[at - m->last[0] - 1];
    }
    return m->is_damaged ? fail_damaged() : TG_STATUS_OK;
}

tg_status tgi_pack_unpack(const unsigned char *packed, int64_t packed_bytes,
                          unsigned char *unpacked, int64_t bytes)
{
    tgi_pack_model *m;
    tg_status status = start(packed, packed_bytes, bytes, &m);
    if (!status)
        status = read_bytes(m, unpacked, 0, bytes);
    tgi_alloc_free(m);
    return status;
}

int64_t tgi_pack_begin(const tgi_pack_head *head, int i)
{
    return i > 0 ? (int64_t)head->end[i - 1] : (int64_t)sizeof *head;
}

/* Reads the parts behind the head, which is read. */
static tg_status read_parts(tgi_pack_model *m, int64_t stream_bytes, int part_count,
                            const tgi_pack_head *head, char **text)
{
    for (int i = 0; i < part_count; i++)
        if ((int64_t)head->end[i] <= tgi_pack_begin(head, i))
            return fail_damaged();
    const int64_t bytes = (int64_t)head->end[part_count - 1];
    if (bytes > stream_bytes)
        return fail_damaged();
    char *block = tgi_alloc_block(bytes);
    if (!block)
        return TG_STATUS_OUT_OF_MEMORY;
    memcpy(block, head, sizeof *head);
    const tg_status status = read_bytes(m, (unsigned char *)block, sizeof *head, bytes);
    if (status)
        tgi_alloc_free(block);
    else
        *text = block;
    return status;
}

tg_status tgi_pack_open(const unsigned char *packed, int64_t packed_bytes, int part_count,
                        tgi_pack_head *head, char **text)
{
    *text = NULL;
    tgi_pack_model *m;
    tg_status status = start(packed, packed_bytes, sizeof *head, &m);
    if (!status)
        status = read_bytes(m, (unsigned char *)head, 0, sizeof *head);
    if (!status)
        status = read_parts(m, tgi_pack_count_bytes(packed), part_count, head, text);
    tgi_alloc_free(m);
    return status;
}
