/*
 * Declares the sizes of family small that follow from a row of kernels.def, for the launch (C11)
 * and for the kernels (CUDA), which assert them.
 */
#ifndef TGI_SMALL_SHAPE_H
#define TGI_SMALL_SHAPE_H

#include "core/problem.h"

/* Each warp has a ring of stages in shared memory. A stage holds the warp's share of `depth`
 * elements of k, in lines padded by 16 bytes. */
#define TGI_SMALL_SHARED_BYTES(rows, cols, depth, stages, threads, elem_bytes)                     \
    (((depth) * (elem_bytes) + (threads) / 32 * 16) * (stages) * ((rows) + (cols)))

/* With matrix instructions each warp has its sums in shared memory, in rows that are padded to lie
 * in different banks. */
#define TGI_SMALL_MMA_SHARED_BYTES(rows, cols, threads) ((threads) / 32 * (rows) * ((cols) + 8) * 4)

/* Wide tiles hold padded lines of A and B, in FP32 all lines of one k together, then their sums,
 * padded too. So many blocks share a multiprocessor. by_fp64 is 1 for FP32 by matrix instructions
 * of FP64. */
#define TGI_SMALL_WIDE_PAD_BYTES(elem_bytes, by_fp64) ((elem_bytes) == 8 || (by_fp64) ? 32 : 16)
#define TGI_SMALL_WIDE_SHIFT 2 /* elements by which every fourth k is further there */
#define TGI_SMALL_WIDE_LINE_BYTES(rows, cols, depth, stages, elem_bytes, by_fp64)                  \
    ((stages) *                                                                                    \
     ((elem_bytes) == 4                                                                            \
          ? (depth) * (((rows) + (cols)) * 4 + 2 * TGI_SMALL_WIDE_PAD_BYTES(4, by_fp64) +          \
                       ((by_fp64) ? 2 * TGI_SMALL_WIDE_SHIFT : 0))                                 \
          : ((rows) + (cols)) *                                                                    \
                ((depth) * (elem_bytes) + TGI_SMALL_WIDE_PAD_BYTES(elem_bytes, by_fp64))))
#define TGI_SMALL_WIDE_SUM_BYTES(rows, cols, elem_bytes)                                           \
    ((rows) * ((cols) + ((elem_bytes) == 4 ? 4 : 8)) * ((elem_bytes) == 8 ? 8 : 4))
#define TGI_SMALL_WIDE_SHARED_BYTES(rows, cols, depth, stages, elem_bytes, by_fp64)                \
    (TGI_SMALL_WIDE_LINE_BYTES(rows, cols, depth, stages, elem_bytes, by_fp64) >                   \
             TGI_SMALL_WIDE_SUM_BYTES(rows, cols, elem_bytes)                                      \
         ? TGI_SMALL_WIDE_LINE_BYTES(rows, cols, depth, stages, elem_bytes, by_fp64)               \
         : TGI_SMALL_WIDE_SUM_BYTES(rows, cols, elem_bytes))
#define TGI_SMALL_WIDE_FMA_THREADS(sums)                                                           \
    ((sums) >= 64 ? 384 : (sums) >= 32 ? 512 : (sums) >= 16 ? 640 : 1024)
#define TGI_SMALL_WIDE_BLOCKS(sums, threads, elem_bytes)                                           \
    (((elem_bytes) == 8   ? 768                                                                    \
      : (elem_bytes) == 4 ? TGI_SMALL_WIDE_FMA_THREADS(sums)                                       \
                          : 1024) /                                                                \
     (threads))

/* 1: a wide tile of multiply-adds leaves out the products of a half that lies outside D. */
#define TGI_SMALL_WIDE_HAS_HALVES(sums, elem_bytes) ((elem_bytes) == 4 && (sums) >= 32)

/* The functions without stages have these threads of a block, blocks of a multiprocessor, rows of D
 * of a thread, values of k whose loads are under way at once, and at most so many blocks of a
 * cluster that share out k. */
#define TGI_SMALL_DIRECT_THREADS 256
#define TGI_SMALL_DIRECT_BLOCKS 4
#define TGI_SMALL_DIRECT_ROWS 4
#define TGI_SMALL_DIRECT_LOADS 4
#define TGI_SMALL_DIRECT_CLUSTER 8

/* The argument of pieces, and a part of that of the short function, strips, relays and outer
 * products. It is a fraction of tgi_gemm_args, because a kernel that runs for a microsecond waits
 * for each line of constant memory that it reads. Strides are in elements. */
typedef struct tgi_sums_args {
    const void *a, *b;
    void *d;
    int64_t a_row, a_k, b_col, b_k, d_row, d_col;
    int64_t a_batch, b_batch, d_batch; /* from one batch entry to the next */
    int32_t m, n, k;
    int32_t d_type; /* a tg_type, TGI_SHORT_TERMS more if D is not sums alone (short function and
                       relays), TGI_SHORT_PAIRS more if sums of threads are added in pairs (short
                       function) */
} tgi_sums_args;

#define TGI_SHORT_TERMS 256
#define TGI_SHORT_PAIRS 128

/* The argument of the short function. Without terms, threads read only the sums. The flag that says
 * so lies in a line of constant memory that they read anyway. */
typedef struct tgi_short_args {
    tgi_sums_args sums;
    tgi_epilogue epilogue;
    const void *c, *bias;
    int64_t c_row, c_col, c_batch;
} tgi_short_args;

/* The functions for a short k, whose warps go along rows of D, have these threads of a block,
 * blocks of a multiprocessor and rows of D of a warp, which forms so many columns at once. For 16
 * bits there is one for k up to SHORT, another one up to MAX; for FP8 there is the latter. */
#define TGI_SMALL_STRIP_THREADS 128
#define TGI_SMALL_STRIP_BLOCKS(k) ((k) <= TGI_SMALL_STRIP_K_SHORT ? 5 : 4)
#define TGI_SMALL_STRIP_ROWS 32
#define TGI_SMALL_STRIP_COLS 32
#define TGI_SMALL_STRIP_K_SHORT 16
#define TGI_SMALL_STRIP_K_MAX 64

/* The functions for the shortest k, up to MAX, have these threads of a block, of which at most
 * ACROSS have the same row. A thread has these columns of D, which are neighbours, of these rows,
 * which are as far apart as the block has rows of threads. */
#define TGI_SMALL_PIECE_THREADS 128
#define TGI_SMALL_PIECE_ACROSS(elem_bytes) ((elem_bytes) == 2 ? 16 : 32)
#define TGI_SMALL_PIECE_COLS(elem_bytes) (16 / (elem_bytes))
#define TGI_SMALL_PIECE_ROWS(elem_bytes) ((elem_bytes) == 2 ? 1 : 2)
#define TGI_SMALL_PIECE_K_MAX 4

/* The function for outer products of FP32 has these threads and rows of D of a block, and k up to
 * MAX. */
#define TGI_SMALL_OUTER_THREADS 128
#define TGI_SMALL_OUTER_ROWS 64
#define TGI_SMALL_OUTER_COLS 4 /* neighbouring columns of a thread */
#define TGI_SMALL_OUTER_K_MAX 8

/* The argument of outer products. */
typedef struct tgi_outer_args {
    tgi_sums_args sums;
    int32_t across; /* lanes of a warp along a row of D, a power of two */
} tgi_outer_args;

/* Relays, whose lanes or warps pass sums on, have up to so many threads of a block. Groups of warps
 * form splits of k at once, up to PLACES of them: a power of two. Blocks of a cluster, up to so
 * many, share the splits out. */
#define TGI_SMALL_RELAY_CLUSTER 8
#define TGI_SMALL_RELAY_THREADS 512
#define TGI_SMALL_RELAY_PLACES 16
/* By multiply-adds there are up to four teams. With one and a short k a lane loads SHORT_RUN values
 * of k at once. */
#define TGI_SMALL_RELAY_TEAMS 4
#define TGI_SMALL_RELAY_SHORT_RUN 4
/* By matrix instructions a warp loads so many values of k, a piece, at once. Where k is one piece,
 * or up to SHORT_K, blocks have SHORT_THREADS, and each warp has its own columns. */
#define TGI_SMALL_RELAY_PIECE(elem_bytes) ((elem_bytes) == 8 ? 32 : 64)
#define TGI_SMALL_RELAY_SHORT_K 16
/* In FP64 the function that may have C, a bias or an activation takes a k up to this one. */
#define TGI_SMALL_RELAY_TERMS_K 64
#define TGI_SMALL_RELAY_SHORT_THREADS 128

/* Lines that are copied to shared memory lie so many bytes apart: reads of neighbouring lines by 16
 * bytes meet different banks. A thread loads 1 << BITS elements of A, and of B, at once. */
#define TGI_SMALL_RELAY_PITCH(elems, elem_bytes) ((((elems) * (elem_bytes) + 127) & ~127) + 16)
#define TGI_SMALL_RELAY_ONCE_BITS 3

/* The argument of relays. By multiply-adds a block has 1 << col_bits columns, and neighbours of a
 * warp have neighbouring columns if is_across is 1. A block that copies lines has 1 << relay_bits
 * rows and 1 << warp_bits warps. */
typedef struct tgi_relay_args {
    tgi_sums_args sums;
    int32_t relay_bits, team_bits; /* 1 << relay_bits lanes of a team, or warps, pass a sum on */
    int32_t col_bits, warp_bits, is_across;
    int32_t split_elems;
    int32_t split_count, add_rows;    /* sums of splits add_rows apart are added first */
    int32_t has_a_pairs, has_b_pairs; /* 1: 4 bytes along k are aligned, in 16-bit types */
    int32_t block_splits;             /* splits of a block of these; the last has fewer */
    int32_t cluster_bits;             /* 1 << cluster_bits blocks of a cluster share out splits */
} tgi_relay_args;

/* A warp loads A or B by units of 4 or 16 bytes along k, by elements along k or across it, or by 8
 * columns of one k. */
typedef enum tgi_strip_order {
    TGI_STRIP_UNITS,
    TGI_STRIP_ALONG,
    TGI_STRIP_ACROSS,
    TGI_STRIP_PIECES
} tgi_strip_order;

/* The argument of strips. D has contiguous rows of 16-bit elements. */
typedef struct tgi_strip_args {
    tgi_sums_args sums;
    tgi_strip_order a_order, b_order;
    int32_t is_moved;       /* 1: rows of D begin between units of 16 bytes */
    int32_t strip_cols;     /* columns of D of a warp */
    int32_t warp_rows;      /* warps of a block that have other rows, not other columns */
    tg_type a_type, b_type; /* the types of FP8 operands */
} tgi_strip_args;

#endif
