/* Launches production kernels: rows of families mma, mma_bf16x and mma_fp16x. */
#ifndef TGI_SIM_GEMM_H
#define TGI_SIM_GEMM_H

#include "core/problem.h"
#include "kernels/gemm_args.h"
#include "plan/backend.h"
#include "sim/sim.h"

/* Fills the launch of a row of family mma alone, all but memory. The launch keeps a pointer to
 * *args, which is filled too. k is not split, and operands are read where they lie. */
void tgi_sim_prepare_gemm(const tgi_sim_kernel *kernel, const tgi_problem *problem,
                          tgi_gemm_args *args, tgi_sim_launch *launch);

/* Fills in the memory of a call: the pointers of *args, and the launch's operands. */
void tgi_sim_complete_gemm(const tgi_call *call, tgi_gemm_args *args, tgi_sim_launch *launch);

/* Runs all kernels of a call whose plan the CUDA backend has prepared. A finding is a
 * DEVICE_FAILURE, which it describes. */
tg_status tgi_sim_launch_gemm(const tgi_call *call, int64_t workspace_bytes);

#endif
