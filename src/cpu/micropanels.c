#include "cpu/micropanels.h"

#include <stdlib.h>

#include "core/operand_view.h"

/* The lines of an A along m that is read in place follow each other if a step of k lies at most so
 * many bytes behind the one before: the hardware prefetcher then brings them. */
#define NEAR_BYTES (4 * TGI_ALIGN_BYTES)

/* A tile prefetches the next rows of A or, beside one micropanel, those so many bytes behind its
 * own, but at most a fourth of A: a tile of less is finished before memory answers. */
#define NEXT_BYTES 4096

int64_t tgi_cpu_micropanel_cols(int64_t n, const tgi_tile_set *tiles)
{
    int64_t vectors = tgi_divide_up(n, tiles->vector_elems);
    int64_t micropanels = tgi_divide_up(n, tiles->cols);
    return micropanels ? tgi_divide_up(vectors, micropanels) * tiles->vector_elems : tiles->cols;
}

const tgi_tile_set *tgi_cpu_packed_tiles(const tgi_isa_kernels *kernels, const tgi_problem *p)
{
    const int64_t n = p->n;
    for (int i = 0; i < 2; i++)
        if (kernels->narrow_tiles[i] && n <= kernels->narrow_tiles[i]->cols)
            return kernels->narrow_tiles[i];
    /* Micropanels of fewer vectors leave registers for more rows, with which B is loaded less
     * often. */
    const tgi_tile_set *tiles = kernels->tiles, *high = kernels->direct_tiles;
    if (high && tgi_cpu_find_tile_rows(p, high) > tiles->rows &&
        tgi_cpu_micropanel_cols(n, tiles) <= high->cols)
        return high;
    return tiles;
}

int tgi_cpu_find_tile_rows(const tgi_problem *p, const tgi_tile_set *tiles)
{
    const int line_elems = TGI_ALIGN_BYTES / (int)tiles->elem_bytes;
    const int64_t step_bytes = (p->a.col < 0 ? -p->a.col : p->a.col) * tiles->elem_bytes;
    const int is_far = p->a.col != 1 && step_bytes > NEAR_BYTES;
    return is_far && !tiles->open && line_elems < tiles->rows ? line_elems : tiles->rows;
}

int64_t tgi_cpu_tile_count(int64_t rows, int tile_rows)
{
    return tgi_divide_up(rows, tile_rows);
}

tgi_row_tiling tgi_cpu_tile_rows(int64_t rows, int tile_rows)
{
    tgi_row_tiling tiling = {.count = tgi_cpu_tile_count(rows, tile_rows)};
    if (tiling.count) {
        tiling.rows = rows / tiling.count;
        tiling.larger_rows = tiling.rows + 1;
        tiling.larger_count = rows - tiling.rows * tiling.count;
    }
    return tiling;
}

tgi_row_tiling tgi_cpu_tile_block(const tgi_problem *p, int64_t rows, const tgi_tile_set *tiles,
                                  int is_a_packed)
{
    if (!tiles->open)
        return tgi_cpu_tile_rows(rows, tgi_cpu_find_tile_rows(p, tiles));
    const int64_t most = is_a_packed || p->m >= tiles->rows ? tiles->rows : tiles->rows / 2;
    const int64_t whole = rows / most, rest = rows % most;
    return (tgi_row_tiling){
        .count = whole + (rest > 0), .larger_count = whole, .larger_rows = most, .rows = rest};
}

int64_t tgi_cpu_find_ahead(const tgi_problem *p, const tgi_tile_set *tiles, tgi_a_order order,
                           int64_t rows, int64_t a_tile_stride)
{
    const int64_t lines_bytes = (p->k <= TGI_SHORT_K ? 4 : 2) * TGI_ALIGN_BYTES;
    /* Each call of a tile runs this, so it divides only where it must. */
    if (order == TGI_A_ALONG_K || rows * tiles->elem_bytes > lines_bytes) {
        const int64_t tile_bytes = a_tile_stride * tiles->elem_bytes, most = p->m / rows / 4;
        if (p->n > tiles->cols || tiles->open || tile_bytes <= 0 || most < 2)
            return a_tile_stride;
        const int64_t tiles_ahead = tgi_divide_up(NEXT_BYTES, tile_bytes);
        return a_tile_stride * (tiles_ahead < most ? tiles_ahead : most);
    }
    return lines_bytes / tiles->elem_bytes;
}

/* Runs tiles into local memory and applies the whole epilogue from there. It serves a D of another
 * type or layout, scales, and a C whose rows are not contiguous. */
static void run_tiles_and_finish(const tgi_micropanels *s, tgi_tile_fn *function, tgi_tile *tile,
                                 const char *a, const char *b, int64_t i, int64_t j, int64_t count,
                                 int is_along_rows)
{
    const int64_t bytes = s->tiles->accum_bytes;
    const int64_t call_tiles = tgi_cpu_is_narrow(s->tiles) ? 1 : count;
    const int64_t rows = is_along_rows ? tile->rows : count * tile->rows;
    const int64_t cols = is_along_rows ? (count - 1) * s->b.cols + tile->cols : tile->cols;
    _Alignas(64) char sums[TGI_TILE_MAX_BYTES];
    tile->d_row = is_along_rows ? count * s->b.cols : s->tiles->cols;
    tile->d_tile_stride = is_along_rows ? s->b.cols : tile->rows * tile->d_row;
    tile->has_room = 1;
    tile->tile_count = call_tiles;
    for (int64_t t = 0; t < count; t += call_tiles)
        function(tile, a + t * tile->a_tile_stride * s->tiles->elem_bytes,
                 b + t * tile->b_tile_stride * s->tiles->elem_bytes, NULL,
                 sums + t * tile->d_tile_stride * bytes, NULL, 1.0, 0.0);
    char *running = s->running;
    int64_t offset = running ? i * s->running_row + j : 0;
    tgi_finish block = {.rows = rows,
                        .cols = cols,
                        .sums = sums,
                        .sums_row = tile->d_row,
                        .running = running ? running + offset * bytes : NULL,
                        .running_row = s->running_row,
                        .is_first = s->is_first,
                        .is_last = s->is_last};
    tgi_cpu_finish(s->call, s->kernels->finish, s->batch, s->row + i, s->col + j, &block);
}

int tgi_cpu_do_tiles_round(const tgi_problem *p, const tgi_tile_set *tiles)
{
    const tgi_epilogue *e = &p->epilogue;
    return tiles->has_bf16_d && p->d_type == TG_TYPE_BF16 && p->d.col == 1 &&
           (e->beta == 0.0 || p->c.col == 1) && e->bias != TG_BIAS_ROW && tgi_cpu_do_tiles_know(e);
}

/* Returns 1 if tiles store D as BF16. */
static int is_bf16(const tgi_micropanels *s)
{
    return s->is_first && s->is_last && tgi_cpu_do_tiles_round(s->call->problem, s->tiles);
}

/* Returns 1 if tiles may write D themselves. */
static int is_fused(const tgi_micropanels *s)
{
    const tgi_problem *p = s->call->problem;
    if (is_bf16(s))
        return 1;
    int reads_c = s->is_first && p->epilogue.beta != 0.0;
    if (tgi_cpu_is_narrow(s->tiles) && p->epilogue.activation > TG_ACTIVATION_RELU)
        return 0;
    return tgi_cpu_is_d_plain(p) && tgi_cpu_do_tiles_know(&p->epilogue) &&
           (!reads_c || p->c.col == 1);
}

/* A micropanel of at most so many tiles is short: its D lies in L1 when the next one begins. */
#define SHORT_TILES 8

/* The destination of a tile's sums. */
typedef enum tile_target { TO_SUMS, TO_D, TO_FINISH } tile_target;

/* The state that all tiles of a block share. */
typedef struct tile_walk {
    const tgi_micropanels *micropanels;
    tile_target target;
    int is_along_rows, has_c;
    char *d;
    const char *c; /* D if there is no C; it is then never read */
    double alpha, beta;
    const char *bias; /* the part of the block, or D if there is none; it is then never read */
    const char *a;    /* first element of the tile */
    int64_t a_elems;  /* elements from the tile's A to that of the next rows */
    tgi_tile tile;
} tile_walk;

static int64_t count_own_ahead(const tgi_micropanels *s)
{
    return tgi_cpu_count_own_ahead(s->k_elems, tgi_divide_up(s->cols, s->b.cols));
}

/* Makes the larger tiles or, if `is_rest`, the others the next ones. */
static void set_rows(tile_walk *walk, int is_rest)
{
    const tgi_micropanels *s = walk->micropanels;
    const tgi_left *left = &s->a;
    const int is_apart = is_rest && left->rest, is_along_rows = walk->is_along_rows;
    const int64_t rows = is_rest ? s->tiling.rows : s->tiling.larger_rows, cols = s->b.cols;
    const tg_bias bias_along = is_along_rows ? TG_BIAS_COL : TG_BIAS_ROW;
    tgi_tile *tile = &walk->tile;
    tile->a_stride = is_apart ? left->rest_stride : left->is_in_micropanels ? rows : left->stride;
    tile->k_tail = is_apart ? 0 : left->k_tail;
    tile->tail = left->tail;
    if (is_apart)
        walk->a = left->rest;
    const int64_t a_row = left->is_in_micropanels        ? s->k_elems
                          : left->order == TGI_A_ALONG_K ? tile->a_stride
                                                         : 1;
    const int64_t a_elems = s->tiles->open ? rows * a_row / s->tiles->k_per_elem : rows * a_row;
    walk->a_elems = a_elems;
    if (left->is_in_micropanels || is_apart || (s->tiles->open && s->decision->is_a_packed))
        tile->a_ahead = 0;
    else if (s->tiling.count == 1 && !s->tiles->open)
        tile->a_ahead = count_own_ahead(s) * (left->order == TGI_A_ALONG_K ? 1 : tile->a_stride);
    else
        tile->a_ahead = tgi_cpu_find_ahead(s->call->problem, s->tiles, left->order, rows, a_elems);
    tile->rows = (int)rows;
    tile->d_pace = tgi_cpu_find_d_pace(s->k_elems, rows);
    tile->a_tile_stride = is_along_rows ? 0 : a_elems;
    tile->b_tile_stride = is_along_rows ? s->b.micropanel_elems : 0;
    tile->c_tile_stride = is_along_rows ? cols : rows * tile->c_row;
    tile->d_tile_stride = is_along_rows ? cols : rows * tile->d_row;
    tile->bias_tile_stride = tile->bias != bias_along ? 0 : is_along_rows ? cols : rows;
}

/* Runs `count` tiles along the rows or down the columns. The first one lies at (i, j) of the block
 * and reads `b`. */
static void run_tiles(tile_walk *walk, const char *b, int64_t i, int64_t j, int64_t count)
{
    const tgi_micropanels *s = walk->micropanels;
    const int64_t bytes = s->tiles->accum_bytes, elem_bytes = s->tiles->elem_bytes;
    const int is_along_rows = walk->is_along_rows;
    tgi_tile *tile = &walk->tile;
    const int64_t d_bytes = tile->is_bf16 ? tgi_type_bytes(TG_TYPE_BF16) : bytes;
    tgi_tile_fn *function = s->tiles->functions[tile->rows - 1][s->a.order];
    const char *a = walk->a;
    const int64_t most = walk->target == TO_FINISH
                             ? TGI_TILE_MAX_BYTES / (s->tiles->rows * s->tiles->cols * bytes)
                         : tgi_cpu_is_narrow(s->tiles) ? 1
                                                       : count;
    for (int64_t call_tiles; count > 0; count -= call_tiles) {
        call_tiles = count < most ? count : most;
        tile->tile_count = call_tiles;
        tile->is_last_a = !is_along_rows && call_tiles == count;
        if (walk->target == TO_FINISH) {
            run_tiles_and_finish(s, function, tile, a, b, i, j, call_tiles, is_along_rows);
        } else {
            const int64_t bias_elems = tile->bias == TG_BIAS_ROW   ? i
                                       : tile->bias == TG_BIAS_COL ? j
                                                                   : 0;
            function(tile, a, b, walk->c + (i * tile->c_row + j) * d_bytes,
                     walk->d + (i * tile->d_row + j) * d_bytes, walk->bias + bias_elems * d_bytes,
                     walk->alpha, walk->beta);
        }
        a += call_tiles * tile->a_tile_stride * elem_bytes;
        b += call_tiles * tile->b_tile_stride * elem_bytes;
        i += is_along_rows ? 0 : call_tiles * tile->rows;
        j += is_along_rows ? call_tiles * s->b.cols : 0;
    }
}

/* Returns 1 if rows of D follow each other so closely that the processor prefetches them. */
static int is_d_near(const tgi_problem *p)
{
    return llabs(p->d.row) * tgi_type_bytes(p->d_type) <= 2 * TGI_ALIGN_BYTES;
}

/* Sets every field that run_tiles reads for the target and no other field, because to clear the
 * whole struct would take as long as a small product. set_rows sets those that depend on a tile's
 * height, and the walk the tiles' columns and d_ahead. */
static inline void start_walk(const tgi_micropanels *s, tile_walk *walk)
{
    const tgi_problem *p = s->call->problem;
    tgi_tile *tile = &walk->tile;
    walk->micropanels = s;
    walk->is_along_rows = s->decision->is_along_rows && s->cols > s->b.cols;
    walk->target = s->sums ? TO_SUMS : is_fused(s) ? TO_D : TO_FINISH;
    tile->k = s->k_elems;
    tile->b_row = s->b.row;
    tile->sums_row = s->tiles->cols;
    walk->alpha = 1.0;
    walk->beta = 0.0;
    tile->is_streamed = tile->is_d_far = 0;
    tile->is_bf16 = walk->target == TO_D && is_bf16(s);
    tile->b_ahead = 0;
    tile->has_room = 0;
    tile->prefetch = s->prefetch;
    if (walk->target != TO_D) {
        walk->beta = s->is_added ? 1.0 : 0.0;
        tgi_cpu_set_epilogue(tile, 1.0, walk->beta, TG_BIAS_NONE, TG_ACTIVATION_NONE);
        walk->d = s->sums;
        walk->c = walk->bias = walk->d;
        tile->d_row = tile->c_row = s->sums_row;
        return;
    }
    walk->d =
        (char *)tgi_cpu_at(s->call->d, &p->d, s->batch, s->row, s->col, tgi_type_bytes(p->d_type));
    walk->c = walk->bias = walk->d;
    tile->d_row = tile->c_row = p->d.row;
    if (s->is_first && p->epilogue.beta != 0.0) {
        walk->c =
            tgi_cpu_at(s->call->c, &p->c, s->batch, s->row, s->col, tgi_type_bytes(p->d_type));
        tile->c_row = p->c.row;
    }
    walk->alpha = p->epilogue.alpha;
    walk->beta = s->is_first ? p->epilogue.beta : 1.0;
    tile->is_streamed = s->decision->is_streamed;
    tile->is_d_far = s->decision->is_d_far && !s->decision->is_streamed &&
                     (!tgi_cpu_is_narrow(s->tiles) || s->k_elems <= TGI_SHORT_K) &&
                     !(s->tiles->open && walk->beta == 0.0 && is_d_near(p));
    const tg_bias bias = s->is_last ? p->epilogue.bias : TG_BIAS_NONE;
    if (bias != TG_BIAS_NONE)
        walk->bias =
            tgi_problem_find_element(p, TGI_OPERAND_bias, s->call->bias, s->batch, s->row, s->col);
    tgi_cpu_set_epilogue(tile, walk->alpha, walk->beta, bias,
                         s->is_last ? p->epilogue.activation : TG_ACTIVATION_NONE);
    /* Registers are rounded to BF16 with at most ReLU before. */
    tile->is_by_memory |= tile->is_bf16 && tgi_cpu_has_steps(&p->epilogue);
}

/* Runs the larger tiles or, if `is_rest`, the others down column j. Those of a single micropanel
 * prefetch D of later tiles, and those of short ones the next micropanel. */
static void run_down(tile_walk *walk, const char *b, int64_t j, int is_rest)
{
    const tgi_micropanels *s = walk->micropanels;
    const tgi_row_tiling *tiling = &s->tiling;
    const int64_t i = is_rest ? tiling->larger_count * tiling->larger_rows : 0;
    const int64_t rows = is_rest ? tiling->rows : tiling->larger_rows;
    const int64_t count = is_rest ? tiling->count - tiling->larger_count : tiling->larger_count;
    if (count == 0) /* rows may be 0 */
        return;
    const int64_t tile_bytes = rows * s->cols * s->tiles->accum_bytes;
    const int64_t ahead = tgi_divide_up(TGI_AHEAD_BYTES, tile_bytes);
    set_rows(walk, is_rest);
    if (s->tiles->open && j > 0) /* the first micropanel has brought A */
        walk->tile.a_ahead = 0;
    walk->tile.d_ahead = 0;
    if (!walk->has_c && s->cols <= s->b.cols && count > 2 * ahead && s->k_elems <= TGI_SHORT_K)
        walk->tile.d_ahead = ahead * walk->tile.d_tile_stride;
    else if (!walk->has_c && s->tiling.count <= SHORT_TILES && j + s->b.cols < s->cols)
        walk->tile.d_ahead = s->b.cols;
    run_tiles(walk, b, i, j, count);
    walk->a += count * walk->a_elems * s->tiles->elem_bytes;
}

/* Runs all tiles along the rows. They prefetch D some tiles ahead. The last ones of a row tile
 * continue with a lower row tile, and those of the last row tiles have nothing left. */
static void run_along(tile_walk *walk)
{
    const tgi_micropanels *s = walk->micropanels;
    const int64_t bytes = s->tiles->accum_bytes, elem_bytes = s->tiles->elem_bytes;
    const int64_t cols = s->b.cols, micropanel_bytes = s->b.micropanel_elems * elem_bytes;
    const int64_t whole = s->cols / cols, count = tgi_divide_up(s->cols, cols);
    const int64_t ahead = tgi_divide_up(TGI_AHEAD_BYTES, s->tiles->rows * cols * bytes);
    const int64_t first = count > ahead ? count - ahead : 0, down = tgi_divide_up(ahead, count);
    const char *b = s->b.data;
    tgi_tile *tile = &walk->tile;
    walk->a = s->a.data;
    for (int64_t index = 0, i = 0; index < s->tiling.count; index++, i += tile->rows) {
        const int is_last = index + down >= s->tiling.count;
        if (index == 0 || index == s->tiling.larger_count)
            set_rows(walk, index == s->tiling.larger_count);
        tile->cols = (int)cols;
        tile->d_ahead = walk->has_c ? 0 : ahead * cols;
        run_tiles(walk, b, i, 0, first);
        tile->d_ahead = walk->has_c || is_last ? 0 : down * tile->rows * tile->d_row - first * cols;
        run_tiles(walk, b + first * micropanel_bytes, i, first * cols, whole - first);
        tile->cols = (int)(s->cols - whole * cols);
        run_tiles(walk, b + whole * micropanel_bytes, i, whole * cols, count - whole);
        walk->a += walk->a_elems * elem_bytes;
    }
}

/* Forms all rows of the block by one call. */
static void run_tall(tile_walk *walk)
{
    const tgi_micropanels *s = walk->micropanels;
    const tgi_problem *p = s->call->problem;
    tgi_tile *tile = &walk->tile;
    tile->k = p->k;
    tile->chunk_k = tgi_cpu_find_chunk(p, s->tiles);
    tile->tile_count = s->rows;
    tile->a_stride = p->a.row;
    tile->b_tile_stride = s->b.micropanel_elems;
    tile->bias_tile_stride = tile->bias == TG_BIAS_ROW;
    tile->tail = s->a.tail;
    tile->cols = (int)s->cols;
    s->kernels->tall(tile, s->a.data, s->b.data, walk->c, walk->d, walk->bias, walk->alpha,
                     walk->beta);
}

/* Walks the tiles down the columns or along the rows. Down the columns a micropanel of B stays in
 * cache while row tiles of A pass. Along the rows the tile of A stays, and D is written in long
 * runs. */
void tgi_cpu_run_micropanels(const tgi_micropanels *s)
{
    tile_walk walk;
    start_walk(s, &walk);
    walk.has_c = walk.c != walk.d;
    if (s->decision->is_tall || walk.is_along_rows) {
        (s->decision->is_tall ? run_tall : run_along)(&walk);
        return;
    }
    const int is_b_in_place = !s->decision->is_b_packed;
    const int64_t own_ahead = count_own_ahead(s) * s->b.row;
    const char *b = s->b.data;
    for (int64_t j = 0; j < s->cols; j += s->b.cols) {
        walk.a = s->a.data;
        walk.tile.cols = (int)(s->cols - j < s->b.cols ? s->cols - j : s->b.cols);
        /* The rows of a B in place are far apart, so that the first tile prefetches those of the
         * next micropanel, or later ones of its own. */
        walk.tile.b_ahead = !is_b_in_place ? 0 : j + s->b.cols < s->cols ? s->b.cols : own_ahead;
        run_down(&walk, b, j, 0);
        if (s->tiling.larger_count > 0)
            walk.tile.b_ahead = 0;
        run_down(&walk, b, j, 1);
        b += s->b.micropanel_elems * s->tiles->elem_bytes;
    }
}
