/*
 * Declares the argument of the kernels of family rank for narrow types: the problem, and tensor
 * maps of the unaligned lines of B. The host (C11) fills it.
 */
#ifndef TGI_SKINNY_ARGS_H
#define TGI_SKINNY_ARGS_H

#include "kernels/gemm_args.h"
#include "kernels/tma_map.h"

#define TGI_RANK_UNIT_BYTES 16
#define TGI_RANK_BOX_BYTES 128 /* bytes of a line in a TMA box */
#define TGI_RANK_BOX_LINES 16  /* lines of a TMA box of B; a box of A has all rows */
#define TGI_RANK_MAPS_MAX 16   /* most elements of a unit */

typedef struct tgi_rank_args {
    tgi_gemm_args gemm;
    /* Map i has the lines k = i + y * (elements of a unit), which have the same offset from a unit.
     * Its x = 0 is the first element of the unit in which line i begins, and its z is the batch
     * entry. */
    tgi_tensor_map lines[TGI_RANK_MAPS_MAX];
    tgi_tensor_map a;                 /* x: k, y: row, z: batch entry */
    int32_t has_a_batch, has_b_batch; /* 0: every batch entry reads entry 0 */
    int32_t has_maps;                 /* 0: threads copy the lines */
} tgi_rank_args;

#endif
