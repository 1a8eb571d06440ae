/* The planning of the families wgmma, `loose`, bf16x, bf16r and fp16x tells their launch this. */
#ifndef TGI_CUDA_WGMMA_H
#define TGI_CUDA_WGMMA_H

#include "cuda/families/family.h"
#include "cuda/families/operand.h"

/* Returns the shared memory of a block; is_across: B's lines lie across k. */
int64_t tgi_wgmma_shared_bytes(const tgi_kernel *kernel, int is_across);

/* Describes A and B as the kernel reads them. */
void tgi_wgmma_describe(const tgi_kernel *kernel, const tgi_problem *problem,
                        tgi_operand operand[2]);

#endif
