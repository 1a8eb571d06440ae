/*
 * Predicted time of the production families simt, small, dmma, rank and dot: closed formulas, no
 * I/O. The constants are fitted to measurements on a Hopper GPU at 1.98 GHz and scaled by the
 * chip's rates.
 */
#ifndef TGI_TILE_MODEL_H
#define TGI_TILE_MODEL_H

#include "core/problem.h"
#include "model/machine.h"

/* How the operand that is slower to read is read: by aligned 16 bytes, by 16 bytes that are then
 * shifted into place, element by element along a line, or, by a family that streams, element by
 * element across lines. */
typedef enum tgi_access {
    TGI_ACCESS_VECTORS,
    TGI_ACCESS_SHIFTED,
    TGI_ACCESS_ELEMENTS,
    TGI_ACCESS_STRIDED
} tgi_access;

/* How a kernel's blocks share out a problem. */
typedef struct tgi_tile_work {
    double block_count; /* of all tiles, parts of k and batch entries */
    double block_k;     /* of one block: along k, over all its tiles */
    double part_count;  /* of k */
    double tile_cols;   /* of families dot and rank */
    int blocks_per_sm;  /* at most resident */
    tgi_access access;
} tgi_tile_work;

/* Bytes of the operands and D, once. */
double tgi_model_tile_bytes(const tgi_problem *problem);

/* A kernel of its own that reads and writes `bytes` of operands. */
double tgi_model_repack_seconds(const tgi_gpu *gpu, double bytes);

/* Kernels of their own that make the slices of FP32 operands that the kernel takes. */
double tgi_model_slice_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem);

double tgi_model_simt_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                              const tgi_problem *problem, const tgi_tile_work *work);
double tgi_model_small_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_tile_work *work);
double tgi_model_dmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                              const tgi_problem *problem, const tgi_tile_work *work);

/* Of families rank and dot; work->block_k is that of the block that has most. */
double tgi_model_skinny_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                const tgi_problem *problem, const tgi_tile_work *work);

#endif
