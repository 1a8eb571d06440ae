/* Declares what planning and launching of family dmma_tma share. */
#ifndef TGI_CUDA_DMMA_TMA_H
#define TGI_CUDA_DMMA_TMA_H

#include "cuda/families/operand.h"

/* Describes A and B as TMA reads them. Neither may be repacked. */
void tgi_dmma_tma_describe(const tgi_problem *problem, tgi_operand operand[2]);

#endif
