/*
 * Declares the work of a persistent grid of clusters (units_in_turn.cuh), an argument of kernels.
 * The host (C11) fills it.
 */
#ifndef TGI_CLUSTER_WORK_H
#define TGI_CLUSTER_WORK_H

#include "kernels/divisor.h"

/* The order of clusters of tiles. It goes down the columns of groups of rows of clusters, so that
 * clusters that run together share operands in L2. If there are few columns, a group is one row. */
typedef struct tgi_cluster_order {
    tgi_divisor entry;           /* clusters of a batch entry */
    tgi_divisor group;           /* clusters of a group */
    tgi_divisor rows, last_rows; /* rows of a group, and of the last group */
    int32_t last_group;          /* the last group's number */
} tgi_cluster_order;

typedef struct tgi_cluster_work {
    tgi_cluster_order order;
    /* The rows of D that a tile covers, at most those that a block multiplies, and its columns. */
    int32_t tile_rows, tile_cols;
    /* The blocks of a cluster have 1, 2 or 4 tiles, one below the other, and share out k of each in
     * cluster_splits splits, whose sums they add among themselves. */
    int32_t cluster_rows, cluster_splits;
    /* The place in a block's memory for stages at which sums of other blocks arrive. It lies behind
     * the stages that the block's split fills; 0: they take the place of stages. */
    int32_t sent_offset;
    /* Units of all batch entries. The first whole_count units are clusters of tiles with whole k.
     * The others are the splits of `split_clusters` clusters (1 if there are none). */
    int32_t whole_count, unit_count;
    tgi_divisor split_clusters;
    int32_t step_count;      /* steps of a tile that is not split */
    int32_t last_products;   /* 32 bytes of k that the last step has, or begins: 1..4 */
    int32_t steps_per_split; /* steps of a split, in a cluster or not */
    /* Family few: the stages of a block, the bytes of one, and those of A in it. */
    int32_t stage_count, stage_bytes, a_stage_bytes;
} tgi_cluster_work;

#endif
