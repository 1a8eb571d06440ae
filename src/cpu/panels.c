#include "cpu/panels.h"

int64_t tgi_cpu_tile_count(int64_t rows, int tile_rows)
{
    return (rows + tile_rows - 1) / tile_rows;
}

int64_t tgi_cpu_tile_start(int64_t rows, int64_t tile_count, int64_t index)
{
    int64_t base = rows / tile_count, larger = rows % tile_count;
    return index * base + (index < larger ? index : larger);
}

int tgi_cpu_read_a_in_place(const tgi_call *call, const tgi_isa_kernels *kernels, tgi_left *left)
{
    const tgi_problem *p = call->problem;
    if (kernels->tiles->elem_bytes != tg_get_type_bytes(p->type)) return 0;
    if (p->a.col != 1 && p->a.row != 1) return 0;
    left->order = p->a.col == 1 ? TGI_A_ALONG_K : TGI_A_ALONG_ROWS;
    left->stride = p->a.col == 1 ? p->a.row : p->a.col;
    left->is_paneled = 0;
    return 1;
}

/* Through a local tile and the full epilogue: D of another type or layout, bias, activation. */
static void run_tile_and_finish(const tgi_panels *s, tgi_tile_fn *function, tgi_tile *tile,
                                int64_t i, int64_t j, int64_t rows)
{
    double sums[TGI_TILE_MAX_ROWS * TGI_TILE_MAX_COLS] __attribute__((aligned(64)));
    tile->d = sums;
    tile->d_row = TGI_TILE_MAX_COLS;
    tile->alpha = 1.0;
    tile->beta = 0.0;
    function(tile);
    char *running = s->running;
    int64_t offset = i * s->running_row + j;
    tgi_finish block = {.rows = rows,
                        .cols = tile->cols,
                        .sums = sums,
                        .sums_row = TGI_TILE_MAX_COLS,
                        .running = running ? running + offset * s->kernels->tiles->accum_bytes : NULL,
                        .running_row = s->running_row,
                        .is_first = s->is_first,
                        .is_last = s->is_last};
    tgi_cpu_finish(s->call, s->kernels->finish, s->batch, s->row + i, s->col + j, &block);
}

/* 1 if tiles may write D themselves: alpha, beta and the running sum are all there is to do. */
static int is_fused(const tgi_panels *s)
{
    const tgi_problem *p = s->call->problem;
    int reads_c = s->is_first && p->beta != 0.0;
    return tgi_cpu_is_d_plain(p) && (!s->is_last || tgi_cpu_is_linear(p)) &&
           (!reads_c || p->c.col == 1);
}

void tgi_cpu_run_panels(const tgi_panels *s)
{
    const tgi_problem *p = s->call->problem;
    const tgi_tile_set *tiles = s->kernels->tiles;
    const int64_t bytes = tiles->accum_bytes, elem_bytes = tiles->elem_bytes;
    const int64_t tile_count = tgi_cpu_tile_count(s->rows, tiles->rows);
    const int fused = !s->sums && is_fused(s);
    char *d = (char *)tgi_cpu_at(s->call->d, &p->d, s->batch, s->row, s->col, bytes);
    const char *c = tgi_cpu_at(s->call->c, &p->c, s->batch, s->row, s->col, bytes);
    const int64_t c_row = s->is_first ? p->c.row : p->d.row;
    tgi_tile tile = {.k = s->k_elems,
                     .a_stride = s->a.stride,
                     .b_row = s->b.row,
                     .alpha = 1.0,
                     .is_streamed = fused && s->call->blocking->is_streamed};
    if (fused) {
        tile.alpha = p->alpha;
        tile.beta = s->is_first ? p->beta : 1.0;
        tile.c_row = c_row;
    }
    if (!s->is_first) c = d;
    for (int64_t j = 0; j < s->cols; j += tiles->cols) {
        tile.cols = s->cols - j < tiles->cols ? (int)(s->cols - j) : tiles->cols;
        tile.b = (const char *)s->b.data + j / tiles->cols * s->b.panel_elems * elem_bytes;
        for (int64_t index = 0; index < tile_count; index++) {
            int64_t i = tgi_cpu_tile_start(s->rows, tile_count, index);
            int64_t rows = tgi_cpu_tile_start(s->rows, tile_count, index + 1) - i;
            tgi_tile_fn *function = tiles->functions[rows - 1][s->a.order];
            int64_t a_row = s->a.is_paneled                  ? s->k_elems
                            : s->a.order == TGI_A_ALONG_K ? s->a.stride
                                                             : 1;
            tile.a = (const char *)s->a.data + i * a_row * elem_bytes;
            if (s->a.is_paneled) tile.a_stride = rows;
            if (s->sums) {
                tile.d = (char *)s->sums + (i * s->sums_row + j) * bytes;
                tile.d_row = s->sums_row;
                function(&tile);
            } else if (fused) {
                tile.d = d + (i * p->d.row + j) * bytes;
                tile.d_row = p->d.row;
                tile.c = c ? c + (i * c_row + j) * bytes : NULL;
                function(&tile);
            } else {
                run_tile_and_finish(s, function, &tile, i, j, rows);
            }
        }
    }
}
