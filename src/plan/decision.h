/* A decision says how a kernel splits its problem. Each group of families has its own struct. */
#ifndef TGI_DECISION_H
#define TGI_DECISION_H

#include <stdint.h>

/* The decision of CPU family packed. D is split into row_portions x col_portions x k_splits tasks,
 * which work on cache blocks of mc rows, nc columns and kc values of k. */
typedef struct tgi_packed_decision {
    int64_t mc, nc, kc;
    int64_t micropanel_cols; /* columns of a micropanel of B, at most a tile's */
    int64_t row_portions, col_portions, k_splits;
    int64_t strip_cols; /* columns of B that are packed at once */
    int is_a_packed, is_b_packed;
    int is_tall;       /* 1: one call forms all rows of a task */
    int is_along_rows; /* 1: tiles follow D's rows rather than its columns */
    int is_d_far;      /* 1: tiles prefetch D, which is too large for L1 */
    int is_streamed;   /* 1: D is written past the caches */
    int is_prefetched; /* 1: tiles prefetch what is packed next */
    int is_transposed; /* 1: the problem is D^T = B^T A^T, and its sums are transposed to D */
    int is_b_far;      /* 1: the packed B takes over a fourth of L2; tiles prefetch micropanels */
} tgi_packed_decision;

/* The decision of CPU families rank and dot. A task is a strip of columns of D and one of k_splits
 * ranges of k. */
typedef struct tgi_strip_decision {
    int64_t strip_cols, kc;
    int64_t k_splits;
    int is_b_far; /* 1: B takes more than L2 */
} tgi_strip_decision;

/* The decision of CUDA families small, dmma, simt, mma and bf16d. Every tile of D has split_count
 * splits of split_elems values of k. One split means that k is not split. */
typedef struct tgi_tile_decision {
    int64_t split_elems, split_count;
    int64_t whole_rows; /* family mma: k of the tiles of these first rows of D is not split */
    int is_repacked[2]; /* 1: family mma copies A, or B, to aligned lines in the workspace */
    int is_transposed;  /* 1: families small, mma, dmma_tma and bf16d compute D^T */
    int is_copied;      /* 1: threads copy the operands of family dmma_tma, which TMA cannot read */
    int short_cols;     /* columns of a block of the short function of family small; 0: another */
    int strip_cols;     /* columns of a warp of the strips of family small; 0: another */
    int strip_rows;     /* its warps of a block that have other rows */
    int piece_cols;     /* threads along a row of D in a block of its pieces; 0: another */
    int has_piece_units; /* 1: those pieces load and store whole units of 16 bytes */
    int outer_across;    /* lanes along a row of D in its outer products; 0: another */
    int relay_cols;      /* columns of D of a block of its relays; 0: another */
    int relay_bits;      /* 1 << relay_bits lanes, or warps, of a team pass a sum on; if lines are
                          * copied, rows of D of a block */
    int relay_teams;     /* teams that share out k of a sum, whose sums are added in order */
    int relay_groups;    /* groups of warps of a block that form splits at once */
    int relay_warps;     /* warps of a block that copies lines */
    int relay_cluster;   /* blocks of a cluster that share out splits */
    int is_relay_copied; /* 1: its relays copy lines to shared memory */
    int is_relay_short;  /* 1: relays for a short k */
    int is_direct_along; /* 1: threads that share out k there are neighbours */
    int direct_lanes;    /* threads that share out k in family small without stages; 0: by stages */
    int direct_cluster;  /* its blocks of a cluster, or bf16d's, that share out k; 1: no cluster */
    int64_t direct_blocks; /* blocks without stages, over all batch entries */
} tgi_tile_decision;

/* The decision of CUDA family batch. block_count blocks of thread_count threads share out groups of
 * group_entries entries, or portion_count portions of the tile rows of each entry. */
typedef struct tgi_batch_decision {
    int64_t group_entries, portion_count, block_count;
    int thread_count;
} tgi_batch_decision;

/* The decision of CUDA families rank and dot. block_count blocks share out tiles of tile_cols
 * columns in units of unit_elems values of k. No tile is split over more than split_count blocks.
 * */
typedef struct tgi_skinny_decision {
    int64_t tile_cols, unit_elems;
    int64_t split_count, block_count;
    int is_a_repacked; /* 1: A is copied to aligned lines in the workspace */
} tgi_skinny_decision;

/* A part of D of a product of slices that is computed at once; 0 rows: all of D. */
typedef struct tgi_slice_panel {
    int64_t rows, cols;
} tgi_slice_panel;

/* The decision of CUDA families on wgmma. The first whole_tiles tiles of D are not split. Each of
 * the others has split_count splits of split_elems values of k, whose sums lie in the
 * workspace. A tile covers tile_rows rows of D, at most the kernel's. The blocks of a cluster hold
 * cluster_rows tiles, one below the other, and cluster_splits splits of each, which they add among
 * themselves. */
typedef struct tgi_wgmma_decision {
    int64_t split_count, split_elems, whole_tiles;
    int tile_rows, cluster_rows, cluster_splits;
    /* Family few: stages of a block, bytes of a stage, and those of A in it; else 0. */
    int stage_count, stage_bytes, a_stage_bytes;
    int sm_blocks;     /* blocks that share a multiprocessor */
    int is_transposed; /* 1: the kernel computes D^T = B^T A^T */
    tgi_slice_panel panel;
} tgi_wgmma_decision;

/* The decision of CUDA families mma_bf16x and mma_fp16x. Every tile of D has split_count splits of
 * split_elems values of k, whose sums lie in the workspace. The team_count teams of a block share
 * out the k of each split. */
typedef struct tgi_mma_slices_decision {
    int64_t split_count, split_elems;
    int team_count;
    int is_transposed; /* 1: the kernel computes D^T = B^T A^T */
    tgi_slice_panel panel;
} tgi_mma_slices_decision;

typedef union tgi_decision {
    tgi_packed_decision packed;
    tgi_strip_decision strip;
    tgi_tile_decision tile;
    tgi_batch_decision batch;
    tgi_skinny_decision skinny;
    tgi_wgmma_decision wgmma;
    tgi_mma_slices_decision mma_slices;
} tgi_decision;

#endif
