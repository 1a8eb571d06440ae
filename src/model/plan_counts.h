/* Counts of a plan of a GPU kernel, from its row and the cut of the problem: closed formulas. */
#ifndef TGI_PLAN_COUNTS_H
#define TGI_PLAN_COUNTS_H

#include "core/problem.h"
#include "model/machine.h"

/* The cut of a problem by a plan. */
typedef struct tgi_plan_cut {
    int64_t k_part_count;   /* at least 1 */
    int64_t whole_tiles;    /* of D, whose k is not cut */
    int64_t cluster_parts;  /* of k, of every tile, that a cluster adds without the workspace */
    int is_turned;          /* of family wgmma: the rows of its tiles lie along D's columns */
    int64_t tile_cols;      /* of families rank and dot: of D, that a tile has; 0: not cut */
    int64_t block_count;    /* 0: one for each tile of D and part of k */
    int64_t resident_count; /* blocks of a multiprocessor at once; 0 where not known */
} tgi_plan_cut;

typedef struct tgi_plan_counts {
    int64_t block_count, k_part_count;
    int threads_per_block;
    double global_read_bytes, global_write_bytes; /* that threads ask for, parts' sums included */
    double issued_flops;                          /* of whole tiles */
    double occupancy;                             /* 0..1; 0 where not known */
} tgi_plan_counts;

/* Returns the counts, which are all 0 for a kernel of the CPU. */
tgi_plan_counts tgi_model_count_plan(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                     const tgi_problem *problem, const tgi_plan_cut *cut);

#endif
