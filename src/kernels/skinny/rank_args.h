/*
 * The argument of the kernels of family rank for narrow types: the problem, and maps by which the
 * copy engine brings lines of B that begin anywhere. Filled by the host (C11), read by the kernel.
 */
#ifndef TGI_SKINNY_ARGS_H
#define TGI_SKINNY_ARGS_H

#include "kernels/gemm_args.h"
#include "kernels/tensor_map.h"

#define TGI_RANK_UNIT_BYTES 16
#define TGI_RANK_BOX_BYTES 128 /* of a line, */
#define TGI_RANK_BOX_LINES 16  /* and lines of a box of B; of A all rows */
#define TGI_RANK_MAPS_MAX 16   /* elements of a unit */

typedef struct tgi_rank_args {
    tgi_gemm_args gemm;
    /* Map i: line y is k = i + y * elements of a unit, so that all begin alike; x = 0 is the first
     * element of the unit that line i begins in; z the batch entry. */
    tgi_tensor_map lines[TGI_RANK_MAPS_MAX];
    tgi_tensor_map a;                 /* x: k, y: row, z: batch entry */
    int32_t has_a_batch, has_b_batch; /* 0: every batch entry reads entry 0 */
    int32_t has_maps;                 /* 0: threads copy the lines */
} tgi_rank_args;

#endif
