/*
 * Declares a pack: texts, or images of device code, that are compressed together. The library
 * embeds packs, which cuda/runtime/make_pack.c, xz and cuda/runtime/write_pack.c make when it is
 * built (cmake/Packs.cmake).
 *
 * A pack is a stream (core/pack_model.h). Its first byte is 1 for text, 0 for machine code; four
 * bytes are the number of unpacked bytes, lowest first. Unpacked it begins with a tgi_pack_head.
 * Its parts follow, each from a multiple of TGI_PACK_UNIT_BYTES on and with at least one zero byte
 * behind it.
 */
#ifndef TGI_PACK_H
#define TGI_PACK_H

#include <stdint.h>

#include "tilegemm.h"

#define TGI_PACK_UNIT_BYTES 64
#define TGI_PACK_PART_COUNT 64
#define TGI_PACK_START_BYTES 5

/* Part `i` ends at byte end[i], a multiple of TGI_PACK_UNIT_BYTES, where the next one begins. */
typedef struct tgi_pack_head {
    uint64_t end[TGI_PACK_PART_COUNT];
} tgi_pack_head;

/* Returns the number of bytes that a stream unpacks to. */
static inline int64_t tgi_pack_count_bytes(const unsigned char *packed)
{
    return packed[1] | packed[2] << 8 | packed[3] << 16 | (int64_t)packed[4] << 24;
}

/* Unpacks the first `bytes` bytes of the stream to `unpacked`. Errors: OUT_OF_MEMORY,
 * DEVICE_FAILURE (the stream is damaged or shorter). */
tg_status tgi_pack_unpack(const unsigned char *packed, int64_t packed_bytes,
                          unsigned char *unpacked, int64_t bytes);

/* Returns where part `i` begins. */
int64_t tgi_pack_begin(const tgi_pack_head *head, int i);

/* Unpacks the head and parts 0 .. part_count - 1. *text receives a block for tgi_alloc_free, in
 * which the parts lie where the head says; NULL after an error. Errors: as tgi_pack_unpack, and
 * DEVICE_FAILURE for a head whose parts do not follow each other. */
tg_status tgi_pack_open(const unsigned char *packed, int64_t packed_bytes, int part_count,
                        tgi_pack_head *head, char **text);

#endif
