#include "cpu/packing.h"

#include <string.h>

int64_t tgi_cpu_count_k_elems(const tgi_tile_set *tiles, int64_t k)
{
    return tgi_round_up(tgi_divide_up(k, tiles->k_per_elem), tiles->k_multiple);
}

int64_t tgi_cpu_find_pitch(const tgi_tile_set *tiles, int64_t k)
{
    int64_t line_elems = TGI_ALIGN_BYTES / tiles->elem_bytes;
    return (tgi_round_up(tgi_cpu_count_k_elems(tiles, k), line_elems) / line_elems | 1) *
           line_elems;
}

int64_t tgi_cpu_count_tail_bytes(const tgi_tile_set *tiles)
{
    return tiles->open ? tiles->rows * tiles->k_multiple * tiles->elem_bytes : 0;
}

int tgi_cpu_read_a_in_place(const tgi_problem *p, const tgi_tile_set *tiles, tgi_left *left)
{
    const int64_t inputs = tiles->k_per_elem; /* numbers that an element holds */
    const int is_along_k = p->a.col == 1;
    if (tiles->elem_bytes != inputs * tgi_type_bytes(p->type))
        return 0;
    if (tiles->open   ? !is_along_k || p->m < (p->k > TGI_SHORT_K ? tiles->rows / 2 : tiles->rows)
        : inputs == 1 ? !is_along_k && p->a.row != 1
                      : !is_along_k || p->a.row % inputs != 0 || p->k % inputs != 0)
        return 0;
    left->order = is_along_k ? TGI_A_ALONG_K : TGI_A_ALONG_ROWS;
    left->stride = tiles->open ? p->a.row : is_along_k ? p->a.row / inputs : p->a.col;
    left->is_in_micropanels = 0;
    return 1;
}

#define PACKED_DEPTH 16 /* values of k, even: pairs are not torn apart */
#define ALONE_AHEAD 128 /* values of k ahead that a micropanel alone prefetches */

/* Fills the micropanels of a packed B with zeros behind k, to whole multiples. */
static void fill_b(const tgi_tile_set *tiles, int64_t k, int64_t micropanels,
                   const tgi_right *right)
{
    const int64_t filled = tgi_divide_up(k, tiles->k_per_elem) * right->cols;
    char *end = (char *)right->data + filled * tiles->elem_bytes;
    const size_t size_bytes = (size_t)((right->micropanel_elems - filled) * tiles->elem_bytes);
    for (int64_t i = 0; i < micropanels && size_bytes > 0; i++)
        memset(end + i * right->micropanel_elems * tiles->elem_bytes, 0, size_bytes);
}

void tgi_cpu_pack_b(const tgi_packing *packing, tgi_micropanels *s, int64_t k0, int64_t k,
                    char *block)
{
    tgi_right *right = &s->b;
    const tgi_problem *p = packing->call->problem;
    const tgi_tile_set *tiles = packing->tiles;
    const int64_t bytes = tgi_type_bytes(p->type);
    const int64_t micropanel_cols = packing->decision->micropanel_cols;
    right->cols = micropanel_cols;
    if (!packing->decision->is_b_packed) {
        right->data = tgi_cpu_at(packing->call->b, &p->b, s->batch, k0, s->col, bytes);
        right->row = p->b.row;
        right->micropanel_elems = micropanel_cols;
        return;
    }
    right->data = block;
    right->row = micropanel_cols;
    right->micropanel_elems = tgi_cpu_count_k_elems(tiles, k) * micropanel_cols;
    /* The loop takes a few rows across all micropanels, so that B is read in long runs. A B along
     * k, or a long one of one micropanel, is packed in one call. */
    const int is_alone = s->cols <= micropanel_cols && k >= 4 * ALONE_AHEAD;
    const int64_t depth = is_alone || (p->b.row == 1 && p->b.col != 1) ? k : PACKED_DEPTH;
    for (int64_t k1 = 0; k1 < k; k1 += depth) {
        for (int64_t j = 0; j < s->cols; j += micropanel_cols) {
            int64_t elem = j / micropanel_cols * right->micropanel_elems +
                           k1 / tiles->k_per_elem * micropanel_cols;
            tgi_copy copy = {
                .target = block + elem * tiles->elem_bytes,
                .target_stride = micropanel_cols,
                .source = tgi_cpu_at(packing->call->b, &p->b, s->batch, k0 + k1, s->col + j, bytes),
                .outer = k - k1 < depth ? k - k1 : depth,
                .inner = s->cols - j < micropanel_cols ? s->cols - j : micropanel_cols,
                .ahead = is_alone         ? ALONE_AHEAD
                         : k - k1 > depth ? depth
                                          : 0,
                .outer_stride = p->b.row,
                .inner_stride = p->b.col};
            packing->pack_b(&copy);
        }
    }
    fill_b(tiles, k, tgi_divide_up(s->cols, micropanel_cols), right);
}

/* Packs `rows` rows of A from `row` on along k. Returns their stride. */
static int64_t pack_rows(const tgi_packing *packing, const tgi_micropanels *s, int64_t row,
                         int64_t rows, int64_t k0, int64_t k, char *block)
{
    const tgi_problem *p = packing->call->problem;
    const tgi_tile_set *tiles = packing->tiles;
    const int64_t pitch = tgi_cpu_find_pitch(tiles, k);
    const tgi_copy copy = {
        .target = block,
        .target_stride = pitch,
        .source = tgi_cpu_at(packing->call->a, &p->a, s->batch, row, k0, tgi_type_bytes(p->type)),
        .outer = rows,
        .inner = k,
        .outer_stride = p->a.row,
        .inner_stride = p->a.col};
    packing->kernels->pack_k_inner(&copy);
    return tiles->open ? pitch * tiles->k_per_elem : pitch;
}

/* Lets tiles read A in place. Those that take whole tiles of rows have the rest packed. */
static void read_a(const tgi_packing *packing, const tgi_micropanels *s, int64_t k0, int64_t k,
                   tgi_left *left, char *block)
{
    const tgi_problem *p = packing->call->problem;
    const tgi_tile_set *tiles = packing->tiles;
    const int64_t larger_rows = s->tiling.larger_count * s->tiling.larger_rows;
    tgi_cpu_read_a_in_place(p, tiles, left);
    left->data = tgi_cpu_at(packing->call->a, &p->a, s->batch, s->row, k0, tgi_type_bytes(p->type));
    if (!tiles->open)
        return;
    left->k_tail = (int)(k % (tiles->k_multiple * tiles->k_per_elem));
    left->tail = block;
    left->rest = NULL;
    if (packing->decision->is_tall || s->rows == larger_rows)
        return;
    block += tgi_cpu_count_tail_bytes(tiles);
    left->rest = block;
    left->rest_stride =
        pack_rows(packing, s, s->row + larger_rows, s->rows - larger_rows, k0, k, block);
}

void tgi_cpu_pack_a(const tgi_packing *packing, tgi_micropanels *s, int64_t k0, int64_t k,
                    char *block)
{
    tgi_left *left = &s->a;
    const tgi_problem *p = packing->call->problem;
    const tgi_tile_set *tiles = packing->tiles;
    int64_t bytes = tgi_type_bytes(p->type);
    if (!packing->decision->is_a_packed) {
        read_a(packing, s, k0, k, left, block);
        return;
    }
    left->data = block;
    if (p->a.row != 1 || p->a.col == 1 || tiles->k_per_elem > 1) {
        left->order = TGI_A_ALONG_K;
        left->is_in_micropanels = 0;
        left->stride = pack_rows(packing, s, s->row, s->rows, k0, k, block);
        return;
    }
    left->order = TGI_A_ALONG_ROWS;
    left->is_in_micropanels = 1;
    left->stride = 0;
    const int64_t k_elems = tgi_cpu_count_k_elems(tiles, k);
    /* The loop takes a few values of k across all tiles, so that A is read in long runs. */
    for (int64_t k1 = 0; k1 < k; k1 += PACKED_DEPTH) {
        for (int64_t index = 0, i = 0, rows; index < s->tiling.count; index++, i += rows) {
            rows = index < s->tiling.larger_count ? s->tiling.larger_rows : s->tiling.rows;
            int64_t elem = i * k_elems + k1 / tiles->k_per_elem * rows;
            tgi_copy copy = {
                .target = block + elem * tiles->elem_bytes,
                .target_stride = rows,
                .source = tgi_cpu_at(packing->call->a, &p->a, s->batch, s->row + i, k0 + k1, bytes),
                .outer = k - k1 < PACKED_DEPTH ? k - k1 : PACKED_DEPTH,
                .inner = rows,
                .ahead = k - k1 > PACKED_DEPTH ? PACKED_DEPTH : 0,
                .outer_stride = p->a.col,
                .inner_stride = p->a.row};
            packing->kernels->pack_k_outer(&copy);
        }
    }
}
