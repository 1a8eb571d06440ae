/*
 * Prefetches A and D for a tile. tile_body.h includes this file for each instruction set and type.
 */

/* The largest tiles of AVX-512 may prefetch D in their loop; for all of them the code would be 16
 * KB longer. Those of AVX2 would take 2 to 6 % more time, and those of pairs would gain little. */
#define HAS_PACE (HAS_NARROW_TILES && K_PER_ELEM == 1)

/* Rows of A that lie along k are prefetched line by line, all rows of a line before the next one.
 * An iteration of the loop prefetches about as much as it reads: so many lines for up to 8 rows,
 * and twice as many for more. */
#define AHEAD_LINE ((int)(64 / sizeof(IN(elem))))
#define AHEAD_LINES ((int)(TGI_TILE_UNROLL * sizeof(IN(elem)) / 8))

/* Prefetches one of these lines and goes on to the next one. */
static inline __attribute__((always_inline)) TARGET void
TILE(prefetch_line)(const IN(elem) * *ahead, int *ahead_row, int64_t a_stride, const int rows)
{
    __builtin_prefetch(*ahead, 0, 2);
    *ahead += a_stride;
    if (++*ahead_row == rows) {
        *ahead_row = 0;
        *ahead += AHEAD_LINE - rows * a_stride;
    }
}

/* Prefetches the lines of an iteration. */
static inline __attribute__((always_inline)) TARGET void
TILE(prefetch_rows)(const IN(elem) * *ahead, int *ahead_row, int64_t a_stride, const int rows)
{
#pragma GCC unroll 2
    for (int line = 0; line < AHEAD_LINES; line++) {
        TILE(prefetch_line)(ahead, ahead_row, a_stride, rows);
        if (rows > 8)
            TILE(prefetch_line)(ahead, ahead_row, a_stride, rows);
    }
}

#if TILE_VECTORS > 1
/* Prefetches a row of D by the lines of its vectors' ends. The line in which the row begins was the
 * last one of the micropanel before. More lines can be on their way to L2 than to L1. */
static inline __attribute__((always_inline)) TARGET void
TILE(prefetch_row)(const tgi_tile *t, const ACC(elem) * row, const int vectors)
{
    (void)t;
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++)
        __builtin_prefetch(D_AT(row, (v + 1) * VECTOR_ELEMS - 1), 0, 2);
}

/* Prefetches all rows of D. Unrolled by all rows it would be a fortieth of the library's code. */
static inline __attribute__((always_inline)) TARGET void
TILE(prefetch_d)(const tgi_tile *t, const ACC(elem) * far, const int rows, const int vectors)
{
#pragma GCC unroll 1
    for (int i = 0; i < rows; i++, far = D_AT(far, t->d_row))
        TILE(prefetch_row)(t, far, vectors);
}
#endif

#undef AHEAD_LINE
#undef AHEAD_LINES
