/* Predicted time of the production kernels on a GPU: closed formulas, no I/O. */
#ifndef TGI_GPU_MODEL_H
#define TGI_GPU_MODEL_H

#include "core/problem.h"
#include "model/machine.h"

/* Shared memory of a block of a row of family simt: its stages, or the sums that it stores. */
int64_t tgi_model_simt_shared_bytes(const tgi_kernel *kernel);

/* Blocks of the row that the whole GPU holds at once. */
int64_t tgi_model_simt_slots(const tgi_gpu *gpu, const tgi_kernel *kernel);

/* Tiles of D that the row cuts all products of the batch into. */
double tgi_model_simt_tiles(const tgi_kernel *kernel, const tgi_problem *problem);

/* Seconds of the whole problem where k is cut into part_count parts of part_elems each. */
double tgi_model_simt_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                              const tgi_problem *problem, int64_t part_elems, int64_t part_count);

#endif
