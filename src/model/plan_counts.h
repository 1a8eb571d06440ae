/* Closed formulas for the counts of a GPU plan, from its row and the tiling of
 * the problem. */
#ifndef TGI_PLAN_COUNTS_H
#define TGI_PLAN_COUNTS_H

#include "core/problem.h"
#include "model/machine.h"

/* The way in which a plan divides a problem. */
typedef struct tgi_plan_tiling {
    int64_t split_count;    /* at least 1 */
    int64_t whole_tiles;    /* tiles of D whose k is not split, in whole clusters */
    int64_t whole_rows;     /* rows of D of such tiles, where those are counted instead */
    int tile_rows;          /* families on wgmma: rows of D in a tile; 0: the kernel's */
    int cluster_rows;       /* tiles of a cluster, one below the other: at least 1 */
    int64_t cluster_splits; /* splits of every tile that a cluster adds without the workspace */
    int is_transposed;      /* 1 if tiles have their rows along D's columns */
    int64_t tile_cols;      /* families rank and dot: columns of a tile; 0: the kernel's */
    int64_t block_count;    /* 0: one for each tile of D and split */
    int64_t resident_count; /* blocks that share a multiprocessor; 0 if not known */
    int thread_count;       /* a block's threads; 0: the kernel's */
} tgi_plan_tiling;

typedef struct tgi_plan_counts {
    int64_t block_count, split_count;
    int threads_per_block;
    double global_read_bytes,
        global_write_bytes; /* bytes that threads ask for, with partial sums */
    double issued_flops;    /* operations of whole tiles, edges included */
    double occupancy;       /* 0..1; 0 if not known */
} tgi_plan_counts;

/* Returns the counts of a legal kernel for a problem that forms products. They are all 0 for a
 * kernel of the CPU. */
tgi_plan_counts tgi_model_count_plan(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                     const tgi_problem *problem, const tgi_plan_tiling *tiling);

#endif
