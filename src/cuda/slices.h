/* FP32 operands as slices of 16 bits in the workspace (kernels/slices/args.h). */
#ifndef TGI_CUDA_SLICES_H
#define TGI_CUDA_SLICES_H

#include "core/problem.h"
#include "cuda/cuda.h"
#include "kernels/tensor_map.h"
#include "kernels/wgmma/args.h"

/* Slices of each operand, and products of them, that a precision takes. */
int tgi_slices_count(tg_precision precision);
int tgi_slices_count_products(tg_precision precision);

/* How A, or B where is_b is 1, is cut; pointers are NULL. `sm_count` blocks should find work. */
void tgi_slices_describe(const tgi_problem *problem, int is_b, int sm_count, tgi_slice_job *job);

/* Of the workspace, a multiple of 256. */
int64_t tgi_slices_workspace_bytes(const tgi_slice_job *job, tg_precision precision);

/* Gives the job its operand and its places in `memory`. */
void tgi_slices_place(const tg_precision precision, const void *source, char *memory,
                      tgi_slice_job *job);

/* Puts the kernels that make the slices into the queue. */
tg_status tgi_slices_make(const tgi_cuda_queue *queue, int sm_count, tg_precision precision,
                          tgi_slice_args *args);

/* The map of the slices, read in boxes of `lines` lines of one slice and chunk. */
tg_status tgi_slices_encode(const tgi_cuda_queue *queue, const tgi_slice_job *job, int slice_count,
                            int lines, tgi_tensor_map *map);

#endif
