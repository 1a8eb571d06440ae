/*
 * A micro-kernel forms one register tile of D, the innermost work of the direct and packed
 * families.
 *
 *     D = act(alpha * (A B) + beta * C + bias)    A is rows x k, B is k x cols, C, D rows x cols
 *
 * A is read by broadcasts, so that either of its strides may be free; pairs of BF16 lie along k. B,
 * C and D are read and written by vectors along their rows.
 */
#ifndef TGI_CPU_TILE_H
#define TGI_CPU_TILE_H

#include <stdint.h>

#include "cpu/prefetch.h"
#include "tilegemm.h"

#define TGI_TILE_MAX_BYTES 4096 /* largest D of a packed tile, as accumulators */
#define TGI_PEAK_CHAINS 12
#define TGI_TILE_UNROLL 2 /* values of k in one iteration of a tile's loop */

/* The shape of a micro-kernel's call. Strides count elements of the operand; an element of BF16
 * pairs is a pair. One call computes tile_count tiles of equal size, one below the other or side by
 * side, because a call costs as much as several values of k. */
typedef struct tgi_tile {
    int64_t k;
    int64_t chunk_k;    /* values of k whose sums are formed from zero, if a call forms all rows */
    int64_t tile_count; /* >= 1; 1 if tiles are narrow */
    /* Elements from one tile of the call to the next one. */
    int64_t a_tile_stride, b_tile_stride, c_tile_stride, d_tile_stride, bias_tile_stride;
    /* Stride of the non-contiguous dimension, see tgi_a_order. In a set that opens it counts
     * numbers: rows of an A in place may lie an odd number of them apart. */
    int64_t a_stride;
    /* Elements from a tile's A, from its D, and in family `direct` from its B to what it prefetches
     * for later tiles. With 0 it prefetches its own. */
    int64_t a_ahead, b_ahead, d_ahead;
    int is_last_a; /* no rows of A follow those of the call, in a set that opens */
    int64_t b_row, c_row, d_row;
    int k_tail;       /* numbers of an A in place in a last step that takes more, in a set that
                         opens; 0: there is no such step */
    void *tail;       /* if there is: memory for that step's part of a tile's A and, if a call
                         forms all rows of several chunks, for a tile's sums behind it */
    int rows, cols;   /* 1 .. those of the set; functions for a single number know their rows */
    int sums_row;     /* columns of the set, if it has_bf16_d */
    int is_plain;     /* D is the sums as they are */
    int has_room;     /* D has the room of a whole tile, and gets its sums as they are */
    int is_by_memory; /* the sums of a wide tile go to D through memory */
    int is_d_far;     /* D is prefetched before or while the sums are formed, by wide tiles C too */
    int d_pace;       /* if is_d_far: a largest tile of AVX-512, not of pairs, prefetches a row of D
                         each so many iterations of its loop; 0: all rows before the loop, as in
                         smaller tiles */
    int is_streamed;  /* D is written by non-temporal stores; its rows are aligned to vectors */
    int is_bf16;      /* C, D and the bias are BF16, in a set that has_bf16_d */
    tgi_prefetch *prefetch; /* rows of later blocks, in family `packed`, or NULL */
    tg_bias bias;
    tg_activation activation; /* narrow tiles have at most ReLU */
} tgi_tile;

/* Pointers and factors come beside the shape, so that a plan can keep the shape. The bias is that
 * of the first row and column. C is not read if beta is 0, nor the bias if the tile has none. A
 * call of several tiles moves all pointers on, so that D then stands for them. Tables of
 * micro-kernels are indexed by rows - 1 and by the order of A. */
typedef void tgi_tile_fn(const tgi_tile *tile, const void *a, const void *b, const void *c, void *d,
                         const void *bias, double alpha, double beta);

/* Computes all rows of a D, which the tile has in its tile_count, and changes its rows and
 * columns. */
typedef void tgi_tall_fn(tgi_tile *tile, const void *a, const void *b, const void *c, void *d,
                         const void *bias, double alpha, double beta);

typedef enum tgi_a_order {
    TGI_A_ALONG_K = 0,    /* A(i, p) at a[i * a_stride + p] */
    TGI_A_ALONG_ROWS = 1, /* A(i, p) at a[i + p * a_stride] */
    TGI_A_ORDER_COUNT
} tgi_a_order;

typedef struct tgi_tile_set {
    int rows, cols;        /* largest tile */
    int vector_elems;      /* columns of one vector */
    int64_t elem_bytes;    /* size of A's and B's elements as the tile reads them */
    int64_t k_per_elem;    /* products an element holds: 2 for BF16 pairs, else 1 */
    int64_t k_multiple;    /* blocks are packed with zeros to so many elements along k */
    int64_t accum_bytes;   /* size of C's and D's elements: FP32 4, FP64 8 */
    int has_bf16_d;        /* tiles may store BF16 */
    int has_fma;           /* 1: one instruction multiplies and adds; 0: two do */
    int vectors_per_cycle; /* vectors of sums to which a core adds products in a cycle */
    tgi_tile_fn *const (*functions)[TGI_A_ORDER_COUNT];
    /* Runs `iterations` x TGI_PEAK_CHAINS vectors of independent multiply-adds on registers, for
     * the peak; NULL in a set of narrow tiles. */
    double (*fma_loop)(int64_t iterations);
    /* `open` and `close` are NULL if registers need no preparation. Otherwise a thread runs tiles
     * between the two calls, and A lies along k. Tiles at an edge read whole tiles of A and B, and
     * write a whole tile if D has room for it. An A in place has whole tiles of rows. */
    void (*open)(void);
    void (*close)(void);
} tgi_tile_set;

#endif
