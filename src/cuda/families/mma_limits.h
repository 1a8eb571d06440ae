/*
 * Asserts, when the library is compiled, that each row of families mma, mma_bf16x and mma_fp16x
 * fits the chips that its instruction set names: the shared memory of their blocks, and the
 * registers of a multiprocessor. Chips of 8.6, 8.9 and 12.0 have 99 KiB for a block and refuse rows
 * of sm80 that ask for more.
 */
#ifndef TGI_MMA_LIMITS_H
#define TGI_MMA_LIMITS_H

#include "core/types.h"
#include "kernels/instances.cuh"
#include "kernels/mma/mma_slices_args.h"

enum {
    TGI_BLOCK_KIB_sm75 = 64,
    TGI_BLOCK_KIB_sm80 = 163,
    TGI_BLOCK_KIB_sm89 = 99,
    TGI_IS_PROMOTED_sm75 = 0, /* twice the sums, those of a stage apart */
    TGI_IS_PROMOTED_sm80 = 0,
    TGI_IS_PROMOTED_sm89 = 1
};

#define TGI_CHECK_FIT(isa, shared_bytes, blocks)                                                   \
    _Static_assert((shared_bytes) <= TGI_BLOCK_KIB_##isa << 10,                                    \
                   "a block has more shared memory than chips of " #isa);                          \
    _Static_assert((blocks) >= 1, "a block has more registers than a multiprocessor");
#define TGI_CHECK_mma(isa, type, rows, cols, depth, thread_rows, thread_cols, stages, threads)     \
    TGI_CHECK_FIT(isa, TGI_MMA_SHARED_BYTES(rows, cols, depth, TGI_BYTES_##type, stages, threads), \
                  TGI_MMA_BLOCKS_PER_SM(                                                           \
                      (thread_rows) * (thread_cols) * (1 + TGI_IS_PROMOTED_##isa), threads))
#define TGI_CHECK_SLICES(isa, room, rows, cols, thread_rows, thread_cols, stages, threads)         \
    TGI_CHECK_FIT(isa, TGI_MMA_SLICES_SHARED_BYTES(rows, cols, room, stages),                      \
                  TGI_MMA_SLICES_BLOCKS((thread_rows) * (thread_cols), threads))
#define TGI_CHECK_mma_bf16x(isa, type, rows, cols, depth, ...)                                     \
    TGI_CHECK_SLICES(isa, TGI_MMA_SLICES_ROOM(0), rows, cols, __VA_ARGS__)
#define TGI_CHECK_mma_fp16x(isa, type, rows, cols, depth, ...)                                     \
    TGI_CHECK_SLICES(isa, TGI_MMA_SLICES_ROOM(1), rows, cols, __VA_ARGS__)

#define TGI_HAS_sm75 TGI_CHOSEN
#define TGI_HAS_sm80 TGI_CHOSEN
#define TGI_HAS_sm89 TGI_CHOSEN
#define TGI_IMAGE_mma_bf16 TGI_CHOSEN
#define TGI_IMAGE_mma_fp16 TGI_CHOSEN
#define TGI_IMAGE_mma_large_bf16 TGI_CHOSEN
#define TGI_IMAGE_mma_large_fp16 TGI_CHOSEN
#define TGI_IMAGE_mma_large_tf32 TGI_CHOSEN
#define TGI_IMAGE_mma_tf32_ahead TGI_CHOSEN
#define TGI_IMAGE_mma_sm75 TGI_CHOSEN
#define TGI_IMAGE_mma_fma TGI_CHOSEN
#define TGI_IMAGE_mma_tf32 TGI_CHOSEN
#define TGI_IMAGE_mma_fp32 TGI_CHOSEN
#define TGI_IMAGE_mma_fp16x TGI_CHOSEN
#define TGI_IMAGE_mma_fp8 TGI_CHOSEN
#define TGI_IMAGE_mma_wide_fp8 TGI_CHOSEN
#undef TGI_CUDA_ROW
#define TGI_CUDA_ROW(image, family, isa, type, b_types, sum, math, order, ...)                     \
    TGI_ROW(image, isa, TGI_CHECK_##family(isa, type, __VA_ARGS__))
#include "core/kernels.def"

#endif
