/*
 * Declares unaligned lines as TMA loads them: their slots in shared memory, and the argument of
 * kernels that describes them. The host (C11) fills it.
 */
#ifndef TGI_UNALIGNED_LINES_H
#define TGI_UNALIGNED_LINES_H

#include "kernels/tma_map.h"

/* A slot holds 64 lines of 128 bytes and a unit of 16 bytes each. It has two barriers. */
#define TGI_UNALIGNED_KINDS 8 /* kinds of lines; every eighth line has the same offset in a unit */
#define TGI_UNALIGNED_SLOTS 5
#define TGI_UNALIGNED_LINES 64 /* lines of a slot */
#define TGI_UNALIGNED_LINE_BYTES (128 + 16)
#define TGI_UNALIGNED_SLOT_BYTES (TGI_UNALIGNED_LINES * TGI_UNALIGNED_LINE_BYTES)

/* Every eighth line has the same offset from a unit of 16 bytes. Such lines are one kind, with a
 * tensor map that begins at the unit of the first of them. */
typedef struct tgi_unaligned_lines {
    tgi_tensor_map map[TGI_UNALIGNED_KINDS];
    uint32_t shifts; /* bytes from the unit to the line, 4 bits for each kind */
} tgi_unaligned_lines;

#endif
