/* Declares the planning of the families wgmma, `loose`, bf16x, bf16r and fp16x that their launch
 * also uses. */
#ifndef TGI_CUDA_WGMMA_H
#define TGI_CUDA_WGMMA_H

#include "cuda/families/family.h"
#include "cuda/families/operand.h"
#include "kernels/schedule/cluster_work.h"

/* Returns 1 if relayout warps of the kernel read unaligned lines of A. */
int tgi_wgmma_reads_unaligned(const tgi_kernel *kernel);

/* Returns the most shared memory of a block in bytes. is_across is 1 if B's lines lie across k. */
int64_t tgi_wgmma_shared_bytes(const tgi_kernel *kernel, int is_across);

/* Returns the shared memory with which a block is launched: that, or what fitted stages take. */
int64_t tgi_wgmma_launch_bytes(const tgi_kernel *kernel, const tgi_cluster_work *work,
                               int is_across);

/* Describes A and B as the kernel reads them. */
void tgi_wgmma_describe(const tgi_kernel *kernel, const tgi_problem *problem,
                        tgi_operand operand[2]);

/* Returns the suffix of the kernel's function name for these operands. */
const char *tgi_wgmma_find_suffix(const tgi_problem *problem, const tgi_operand operand[2]);

#endif
