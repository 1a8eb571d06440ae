/*
 * The argument of the kernels of family wgmma: the problem, the tensor maps of its operands, and
 * how the tiles are shared out. Filled by the host (C11), read by the kernel from constant memory.
 */
#ifndef TGI_WGMMA_ARGS_H
#define TGI_WGMMA_ARGS_H

#include "kernels/divisor.h"
#include "kernels/gemm_args.h"
#include "kernels/slices/slice_args.h"
#include "kernels/tensor_map.h"
#include "kernels/tile_shape.h"

/* An operand: (x, y, z) of its map are x elements along its lines, line y, batch entry z; of slices
 * x elements of group y, slice z of all chunks and batch entries. */
typedef struct tgi_wgmma_operand {
    tgi_tensor_map map, edge_map;
    int32_t has_batch;  /* 0: every batch entry reads entry 0 */
    int32_t line_count; /* rows of A, columns of B */
    int32_t box_lines;  /* of a box: along k those of a block's share, a multiple of 8; across k as
                           many as 128 bytes hold */
    int32_t edge_lines; /* of a box of edge_map: the same in the last tile, or across k in the last
                           step, where that has fewer; 0: there is no such map */
} tgi_wgmma_operand;

/* What the slices of an FP32 operand were found to hold (kernels/slices/slice_args.h): ranges of
 * blocks of lines and segments of k. Of rows held in registers, found by the kernel, a segment for
 * each part of k of the tiles that are cut. */
typedef struct tgi_wgmma_slices {
    tgi_range *ranges;
    const float *line_scale; /* NULL: none */
    int32_t block_lines, block_count, segment_count;
} tgi_wgmma_slices;

/* In which order clusters of tiles are numbered: down the columns of groups of rows of clusters, so
 * that those under way together share operands in L2. Of few columns a group is one row. */
typedef struct tgi_wgmma_order {
    tgi_divisor entry;           /* clusters of a batch entry, */
    tgi_divisor group;           /* of a group, */
    tgi_divisor rows, last_rows; /* of a column of a group, or of the last group */
    int32_t last_group;          /* its number */
} tgi_wgmma_order;

/* Lines of A that begin anywhere: those of one kind, every eighth, begin alike, and have a map of
 * their own, from the unit of 16 bytes that the first of them begins in. */
typedef struct tgi_wgmma_loose {
    tgi_tensor_map map[TGI_LOOSE_KINDS];
    uint32_t shifts; /* bytes from the unit to the line, 4 bits a kind */
} tgi_wgmma_loose;

#define TGI_HELD_LINES 16 /* block_lines of rows held in registers: a warp's */

/* Products of slices, by number: of the least first. Of two slices an operand the last three are
 * there, of three the last six suffice for FP32. */
#define TGI_SLICE_PRODUCTS 9

typedef struct tgi_wgmma_args {
    tgi_wgmma_operand a, b;
    tgi_tensor_map d; /* where is_d_boxed */
    tgi_gemm_args gemm;
    int32_t is_d_lined;  /* D has lines of contiguous elements: its rows, */
    int32_t is_d_turned; /* or its columns, of elements of 2 or 4 bytes; not of slices. */
    int32_t is_d_boxed;  /* The copy engine stores those lines, else threads do. */
    tgi_wgmma_order order;
    int32_t tile_rows, tile_cols;
    /* Blocks of a cluster: tiles one below the other, 1 or 2, and of each so many parts of k, which
     * the blocks add among themselves. */
    int32_t cluster_rows, cluster_parts;
    /* In clusters, over all batch entries: the first whole_count are not cut but within clusters,
     * those behind them, as many as `cut` (1 where there are none), are in k_part_count parts of k;
     * unit_count is both. */
    int32_t whole_count, unit_count;
    tgi_divisor cut;
    int32_t step_count;     /* of whole k; a step is 128 bytes, or a chunk of slices */
    int32_t last_products;  /* 32 bytes of k that the last of them has, begun: 1..4 */
    int32_t steps_per_part; /* of a tile that is cut, within a cluster or not */
    tgi_wgmma_slices a_slices, b_slices;
    int32_t slice_count, first_product; /* of TGI_SLICE_PRODUCTS */
    void *run_sums; /* a tile of FP32 sums for each block, where k has more than one run */
} tgi_wgmma_args;

/* Of family loose, which has no use for the map of A. */
typedef struct tgi_loose_args {
    tgi_wgmma_args wgmma;
    tgi_wgmma_loose loose;
} tgi_loose_args;

#endif
