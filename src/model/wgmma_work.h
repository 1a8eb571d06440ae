/* Describes the work of a kernel on wgmma, which its family passes to the model. */
#ifndef TGI_WGMMA_WORK_H
#define TGI_WGMMA_WORK_H

#include "core/problem.h"

/* Tiles of all batch entries of D are shared out in clusters. */
typedef struct tgi_wgmma_work {
    int a_tma_box_lines, b_tma_box_lines; /* lines of a TMA box of A, and of B */
    int a_straddles, b_straddles; /* 1: lines lie across k, and most touch two lines of L2 */
    int a_splits, b_splits;       /* 1: most lines begin between two of L2's sectors */
    double a_shared_lines, b_shared_lines; /* lines that share a line of L2; 0 if they fill it */
    int are_crowded;                       /* 1: few parts of L2 hold the boxes of a step */
    int is_a_unaligned;           /* 1: A's lines are unaligned, and relayout warps move them */
    int is_a_across, is_b_across; /* 1: lines lie across k */
    int b_tile_lines;             /* lines of B in a stage: the tile's, or whole TMA boxes */
    int stage_count;
    int is_d_tma_stored;                  /* 1: TMA stores whole tiles of D */
    int is_c_staged;                      /* 1: TMA brings C for whole tiles */
    int is_c_summed;                      /* 1: sums have C before the epilogue, from TMA or not */
    int is_bias_staged;                   /* 1: the bias is added as a product */
    int d_box_cols;                       /* columns of a tile that are stored together */
    int tile_rows;                        /* rows of D in a tile, at most the kernel's */
    int cluster_rows;                     /* tiles of a cluster, one below the other */
    int group_rows;                       /* rows of clusters down which clusters are numbered */
    int sm_blocks;                        /* blocks that share a multiprocessor */
    int cluster_splits;                   /* blocks of a cluster that split k of one tile */
    double slot_count;                    /* clusters that run at once */
    double whole_count, split_tile_count; /* clusters of whole tiles, and of split-K tiles */
    double step_count;                    /* steps of k of a tile */
    double split_count, split_steps; /* splits of a tile, in a cluster or not, and steps of each */
} tgi_wgmma_work;

/* Returns 1 if C's lines are taken to be its columns, which then lie across the tiles' rows. */
static inline int tgi_wgmma_is_c_transposed(const tgi_problem *problem)
{
    return problem->c.col != 1 || problem->n == 1;
}

#endif
