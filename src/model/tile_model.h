/*
 * Predicted time of the production families simt, small, dmma, rank and dot: closed formulas, no
 * I/O. The constants are fitted to measurements on a Hopper GPU at 1.98 GHz and scaled by the
 * chip's rates.
 */
#ifndef TGI_TILE_MODEL_H
#define TGI_TILE_MODEL_H

#include "core/problem.h"
#include "model/machine.h"

/* The access to the operand that is slower to read: by aligned 16 bytes, by 16 bytes that are then
 * shifted into place, element by element along a line, or, in a family that streams, element by
 * element across lines. */
typedef enum tgi_access {
    TGI_ACCESS_VECTORS,
    TGI_ACCESS_SHIFTED,
    TGI_ACCESS_ELEMENTS,
    TGI_ACCESS_STRIDED
} tgi_access;

/* The share of a problem that each of a kernel's blocks has. */
typedef struct tgi_tile_work {
    double block_count; /* of all tiles, split-K parts and batch entries */
    double block_k;     /* of one block: along k, over all its tiles */
    double part_count;  /* of k */
    double tile_cols;   /* of families dot and rank */
    int blocks_per_sm;  /* at most resident */
    tgi_access access;
} tgi_tile_work;

/* Returns the bytes of the operands and D, each counted once. */
double tgi_model_tile_bytes(const tgi_problem *problem);

/* Returns the seconds of a kernel that only reads and writes `bytes` of operands. */
double tgi_model_repack_seconds(const tgi_gpu *gpu, double bytes);

/* Returns the seconds of the kernels that make the slices which `kernel` multiplies. */
double tgi_model_slice_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem);

double tgi_model_simt_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                              const tgi_problem *problem, const tgi_tile_work *work);
double tgi_model_small_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_tile_work *work);
double tgi_model_dmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                              const tgi_problem *problem, const tgi_tile_work *work);

/* Predicts families rank and dot; work->block_k is that of the block that has most. */
double tgi_model_skinny_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                const tgi_problem *problem, const tgi_tile_work *work);

#endif
