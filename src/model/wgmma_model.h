/* Predicted time of family wgmma: closed formulas, no I/O. */
#ifndef TGI_WGMMA_MODEL_H
#define TGI_WGMMA_MODEL_H

#include "model/tile_model.h"

/* As the others of tile_model.h; work->block_count counts the blocks that a cluster has left over
 * too. */
double tgi_model_wgmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_tile_work *work);

/* Kernels of their own that make slices of FP32 operands. */
double tgi_model_slice_seconds(const tgi_gpu *gpu, const tgi_problem *problem);

/* A kernel of its own that reads and writes `bytes` of operands. */
double tgi_model_repack_seconds(const tgi_gpu *gpu, double bytes);

#endif
