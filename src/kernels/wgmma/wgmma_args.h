/*
 * Declares the argument of the kernels of family wgmma: the problem, its operands and D for TMA,
 * and how the tiles are shared out. The host (C11) fills it, the kernel reads it from constant
 * memory.
 */
#ifndef TGI_WGMMA_ARGS_H
#define TGI_WGMMA_ARGS_H

#include "kernels/copy/tma_operand.h"
#include "kernels/copy/unaligned_lines.h"
#include "kernels/epilogue/fragment_output.h"
#include "kernels/gemm_args.h"
#include "kernels/schedule/cluster_work.h"
#include "kernels/copy/slice_args.h"
#include "kernels/wgmma/wgmma_shape.h"

/* Says how C comes to tiles. The tensor map of a staged C is c_map. */
typedef struct tgi_staged_c {
    int32_t source;        /* a tgi_c_source */
    int32_t is_transposed; /* 1: C's lines of contiguous elements are columns, else rows */
    int32_t box_lines;     /* lines of a TMA box, at most 64 */
    /* The kind of a bias that is added as a product (mainloop.cuh), or TG_BIAS_NONE. There is then
     * no C, and c_map describes the bias. The epilogue has none. */
    int32_t bias;
    int32_t is_summed; /* 1: first splits of tiles take C in the same way; the epilogue has none */
    float beta;        /* the factor of C */
} tgi_staged_c;

typedef struct tgi_wgmma_args {
    tgi_tma_operand a, b;
    tgi_tensor_map d_map;
    tgi_gemm_args gemm;
    tgi_fragment_output d;
    tgi_cluster_work work; /* a step of k is 128 bytes of a line, or a chunk of slices */
    tgi_slice_ranges a_slices, b_slices;
    int32_t slice_count, first_product; /* the first of TGI_SLICE_PRODUCTS that is formed */
    /* Bytes of a line of a TMA box of A and of B by the plain feed. Lines across k have the rows of
     * a tile, and the columns of a narrow B. */
    int32_t a_line_bytes, b_line_bytes;
    int32_t d_rows; /* rows of D that a warpgroup stores, at most 64 */
    /* 1: the next kernel of the stream starts where a block has ended; 0: when all have. */
    int32_t is_next_early;
    int32_t is_activation_alone; /* 1: the epilogue is an activation and nothing else */
    int32_t is_second; /* 1: the problem has the second of the shapes that the kernel serves */
    /* It is a neighbour of is_second, because threads read both before their first product, and the
     * line of constants that has one then has the other too. */
    tgi_staged_c c;
    void *run_sums; /* a tile of FP32 sums for each block, if k has more than one run */
    tgi_tensor_map c_map;
} tgi_wgmma_args;

/* The argument of family loose, which does not use the map of A. */
typedef struct tgi_unaligned_args {
    tgi_wgmma_args wgmma;
    tgi_unaligned_lines a_lines;
} tgi_unaligned_args;

#endif
