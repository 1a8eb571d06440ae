/*
 * Forms all rows of a strip of D by one call on AMX tiles: blocks of 32 rows, each across all
 * micropanels of B. Rows of A are read where they lie, and stay in L1 meanwhile up to a k of some
 * 700. B stays in L2. The sums of each chunk of k are formed from zero and added in order. A
 * tgi_tile here has all rows in its tile_count and all columns in its cols.
 * amx_tile_body.h has been included.
 */
#include "core/checked.h"

/* A block of A that is prefetched a block ahead has at most so many bytes, which fit in L1, and one
 * of D so many, which fit in L2. */
#define TALL_A_BYTES 32768
#define TALL_D_BYTES 65536

/* The state of a call. */
typedef struct TILE(tall_walk) {
    tgi_tile *t; /* its rows and columns are those of the tile */
    const char *b;
    int64_t a_row, steps; /* bytes of a row of A, whole steps of k in registers of all columns */
    int tail;             /* numbers of A in a last step that is copied beside zeros, or 0 */
    tgi_ahead of_a, of_c, of_d; /* of_c has no lines if there is no C beside D */
} TILE(tall_walk);

/* Gives the registers their shapes for `rows` rows, at most 32, and steps of `pairs` pairs. */
static TARGET void TILE(open_tall)(int rows, int pairs)
{
    const int upper = rows < SIDE ? rows : SIDE;
    amx_config config = {.palette = 1};
    for (int tile = 0; tile < 8; tile++) {
        const int is_a = tile == 4 || tile == 5, is_lower = tile == 2 || tile == 3 || tile == 5;
        const int tile_rows = tile >= 6 ? pairs : is_lower ? rows - upper : upper;
        config.rows[tile] = (uint8_t)tile_rows;
        config.row_bytes[tile] = (uint16_t)(tile_rows == 0 ? 0 : is_a ? 4 * pairs : 4 * SIDE);
    }
    TILE_CONFIGURE(config);
}

/* Adds the products of a step to the sums in registers. */
static inline __attribute__((always_inline)) TARGET void
TILE(add_step)(const char *a, int64_t a_row, const char *b, int64_t b_row, const int has_lower,
               const int has_right)
{
    TILE_LOAD(4, a, a_row);
    TILE_LOAD(6, b, b_row);
    TILE_DOT(0, 4, 6);
    if (has_right) {
        TILE_LOAD(7, b + 4 * SIDE, b_row);
        TILE_DOT(1, 4, 7);
    }
    if (has_lower) {
        TILE_LOAD(5, a + SIDE * a_row, a_row);
        TILE_DOT(2, 5, 6);
    }
    if (has_lower && has_right)
        TILE_DOT(3, 5, 7);
}

/* Writes the sums of `left` steps, and of the tail if `tail` is not NULL, to `sums`, a whole tile.
 */
static inline __attribute__((always_inline)) TARGET void
TILE(sum_tall)(const TILE(tall_walk) * walk, const char *a, const char *b, int64_t left,
               const void *tail, float *sums, const char *ahead, int ahead_count,
               const int has_lower, const int has_right)
{
    const int64_t a_row = walk->a_row, b_row = walk->t->b_row * (int64_t)sizeof(uint32_t);
    const int64_t sums_row = TILE_ROWS * (int64_t)sizeof *sums, stride = walk->of_a.stride;
    TILE(clear_sums)(has_lower, has_right);
    for (; left > 0; left--, a += 4 * SIDE, b += SIDE * b_row) {
        for (int i = 0; i < ahead_count; i++)
            __builtin_prefetch(ahead + i * stride);
        ahead += walk->of_a.step;
        TILE(add_step)(a, a_row, b, b_row, has_lower, has_right);
    }
    if (tail)
        TILE(add_step)(tail, 4 * SIDE, b, b_row, has_lower, has_right);
    TILE(store_sums)(sums, sums_row, has_lower, has_right);
}

/* Adds the sums of a later chunk. Behind the rows and columns may be any numbers, whose sums would
 * raise flags that a caller may trap. */
static inline TARGET void TILE(add_later)(float *sums, const float *later, int rows, int cols)
{
    const ACC(vec) one = ACC(set)(1);
    for (int i = 0; i < rows; i++, sums += TILE_ROWS, later += TILE_ROWS) {
        for (int j = 0; j < cols; j += VECTOR_ELEMS) {
            const int left = cols - j < VECTOR_ELEMS ? cols - j : VECTOR_ELEMS;
            const ACC(vec) sum = ACC(load_some)(sums + j, left);
            ACC(store_some)(sums + j, ACC(fma)(one, ACC(load_some)(later + j, left), sum), left);
        }
    }
}

/* Writes the sums of a block of rows and a micropanel to `sums`, a whole tile. The last chunk may
 * have the tail alone. */
static inline __attribute__((always_inline)) TARGET void
TILE(sum_chunks)(const TILE(tall_walk) * walk, const char *a, const char *b, float *sums,
                 const char *ahead, int ahead_count)
{
    const tgi_tile *t = walk->t;
    const int64_t chunk_steps = tgi_divide_up(t->chunk_k, 2 * SIDE);
    const int64_t b_step = SIDE * t->b_row * (int64_t)sizeof(uint32_t);
    float *const later = (float *)t->tail + TILE_ROWS * SIDE;
    const void *tail;
    int64_t first = 0;
    do {
        const int64_t rest = walk->steps - first, steps = rest < chunk_steps ? rest : chunk_steps;
        const char *from = a + first * 4 * SIDE, *of_b = b + first * b_step;
        const char *far = ahead + first * walk->of_a.step;
        float *to = first ? later : sums;
        tail = walk->tail && steps == rest && rest < chunk_steps ? t->tail : NULL;
        if (t->rows > SIDE && t->cols > SIDE)
            TILE(sum_tall)(walk, from, of_b, steps, tail, to, far, ahead_count, 1, 1);
        else if (t->rows > SIDE)
            TILE(sum_tall)(walk, from, of_b, steps, tail, to, far, ahead_count, 1, 0);
        else if (t->cols > SIDE)
            TILE(sum_tall)(walk, from, of_b, steps, tail, to, far, ahead_count, 0, 1);
        else
            TILE(sum_tall)(walk, from, of_b, steps, tail, to, far, ahead_count, 0, 0);
        if (first)
            TILE(add_later)(sums, later, t->rows, t->cols);
        first += steps;
    } while (first < walk->steps || (walk->tail && !tail));
}

/* Computes t->rows rows of `cols` columns. */
static TARGET void TILE(tall_block)(const TILE(tall_walk) * walk, const char *a, const char *c,
                                    char *d, const char *bias, int64_t cols, double alpha,
                                    double beta)
{
    _Alignas(64) float sums[TILE_ROWS * TILE_ROWS];
    tgi_tile *t = walk->t;
    const int64_t d_bytes = t->is_bf16 ? 2 : 4, a_row = walk->a_row;
    const int64_t bias_stride = t->bias == TG_BIAS_COL ? TILE_ROWS * d_bytes : 0;
    const char *b = walk->b, *a_ahead = a + walk->of_a.bytes, *d_ahead = d + walk->of_d.bytes;
    int a_count = walk->of_a.count;
    for (int i = 0; walk->tail && i < t->rows; i++)
        TILE_FILL((char *)t->tail + i * 4 * SIDE,
                  (const uint16_t *)(a + i * a_row + walk->steps * 4 * SIDE), walk->tail);
    for (int64_t left = cols; left > 0; left -= TILE_ROWS, a_count = 0) {
        t->cols = left < TILE_ROWS ? (int)left : TILE_ROWS;
        for (int i = 0; i < walk->of_d.count; i++)
            __builtin_prefetch(d_ahead + i * walk->of_d.stride, 0, 2);
        for (int i = 0; i < walk->of_c.count; i++)
            __builtin_prefetch(c + walk->of_c.bytes + i * walk->of_c.stride, 0, 2);
        d_ahead += walk->of_d.step;
        TILE(sum_chunks)(walk, a, b, sums, a_ahead, a_count);
        void *to = d;
        const void *before = c, *added = bias;
        if (t->is_bf16 && !t->is_by_memory)
            TILE(round_sums)(t, to, sums, t->rows);
        else
            TILE(finish_tile)(t, to, before, sums, added, t->rows, alpha, beta);
        b += t->b_tile_stride * (int64_t)sizeof(uint32_t);
        c += TILE_ROWS * d_bytes;
        d += TILE_ROWS * d_bytes;
        bias += bias_stride;
    }
}

/* Sets what the blocks prefetch. A function of its own keeps its frame from the stack of others. */
static __attribute__((noinline)) void TILE(set_ahead)(TILE(tall_walk) * walk, int64_t cols,
                                                      int64_t d_bytes, int has_c)
{
    const tgi_tile *t = walk->t;
    tgi_row_blocks blocks = {.row_bytes = walk->a_row,
                             .used_bytes = t->k * (int64_t)sizeof(uint16_t),
                             .rows = TILE_ROWS,
                             .all_rows = t->tile_count,
                             .steps = walk->steps,
                             .most_bytes = TALL_A_BYTES};
    walk->of_a = tgi_cpu_find_row_ahead(&blocks);
    blocks.row_bytes = t->d_row * d_bytes;
    blocks.used_bytes = cols * d_bytes;
    blocks.steps = tgi_divide_up(cols, TILE_ROWS);
    blocks.most_bytes = TALL_D_BYTES;
    walk->of_d = tgi_cpu_find_row_ahead(&blocks);
    blocks.row_bytes = t->c_row * d_bytes;
    blocks.most_bytes = 0;
    if (has_c)
        walk->of_c = tgi_cpu_find_row_ahead(&blocks);
}

static TARGET void TILE(tall)(tgi_tile *tile, const void *a_start, const void *b,
                              const void *c_start, void *d_start, const void *bias_start,
                              double alpha, double beta)
{
    const char *a = a_start, *c = c_start, *bias = bias_start;
    char *d = d_start;
    const int64_t k = tile->k, d_bytes = tile->is_bf16 ? 2 : 4, cols = tile->cols;
    const int64_t d_row = tile->d_row * d_bytes;
    /* An even k of less than a step has registers of fewer columns, so that nothing behind a row
     * of A is read. A tail of another k is copied. */
    const int is_narrow = k < 2 * SIDE && k % 2 == 0;
    TILE(tall_walk)
    walk = {.t = tile,
            .b = b,
            .a_row = tile->a_stride * (int64_t)sizeof(uint16_t),
            .steps = is_narrow ? 1 : k / (2 * SIDE),
            .tail = is_narrow ? 0 : (int)(k % (2 * SIDE))};
    TILE(set_ahead)(&walk, cols, d_bytes, beta != 0.0 && c != d);
    tile->rows = 0;
    for (int64_t left = tile->tile_count; left > 0; left -= tile->rows) {
        const int rows = left < TILE_ROWS ? (int)left : TILE_ROWS;
        if (rows != tile->rows)
            TILE(open_tall)(rows, is_narrow ? (int)k / 2 : SIDE);
        tile->rows = rows;
        TILE(tall_block)(&walk, a, c, d, bias, cols, alpha, beta);
        a += rows * walk.a_row;
        c += rows * tile->c_row * d_bytes;
        d += rows * d_row;
        bias += tile->bias == TG_BIAS_ROW ? rows * d_bytes : 0;
    }
    TILE_RELEASE();
}

#undef TALL_A_BYTES
#undef TALL_D_BYTES
