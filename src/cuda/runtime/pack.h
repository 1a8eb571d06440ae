/*
 * Declares a pack: device code of one architecture, of one image or of several that have much code
 * in common, which are compressed together. The library embeds packs; cmake/DeviceImages.cmake lets
 * pack_images.c and xz make them when it is built.
 *
 * A pack is a stream of the format .lzma. Unpacked it begins with a tgi_pack_head; images follow,
 * each from a multiple of TGI_PACK_UNIT_BYTES on: machine code as an ELF file, PTX in the form of
 * ptx_text.h, with at least one zero byte behind it.
 */
#ifndef TGI_CUDA_PACK_H
#define TGI_CUDA_PACK_H

#include <stdint.h>

#include "tilegemm.h"

#define TGI_PACK_UNIT_BYTES 64
#define TGI_PACK_IMAGE_COUNT 64

/* Image `i` ends at byte end[i], a multiple of TGI_PACK_UNIT_BYTES, where the next one begins. */
typedef struct tgi_pack_head {
    uint64_t end[TGI_PACK_IMAGE_COUNT];
} tgi_pack_head;

/* Unpacks the first `bytes` bytes of the stream to `unpacked`. Errors: OUT_OF_MEMORY,
 * DEVICE_FAILURE (the stream is damaged or shorter). */
tg_status tgi_pack_unpack(const unsigned char *packed, int64_t packed_bytes,
                          unsigned char *unpacked, int64_t bytes);

#endif
