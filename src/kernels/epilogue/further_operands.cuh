/*
 * Applies the operands of the epilogue that have no code of their own in the executors. Every
 * executor on a GPU calls tgi_apply_operands for each sum in D, between the bias and the
 * activation, wherever the sum lies: in an element, a row or a fragment. There is no such operand
 * yet. A new row of core/operands.def is applied here first, one load for each element; an operand
 * that many products use gets faster loads in the executors, as C and the bias have them.
 */
#ifndef TGI_FURTHER_OPERANDS_CUH
#define TGI_FURTHER_OPERANDS_CUH

#include "kernels/epilogue/element_access.cuh"

/* Returns the sum of element (row, col) of batch entry `batch`, which lies in D, with the operands
 * applied. */
static __device__ __forceinline__ float tgi_apply_operands(const tgi_gemm_args &, int64_t, int64_t,
                                                           int64_t, float sum)
{
    return sum;
}

static __device__ __forceinline__ double tgi_apply_operands(const tgi_gemm_args &, int64_t, int64_t,
                                                            int64_t, double sum)
{
    return sum;
}

/* Is 1 if there is such an operand. */
static constexpr int tgi_has_further_operands =
    (TGI_OPERANDS_EPILOGUE &
     ~(1 << TGI_OPERAND_c | 1 << TGI_OPERAND_bias | 1 << TGI_OPERAND_a_scale |
       1 << TGI_OPERAND_b_scale | 1 << TGI_OPERAND_d_scale)) != 0;

#endif
