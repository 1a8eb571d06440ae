/*
 * Declares the argument of the kernels of family bf16d, and their shared memory, for the launch
 * (C11) and for the kernels (CUDA).
 */
#ifndef TGI_BF16D_ARGS_H
#define TGI_BF16D_ARGS_H

#include "kernels/copy/slice_args.h"
#include "kernels/gemm_args.h"

/* gemm.split_count blocks of a cluster share out the runs of k, gemm.split_elems of it each. The
 * slices have neither ranges in memory nor scales. */
typedef struct tgi_bf16d_args {
    tgi_gemm_args gemm;
    tgi_slice_ranges a_slices, b_slices;
} tgi_bf16d_args;

#define TGI_BF16D_ROWS 16  /* rows of a tile */
#define TGI_BF16D_BLOCKS 2 /* the most blocks that share a multiprocessor, which registers limit */

#define TGI_BF16D_PLAIN 47 /* exponent of the limit of plain numbers (bf16d_sums.cuh) */

/* Warps exchange the sums of so many chunks at once, a few of each warp. */
#define TGI_BF16D_AT_ONCE 16

/* Shared memory has the sums of two times the chunks that are exchanged, then two ranges, then the
 * sums of some runs. */
#define TGI_BF16D_RANGE_BYTES 32
#define TGI_BF16D_SHARED_BYTES(cols, runs)                                                         \
    ((2 * TGI_BF16D_AT_ONCE + (runs)) * TGI_BF16D_ROWS * (cols)*4 + TGI_BF16D_RANGE_BYTES)

#endif
