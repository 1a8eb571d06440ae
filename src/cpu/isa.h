/* Declares the functions of an instruction set for the families, for one input type. */
#ifndef TGI_CPU_ISA_H
#define TGI_CPU_ISA_H

#include "core/problem.h"
#include "cpu/tile.h"

/*
 * Copies a block, converting inputs to what a tile reads:
 *     target[o * target_stride + i] = source[o * outer_stride + i * inner_stride]
 * for o < outer, i < inner. Counts and the source's strides are in inputs, the target's stride in
 * tile elements. If a tile element is a pair along k, an odd k is padded with a zero.
 */
typedef struct tgi_copy {
    void *target;
    int64_t target_stride;
    const void *source;
    int64_t outer, inner;
    int64_t ahead; /* contiguous rows are prefetched this many rows early; 0: not at all */
    int64_t outer_stride, inner_stride;
} tgi_copy;
typedef void tgi_copy_fn(const tgi_copy *copy);

/*
 * A block of sums of one chunk of k on its way to D. With s the running sum of the chunks before,
 *     v = alpha * sums + (first chunk ? beta * C : s)
 *     last chunk ? D = the rest of the epilogue of v : s = v
 * by the functions of core/epilogue.h. Sums and s are accumulators with contiguous rows.
 */
typedef struct tgi_finish {
    const tgi_problem *problem;
    int64_t rows, cols;
    const void *sums;
    int64_t sums_row;
    void *running; /* s; not used if the chunk is both first and last */
    int64_t running_row;
    /* A pointer to the part of each operand of the epilogue, c, d, ..., that belongs to the block;
     * NULL for an operand that is not used. */
#define TGI_OPERAND(name, title, form, role, ...)                                                  \
    TGI_OF_EPILOGUE_##role(TGI_POINTER_##form##_##role(name);)
#include "core/operands.def"
#undef TGI_OPERAND
    int is_first, is_last;
} tgi_finish;
typedef void tgi_finish_fn(const tgi_finish *finish);

/* Applies the activation of a D of `d_type` to rows of accumulators, `row_elems` apart. */
typedef void tgi_activate_fn(void *sums, int64_t rows, int64_t cols, int64_t row_elems,
                             tg_activation kind, tg_type d_type);

/*
 * sums += A B for few rows: A is m x k accumulators, contiguous along k, sums m x n accumulators
 * with contiguous rows. B is of the input type; b_stride is its row stride (rank, B contiguous
 * along n) or its column stride (dot, B contiguous along k). is_far is set if all of B is larger
 * than L2.
 */
typedef struct tgi_skinny {
    int64_t m, n, k;
    const void *a;
    int64_t a_row;
    const void *b;
    int64_t b_stride;
    int is_far;
    void *sums;
    int64_t sums_row;
} tgi_skinny;
#define TGI_RANK_DEPTH 8 /* rows of B that one update of `rank` adds to the sums */
typedef void tgi_skinny_fn(const tgi_skinny *skinny);

typedef struct tgi_isa_kernels {
    const tgi_tile_set *direct_tiles; /* tiles of the direct family */
    /* Tiles of families direct and packed for at most half a vector and one vector of columns; NULL
     * if wider tiles serve these too. */
    const tgi_tile_set *narrow_tiles[2];
    const tgi_tile_set *tiles; /* tiles of the packed family */
    tgi_tall_fn *tall;         /* all rows of a D, see tall_body.h and amx_tall_body.h; NULL: tiles
                                * serve these too */
    tgi_copy_fn *pack_k_inner; /* k is the inner dimension of the copy */
    tgi_copy_fn
        *pack_k_outer;  /* k is the outer one; the two differ where a tile element is a pair */
    tgi_copy_fn *widen; /* to accumulators: A of the skinny kernels */
    tgi_finish_fn *finish;
    tgi_activate_fn *activate;
    tgi_skinny_fn *rank, *dot;
} tgi_isa_kernels;

/* Each table is indexed by the input type. Its kernels run only on processors that have the
 * instruction set. */
extern const tgi_isa_kernels tgi_isa_generic[TGI_TYPE_COUNT];
#if defined(__x86_64__)
extern const tgi_isa_kernels tgi_isa_avx2[TGI_TYPE_COUNT];
extern const tgi_isa_kernels tgi_isa_avx512[TGI_TYPE_COUNT];
/* The following have BF16 alone. */
extern const tgi_isa_kernels tgi_isa_avx512_bf16[TGI_TYPE_COUNT];
extern const tgi_isa_kernels tgi_isa_amx[TGI_TYPE_COUNT];
#endif

#endif
