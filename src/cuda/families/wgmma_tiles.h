/* Declares the schedule of tiles in the argument of the kernels of family wgmma. */
#ifndef TGI_CUDA_WGMMA_TILES_H
#define TGI_CUDA_WGMMA_TILES_H

#include "cuda/families/operand.h"
#include "kernels/wgmma/wgmma_args.h"
#include "plan/backend.h"

/* Fills the schedule of the tiles and the lines of their TMA boxes. args->gemm has the problem. */
void tgi_wgmma_prepare_tiles(const tgi_kernel *kernel, const tgi_wgmma_decision *decision,
                             const tgi_operand operand[2], tgi_wgmma_args *args);

#endif
