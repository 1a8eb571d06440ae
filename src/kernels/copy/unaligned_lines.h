/*
 * Lines that begin at any byte, as TMA brings them: the slots of shared memory that they go to, and
 * the argument by which kernels find them. The host (C11) fills it.
 */
#ifndef TGI_UNALIGNED_LINES_H
#define TGI_UNALIGNED_LINES_H

#include "kernels/tma_map.h"

/* A slot holds 64 lines of 128 bytes, and as many bytes more as TMA reads at once. It has two
 * barriers. */
#define TGI_UNALIGNED_KINDS 8 /* of lines: every eighth begins alike between units of 16 bytes */
#define TGI_UNALIGNED_SLOTS 5
#define TGI_UNALIGNED_LINES 64 /* of a slot */
#define TGI_UNALIGNED_LINE_BYTES (128 + 16)
#define TGI_UNALIGNED_SLOT_BYTES (TGI_UNALIGNED_LINES * TGI_UNALIGNED_LINE_BYTES)
#define TGI_UNALIGNED_SHARED_BYTES (TGI_UNALIGNED_SLOTS * (TGI_UNALIGNED_SLOT_BYTES + 16))

/* Lines of one kind, every eighth, begin alike, and have a map of their own, from the unit of 16
 * bytes that the first of them begins in. */
typedef struct tgi_unaligned_lines {
    tgi_tensor_map map[TGI_UNALIGNED_KINDS];
    uint32_t shifts; /* bytes from the unit to the line, 4 bits a kind */
} tgi_unaligned_lines;

#endif
