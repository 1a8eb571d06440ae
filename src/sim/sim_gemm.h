/* Prepares launches of production kernels: rows of family mma. */
#ifndef TGI_SIM_GEMM_H
#define TGI_SIM_GEMM_H

#include "core/problem.h"
#include "plan/backend.h"
#include "sim/sim.h"

/* Fills the launch of a kernel, all but memory. The launch keeps a pointer to *args, which is
 * filled too. k is not split, and operands are read where they lie. */
void tgi_sim_prepare_gemm(const tgi_sim_kernel *kernel, const tgi_problem *problem,
                          tgi_gemm_args *args, tgi_sim_launch *launch);

/* Fills in the memory of a call: the pointers of *args, and the launch's operands. */
void tgi_sim_complete_gemm(const tgi_call *call, tgi_gemm_args *args, tgi_sim_launch *launch);

/* Proposes as tgi_backend does, for a row of family mma and a problem of at least one product. */
void tgi_sim_propose_gemm(const tgi_machine *machine, const tgi_problem *problem,
                          tgi_proposal *proposal);

#endif
