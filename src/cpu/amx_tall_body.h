/*
 * Forms all rows of a D of at most 16 columns on AMX tiles, see tall_body.h. Rows of A are read where
 * they lie, 32 at a time. amx_tile_body.h has been included.
 *
 * Registers 0 and 2 hold sums, 4 and 5 a step of A, 6 one of B. The last values of k, if they fill
 * no step, have registers of fewer columns, so that nothing behind a row is read: 1 and 3 for A, 7
 * for B.
 */
#include "core/checked.h"
#include "cpu/prefetch.h"

/* Gives the registers the shapes for `rows` rows, at most 32, and `tail` pairs in a last step. */
static TARGET void TILE(open_tall)(int rows, int tail)
{
    static const uint8_t is_lower[] = {0, 0, 1, 1, 0, 1}, is_tail[] = {0, 1, 0, 1, 0, 0};
    amx_config config = {.palette = 1};
    for (int tile = 0; tile < 6; tile++) {
        const int upper_rows = rows < SIDE ? rows : SIDE;
        const int tile_rows = is_lower[tile] ? rows - upper_rows : upper_rows;
        const int pairs = is_tail[tile] ? tail : SIDE;
        config.rows[tile] = (uint8_t)(pairs > 0 ? tile_rows : 0);
        config.row_bytes[tile] = (uint16_t)(tile_rows > 0 ? 4 * pairs : 0);
    }
    config.rows[6] = SIDE;
    config.row_bytes[6] = 4 * SIDE;
    config.rows[7] = (uint8_t)tail;
    config.row_bytes[7] = (uint16_t)(tail > 0 ? 4 * SIDE : 0);
    TILE_CONFIGURE(config);
}

/* Writes the sums of up to 32 rows to `sums`, whose rows are those of a whole tile. */
static inline __attribute__((always_inline)) TARGET void
TILE(sum_tall)(const tgi_tile *t, const char *a, const char *b, float *sums,
               tgi_tall_prefetch *prefetch, const int has_lower)
{
    const int64_t a_row = t->a_stride * (int64_t)sizeof(uint16_t), b_row = 4 * SIDE;
    const int64_t steps = t->k / (2 * SIDE), tail = t->k % (2 * SIDE), lower = SIDE * a_row;
    const int64_t sums_row = TILE_ROWS * (int64_t)sizeof *sums;
    const int64_t pace = tgi_divide_up(prefetch->block_lines, steps + (tail > 0));
    uint16_t *last = t->tail;
    TILE_ZERO(0);
    if (has_lower)
        TILE_ZERO(2);
    for (int64_t step = 0; step < steps; step++, a += 4 * SIDE, b += SIDE * b_row) {
        tgi_cpu_prefetch_tall(prefetch, pace);
        TILE_LOAD(6, b, b_row);
        TILE_LOAD(4, a, a_row);
        TILE_DOT(0, 4, 6);
        if (has_lower) {
            TILE_LOAD(5, a + lower, a_row);
            TILE_DOT(2, 5, 6);
        }
    }
    if (tail > 0) {
        int64_t tail_row = a_row, tail_lower = lower;
        tgi_cpu_prefetch_tall(prefetch, pace);
        if (tail % 2 != 0) { /* the second number of the last pair is another row's */
            for (int i = 0; i < t->rows; i++)
                TILE_FILL(last + i * 2 * SIDE, (const uint16_t *)(a + i * a_row), (int)tail);
            a = (const char *)last;
            tail_row = 4 * SIDE;
            tail_lower = SIDE * tail_row;
        }
        TILE_LOAD(7, b, b_row);
        TILE_LOAD(1, a, tail_row);
        TILE_DOT(0, 1, 7);
        if (has_lower) {
            TILE_LOAD(3, a + tail_lower, tail_row);
            TILE_DOT(2, 3, 7);
        }
    }
    TILE_STORE(0, sums, sums_row);
    if (has_lower)
        TILE_STORE(2, sums + SIDE * TILE_ROWS, sums_row);
}

/* Computes t->rows rows. */
static __attribute__((noinline)) TARGET void
TILE(tall_block)(const tgi_tile *t, const char *a, const char *b, const void *c, void *d,
                 const void *bias, double alpha, double beta, tgi_tall_prefetch *prefetch)
{
    _Alignas(64) float sums[TILE_ROWS * TILE_ROWS];
    if (t->rows > SIDE)
        TILE(sum_tall)(t, a, b, sums, prefetch, 1);
    else
        TILE(sum_tall)(t, a, b, sums, prefetch, 0);
    TILE(finish_tile)(t, d, c, sums, bias, t->rows, alpha, beta);
}

static TARGET void TILE(tall)(const tgi_tile *given, const void *a_start, const void *b,
                              const void *c_start, void *d_start, const void *bias_start,
                              double alpha, double beta)
{
    tgi_tile tile = *given;
    const tgi_tile *t = &tile;
    const char *a = a_start, *c = c_start, *bias = bias_start;
    char *d = d_start;
    const int64_t d_bytes = t->is_bf16 ? 2 : 4, a_row = t->a_stride * (int64_t)sizeof(uint16_t);
    const int tail = (int)(t->k % (2 * SIDE) + 1) / 2;
    tgi_tall_prefetch prefetch;
    tgi_cpu_start_tall(&prefetch, a, a_row, t->k * (int64_t)sizeof(uint16_t), t->tile_count,
                       TILE_ROWS);
    tile.rows = 0;
    for (int64_t left = t->tile_count; left > 0; left -= t->rows) {
        const int rows = left < TILE_ROWS ? (int)left : TILE_ROWS;
        if (rows != t->rows)
            TILE(open_tall)(rows, tail);
        tile.rows = rows;
        TILE(tall_block)(t, a, b, c, d, bias, alpha, beta, &prefetch);
        a += rows * a_row;
        c += rows * t->c_row * d_bytes;
        d += rows * t->d_row * d_bytes;
        bias += rows * t->bias_tile_stride * d_bytes;
    }
    TILE_RELEASE();
}
