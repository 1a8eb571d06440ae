/*
 * This body of the micro-kernel is included once for each instruction set and type. The including
 * file has included the vectors (simd_*.h) and defines ACC_NAME (fp32 or fp64), IN_NAME (what A and
 * B hold: fp32, fp64 or bf16x2), K_PER_ELEM (products an element of A holds), TILE_ROWS (up to 14)
 * and TILE_VECTORS (1, 2 or 3). Tiles of one vector are narrow, see narrow_tile_body.h.
 */
#include <string.h>

#include "cpu/names.h"

/* Row i of A is addressed from a pointer to every third row. The addressing mode adds one or two
 * strides, so that 14 rows take 6 registers. */
#define A_POINTERS ((TILE_ROWS + 2) / 3)
#define A_ROW(base, stride, i) ((base)[(i) / 3] + (i) % 3 * (stride))

/* Wide tiles, which serve family packed, prefetch the next blocks too. */
#define HAS_PREFETCH (TILE_VECTORS > 1)

/* Tiles of BF16 pairs may have a D, a C and a bias of BF16. D_AT is element i of one of them in
 * either case. */
#define HAS_BF16_D (K_PER_ELEM == 2)
#if HAS_BF16_D
#define D_AT(d, i) ((void *)((uintptr_t)(d) + (uintptr_t)((i) * (t->is_bf16 ? 2 : 4))))
#else
#define D_AT(d, i) ((d) + (i))
#endif

#include "cpu/tile_prefetch_body.h"
#if TILE_VECTORS == 1
#include "cpu/narrow_tile_body.h"
#else
#include "cpu/finish_tile_body.h"

/* Adds the products of one value of k, a rank-one update, `ahead` values beyond the
 * pointers. */
static inline __attribute__((always_inline)) TARGET void
TILE(add_k)(const IN(elem) *const *a, int64_t a_stride, const IN(elem) * b,
            ACC(vec) (*accum)[TILE_VECTORS], const int rows, const int vectors, const int order,
            const int is_whole, const int last_cols, const int ahead)
{
    IN(vec) row[TILE_VECTORS];
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++)
        row[v] = v == vectors - 1 && !is_whole ? IN(load_some)(b + v * VECTOR_ELEMS, last_cols)
                                               : IN(load)(b + v * VECTOR_ELEMS);
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        IN(vec)
        left = IN(broadcast)(order == TGI_A_ALONG_K ? A_ROW(a, a_stride, i) + ahead : a[0] + i);
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            accum[i][v] = IN(dot)(left, row[v], accum[i][v]);
    }
}

/* Stores the accumulators to D unchanged. */
static inline __attribute__((always_inline)) TARGET void
TILE(store_tile)(const tgi_tile *t, ACC(elem) * d, ACC(vec) (*accum)[TILE_VECTORS], const int rows,
                 const int vectors, const int is_whole)
{
    const int last_cols = t->cols - (vectors - 1) * VECTOR_ELEMS;
    const int64_t d_row = t->d_row;
#if HAS_BF16_D
    if (t->is_bf16) {
        uint16_t *narrow = (uint16_t *)d;
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++) {
                const int cols = v == vectors - 1 && !is_whole ? last_cols : VECTOR_ELEMS;
                IN(round)(narrow + i * d_row + v * VECTOR_ELEMS, accum[i][v], cols);
            }
        return;
    }
#endif
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            if (v == vectors - 1 && !is_whole)
                ACC(store_some)(d + i * d_row + v * VECTOR_ELEMS, accum[i][v], last_cols);
            else
                ACC(store)(d + i * d_row + v * VECTOR_ELEMS, accum[i][v]);
        }
}

/* Computes one tile of D at d. rows, vectors, order and is_whole are constants after inlining, so
 * that the arrays live in registers. is_whole says that the last vector of each row of B and D has
 * all its columns. */
static inline __attribute__((always_inline)) TARGET void
TILE(tile_body)(const tgi_tile *t, const IN(elem) * a_start, const IN(elem) * b,
                const ACC(elem) * c, ACC(elem) * d, const ACC(elem) * bias, double alpha,
                double beta, int64_t b_ahead, const int rows, const int vectors, const int order,
                const int is_whole)
{
    ACC(vec) accum[TILE_ROWS][TILE_VECTORS];
    const IN(elem) * a[A_POINTERS];
    const int64_t a_stride = t->a_stride, a_ahead = t->a_ahead;
    const int64_t b_row = t->b_row, k = t->k;
    const int last_cols = t->cols - (vectors - 1) * VECTOR_ELEMS;
    const int pointer_count = order == TGI_A_ALONG_K ? (rows + 2) / 3 : 1;
#pragma GCC unroll 5
    for (int q = 0; q < pointer_count; q++) {
        a[q] = a_start + 3 * q * a_stride;
        HIDE_POINTER(a[q]); /* the compiler would otherwise use one base and 14 offsets */
    }
    /* The loop prefetches D, or it comes first. */
    const ACC(elem) *far = D_AT(d, t->d_ahead);
    const int has_pace = HAS_PACE && rows == TILE_ROWS && vectors == TILE_VECTORS;
    int far_rows = rows, far_wait = has_pace && t->is_d_far && t->d_pace > 0;
    if (t->is_d_far) {
        if (!far_wait)
            TILE(prefetch_d)(t, far, rows, vectors);
        if (beta != 0.0 && c != d)
            TILE(prefetch_c)(t, c, rows);
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
            accum[i][v] = ACC(zero)();
    const IN(elem) *ahead = a_start + a_ahead;
    int ahead_row = 0;
    tgi_prefetch *prefetch = t->prefetch;
    int64_t p = 0;
    for (; p + TGI_TILE_UNROLL <= k; p += TGI_TILE_UNROLL) {
        if (order == TGI_A_ALONG_K)
            TILE(prefetch_rows)(&ahead, &ahead_row, a_stride, rows);
        if (HAS_PREFETCH && prefetch)
            tgi_cpu_prefetch_next(prefetch);
        if (has_pace && --far_wait == 0) {
            TILE(prefetch_row)(t, far, vectors);
            far = D_AT(far, t->d_row);
            far_wait = --far_rows > 0 ? t->d_pace : 0;
        }
#pragma GCC unroll 4
        for (int u = 0; u < TGI_TILE_UNROLL; u++) {
            TILE(add_k)(a, a_stride, b, accum, rows, vectors, order, is_whole, last_cols, u);
#pragma GCC unroll 3
            for (int v = 0; v < vectors && (TILE_ROWS == DIRECT_ROWS || b_ahead); v++)
                __builtin_prefetch(b + b_ahead + (v + 1) * VECTOR_ELEMS - 1, 0, 2);
            b += b_row;
            if (order == TGI_A_ALONG_ROWS) {
                __builtin_prefetch(a[0] + a_ahead, 0, 2);
                a[0] += a_stride;
            }
        }
#pragma GCC unroll 5
        for (int q = 0; q < pointer_count; q++)
            if (order == TGI_A_ALONG_K)
                a[q] += TGI_TILE_UNROLL;
    }
    for (; p < k; p++) {
        TILE(add_k)(a, a_stride, b, accum, rows, vectors, order, is_whole, last_cols, 0);
        b += b_row;
#pragma GCC unroll 5
        for (int q = 0; q < pointer_count; q++)
            a[q] += order == TGI_A_ALONG_K ? 1 : a_stride;
    }

    if (t->is_by_memory) {
        _Alignas(sizeof(ACC(vec))) ACC(elem) sums[TILE_ROWS * TILE_VECTORS * VECTOR_ELEMS];
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                ACC(store)(sums + (i * TILE_VECTORS + v) * VECTOR_ELEMS, accum[i][v]);
        TILE(finish_tile)(t, d, c, sums, bias, rows, alpha, beta);
        return;
    }
    if (!t->is_plain)
        TILE(finish_registers)(t, c, bias, beta, accum, rows, vectors, is_whole);
    TILE(store_tile)(t, d, accum, rows, vectors, is_whole);
}

/* Computes all tiles of a call. */
static inline __attribute__((always_inline)) TARGET void
TILE(tile_line)(const tgi_tile *t, const void *a_start, const void *b_start, const void *c_start,
                void *d_start, const void *bias_start, double alpha, double beta, const int rows,
                const int vectors, const int order, const int is_whole)
{
    const IN(elem) *a = a_start, *b = b_start;
    const ACC(elem) *c = c_start;
    ACC(elem) *d = d_start;
    const ACC(elem) *bias = bias_start;
    int64_t b_ahead = t->b_ahead;
    for (int64_t left = t->tile_count;;) {
        TILE(tile_body)
        (t, a, b, c, d, bias, alpha, beta, b_ahead, rows, vectors, order, is_whole);
        if (--left == 0)
            return;
        if (TILE_ROWS != DIRECT_ROWS)
            b_ahead = 0; /* the first tile has prefetched the next micropanel */
        a += t->a_tile_stride;
        b += t->b_tile_stride;
        c = D_AT(c, t->c_tile_stride);
        d = D_AT(d, t->d_tile_stride);
        bias = D_AT(bias, t->bias_tile_stride);
    }
}

/* The columns choose the body. Where masks cost nothing, tiles with fewer than all rows have masked
 * bodies alone, which leave a third of the code, and so have tiles of pairs with fewer than all
 * vectors. */
#define HAS_WHOLE_BODY(rows, vectors)                                                              \
    (!HAS_NARROW_TILES || ((rows) == TILE_ROWS && (K_PER_ELEM == 1 || (vectors) == TILE_VECTORS)))
#define RUN_LINE(rows, vectors, order, is_whole)                                                   \
    TILE(tile_line)(t, a, b, c, d, bias, alpha, beta, rows, vectors, order, is_whole)
#if TILE_VECTORS == 3
#define WIDEST_TILE(rows, order)                                                                   \
    if (HAS_WHOLE_BODY(rows, 3) && t->cols == 3 * VECTOR_ELEMS) {                                  \
        RUN_LINE(rows, 3, order, 1);                                                               \
    } else if (t->cols > 2 * VECTOR_ELEMS) {                                                       \
        RUN_LINE(rows, 3, order, 0);                                                               \
    } else
#else
#define WIDEST_TILE(rows, order)
#endif
#if HAS_NARROW_TILES && TILE_ROWS == DIRECT_ROWS && TILE_VECTORS == DIRECT_VECTORS
#define NARROWEST_TILE(rows, order)
#else
#define NARROWEST_TILE(rows, order)                                                                \
    if (HAS_WHOLE_BODY(rows, 1) && t->cols == VECTOR_ELEMS) {                                      \
        RUN_LINE(rows, 1, order, 1);                                                               \
    } else if (t->cols <= VECTOR_ELEMS) {                                                          \
        RUN_LINE(rows, 1, order, 0);                                                               \
    } else
#endif
#define CHOOSE_BODY(rows, order)                                                                   \
    WIDEST_TILE(rows, order)                                                                       \
    NARROWEST_TILE(rows, order)                                                                    \
    if (HAS_WHOLE_BODY(rows, 2) && t->cols == 2 * VECTOR_ELEMS) {                                  \
        RUN_LINE(rows, 2, order, 1);                                                               \
    } else {                                                                                       \
        RUN_LINE(rows, 2, order, 0);                                                               \
    }
#endif

#if TILE_ROWS != 4 && TILE_ROWS != 6 && TILE_ROWS != 8 && TILE_ROWS != 14
#error "tiles of this many rows are not in the lists below"
#endif

/* There is one function for each number of rows and order of A. */
#define TILE_FUNCTION(rows, order)                                                                 \
    static TARGET void TILE(tile_##rows##_##order)(const tgi_tile *t, const void *a,               \
                                                   const void *b, const void *c, void *d,          \
                                                   const void *bias, double alpha, double beta)    \
    {                                                                                              \
        CHOOSE_BODY(rows, order);                                                                  \
    }
#if K_PER_ELEM > 1 /* an A of pairs along k lies along k */
#define TILE_PAIR(rows) TILE_FUNCTION(rows, 0)
#define TILE_ENTRY(rows)                                                                           \
    {                                                                                              \
        TILE(tile_##rows##_0), NULL                                                                \
    }
#else
#define TILE_PAIR(rows) TILE_FUNCTION(rows, 0) TILE_FUNCTION(rows, 1)
#define TILE_ENTRY(rows)                                                                           \
    {                                                                                              \
        TILE(tile_##rows##_0), TILE(tile_##rows##_1)                                               \
    }
#endif

TILE_PAIR(1)
TILE_PAIR(2)
TILE_PAIR(3)
TILE_PAIR(4)
#if TILE_ROWS > 4
TILE_PAIR(5)
TILE_PAIR(6)
#endif
#if TILE_ROWS > 6
TILE_PAIR(7)
TILE_PAIR(8)
#endif
#if TILE_ROWS > 8
TILE_PAIR(9)
TILE_PAIR(10)
TILE_PAIR(11)
TILE_PAIR(12)
TILE_PAIR(13)
TILE_PAIR(14)
#endif

static tgi_tile_fn *const TILE(tile_functions)[][TGI_A_ORDER_COUNT] = {
    TILE_ENTRY(1), TILE_ENTRY(2),  TILE_ENTRY(3),  TILE_ENTRY(4),
#if TILE_ROWS > 4
    TILE_ENTRY(5), TILE_ENTRY(6),
#endif
#if TILE_ROWS > 6
    TILE_ENTRY(7), TILE_ENTRY(8),
#endif
#if TILE_ROWS > 8
    TILE_ENTRY(9), TILE_ENTRY(10), TILE_ENTRY(11), TILE_ENTRY(12), TILE_ENTRY(13), TILE_ENTRY(14),
#endif
};

#if TILE_VECTORS == 1
#define FMA_LOOP NULL
#else
#define FMA_LOOP TILE(fma_loop)

/* Runs independent chains of FMAs on registers. TGI_PEAK_CHAINS chains hide the latency of two
 * units. */
static TARGET double TILE(fma_loop)(int64_t iterations)
{
    const ACC(elem) start = 0;
    IN(elem) zero_bits;
    memset(&zero_bits, 0, sizeof zero_bits);
    IN(vec) x = IN(broadcast)(&zero_bits);
    ACC(vec) accum[TGI_PEAK_CHAINS];
#pragma GCC unroll 12
    for (int i = 0; i < TGI_PEAK_CHAINS; i++)
        accum[i] = ACC(set)(start);
    for (int64_t p = 0; p < iterations; p++) {
#pragma GCC unroll 12
        for (int i = 0; i < TGI_PEAK_CHAINS; i++) {
            accum[i] = IN(dot)(x, x, accum[i]);
            KEEP_IN_REGISTER(accum[i]); /* the compiler would otherwise see that all stay zero */
        }
    }
    double sum = 0.0;
#pragma GCC unroll 12
    for (int i = 0; i < TGI_PEAK_CHAINS; i++)
        sum += (double)ACC(sum)(accum[i]);
    return sum;
}
#endif

static const tgi_tile_set TILE(tile_set) = {.rows = TILE_ROWS,
                                            .cols = TILE_VECTORS * VECTOR_ELEMS,
                                            .vector_elems = VECTOR_ELEMS,
                                            .elem_bytes = sizeof(IN(elem)),
                                            .k_per_elem = K_PER_ELEM,
                                            .k_multiple = 1,
                                            .accum_bytes = sizeof(ACC(elem)),
                                            .has_bf16_d = HAS_BF16_D,
                                            .has_fma = HAS_FMA,
                                            .vectors_per_cycle = 1 + HAS_FMA,
                                            .functions = TILE(tile_functions),
                                            .fma_loop = FMA_LOOP};

#undef NARROW_UNROLL
#undef HAS_PREFETCH
#undef HAS_PACE
#undef HAS_BF16_D
#undef D_AT
#undef A_POINTERS
#undef A_ROW
#undef RUN_LINE
#undef HAS_WHOLE_BODY
#undef CHOOSE_BODY
#undef WIDEST_TILE
#undef NARROWEST_TILE
#undef FMA_LOOP
#undef TILE_FUNCTION
#undef TILE_PAIR
#undef TILE_ENTRY
