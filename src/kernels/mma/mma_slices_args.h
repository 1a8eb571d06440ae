/*
 * The argument of the kernels of family mma on FP32 operands that were sliced
 * (kernels/copy/slice_args.h). The host (C11) fills it.
 */
#ifndef TGI_MMA_SLICES_ARGS_H
#define TGI_MMA_SLICES_ARGS_H

#include "kernels/copy/slice_args.h"
#include "kernels/gemm_args.h"

typedef struct tgi_sliced_operand {
    const uint16_t *slices;
    int32_t has_batch;  /* 0: every batch entry reads entry 0 */
    int32_t line_count; /* rows of A, columns of B */
} tgi_sliced_operand;

typedef struct tgi_mma_slices_args {
    tgi_gemm_args gemm; /* the operands themselves are its A and B */
    tgi_slice_ranges a_slices, b_slices;
    tgi_sliced_operand a, b;
} tgi_mma_slices_args;

#endif
