/*
 * The micro-kernel's one body, included once for each instruction set and type. The including file
 * has included the vectors (simd_*.h) and defines ACC_NAME (fp32 or fp64), IN_NAME (what A and B
 * hold: fp32, fp64 or bf16x2), K_PER_ELEM (products an element of A holds) and TILE_ROWS.
 */
#include <string.h>

#include "cpu/names.h"

/* All of rows, vectors, order and is_whole are constants after inlining: the arrays live in
 * registers. is_whole says that the last vector of each row of B and D has all its columns. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(tile_body)(const tgi_tile *t, const int rows, const int vectors, const int order,
                const int is_whole)
{
    ACC(vec) accum[TILE_ROWS][2];
    const IN(elem) *a = t->a, *b = t->b;
    const int64_t a_stride = t->a_stride, b_row = t->b_row;
    const int last_cols = t->cols - (vectors - 1) * VECTOR_ELEMS;
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            accum[i][v] = ACC(zero)();

#pragma GCC unroll 4
    for (int64_t p = 0; p < t->k; p++) {
        IN(vec) row[2];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            row[v] = v == vectors - 1 && !is_whole ? IN(load_some)(b + v * VECTOR_ELEMS, last_cols)
                                                   : IN(load)(b + v * VECTOR_ELEMS);
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            IN(vec) left = IN(broadcast)(order == TGI_A_ALONG_K ? a + i * a_stride : a + i);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                accum[i][v] = IN(dot)(left, row[v], accum[i][v]);
        }
        a += order == TGI_A_ALONG_K ? 1 : a_stride;
        b += b_row;
    }

    const ACC(vec) alpha = ACC(set)((ACC(elem))t->alpha), beta = ACC(set)((ACC(elem))t->beta);
    const int has_c = t->beta != 0.0;
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const int is_partial = v == vectors - 1 && !is_whole;
            const ACC(elem) *c = (const ACC(elem) *)t->c + i * t->c_row + v * VECTOR_ELEMS;
            ACC(elem) *d = (ACC(elem) *)t->d + i * t->d_row + v * VECTOR_ELEMS;
            ACC(vec) sum = ACC(mul)(alpha, accum[i][v]);
            if (has_c) sum = ACC(fma)(beta, is_partial ? ACC(load_some)(c, last_cols) : ACC(load)(c), sum);
            if (is_partial) {
                ACC(store_some)(d, sum, last_cols);
            } else if (t->is_streamed) {
                ACC(stream)(d, sum);
            } else {
                ACC(store)(d, sum);
            }
        }
    }
}

#define TILE_FUNCTION(rows, order)                                                                 \
    static TARGET void LOCAL(tile_##rows##_##order)(const tgi_tile *t)                              \
    {                                                                                              \
        if (t->cols == 2 * VECTOR_ELEMS) {                                                                \
            LOCAL(tile_body)(t, rows, 2, order, 1);                                                 \
        } else if (t->cols > VECTOR_ELEMS) {                                                              \
            LOCAL(tile_body)(t, rows, 2, order, 0);                                                 \
        } else if (t->cols == VECTOR_ELEMS) {                                                             \
            LOCAL(tile_body)(t, rows, 1, order, 1);                                                 \
        } else {                                                                                   \
            LOCAL(tile_body)(t, rows, 1, order, 0);                                                 \
        }                                                                                          \
    }
#define TILE_PAIR(rows) TILE_FUNCTION(rows, 0) TILE_FUNCTION(rows, 1)
#define TILE_ENTRY(rows) {LOCAL(tile_##rows##_0), LOCAL(tile_##rows##_1)}

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
TILE_PAIR(9)
TILE_PAIR(10)
TILE_PAIR(11)
TILE_PAIR(12)
TILE_PAIR(13)
TILE_PAIR(14)
#endif

static tgi_tile_fn *const LOCAL(tile_functions)[][TGI_A_ORDER_COUNT] = {
    TILE_ENTRY(1),  TILE_ENTRY(2),  TILE_ENTRY(3),  TILE_ENTRY(4),
#if TILE_ROWS > 4
    TILE_ENTRY(5),  TILE_ENTRY(6),
#endif
#if TILE_ROWS > 6
    TILE_ENTRY(7),  TILE_ENTRY(8),  TILE_ENTRY(9),  TILE_ENTRY(10),
    TILE_ENTRY(11), TILE_ENTRY(12), TILE_ENTRY(13), TILE_ENTRY(14),
#endif
};

/* Independent chains of FMAs on registers: PEAK_CHAINS hide the latency of two units. */
static TARGET double LOCAL(fma_loop)(int64_t iterations)
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
            KEEP_IN_REGISTER(accum[i]); /* or the compiler would see that all stay zero */
        }
    }
    double sum = 0.0;
#pragma GCC unroll 12
    for (int i = 0; i < TGI_PEAK_CHAINS; i++)
        sum += (double)ACC(sum)(accum[i]);
    return sum;
}

static const tgi_tile_set LOCAL(tile_set) = {TILE_ROWS,   2 * VECTOR_ELEMS,   VECTOR_ELEMS,
                                            sizeof(IN(elem)),  K_PER_ELEM,  sizeof(ACC(elem)),
                                            LOCAL(tile_functions), LOCAL(fma_loop)};

#undef TILE_FUNCTION
#undef TILE_PAIR
#undef TILE_ENTRY
