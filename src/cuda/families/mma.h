/* Declares how the kernels of family mma read an operand, for its planning and its launch. */
#ifndef TGI_CUDA_MMA_H
#define TGI_CUDA_MMA_H

#include "core/kernels.h"
#include "cuda/families/operand.h"

/* Parts of the workspace are aligned to TGI_MMA_WORKSPACE_UNIT_BYTES bytes. */
#define TGI_MMA_WORKSPACE_UNIT_BYTES 256

typedef struct tgi_mma_access {
    int is_along_k;     /* 1: its lines in shared memory run along k, 0: across */
    int copy_bytes;     /* bytes of one access to the operand: 16, 8, 4, or those of an element */
    int can_repack;     /* 1: `packed` describes its copy in the workspace */
    tgi_operand packed; /* its copy, in lines that run as is_along_k says */
} tgi_mma_access;

/* Returns 1 if the kernel reads copies of FP32 operands that were rounded to TF32. */
int tgi_mma_is_rounded_ahead(const tgi_kernel *kernel);

/* Describes A, or B where is_b is 1, as the kernel reads it. */
void tgi_mma_describe(const tgi_kernel *kernel, const tgi_problem *problem, int is_b,
                      tgi_mma_access *operand);

/* Extends the copies of both operands with zeros to a whole stage of the kernel, which then
 * multiplies no stage that k ends in. */
void tgi_mma_pad(const tgi_kernel *kernel, tgi_mma_access operand[2]);

#endif
