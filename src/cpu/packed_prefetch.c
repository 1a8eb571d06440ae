/* Lets the tiles of a block of family `packed` prefetch what comes after it, so that memory works
 * while they multiply. */
#include "cpu/packed_run.h"

/* A B along k is prefetched for at most so many rows, and blocks of an A along m for as many
 * columns. More of them multiply for so long that packing hardly counts. */
#define FEW 128

/* Lets `prefetch` begin with a block of A or B: its rows, or its columns if B lies along k. */
static void start_block(tgi_prefetch *prefetch, const void *start, const tgi_layout *layout,
                        int64_t rows, int64_t cols, int64_t bytes)
{
    if (layout->col == 1)
        tgi_cpu_start_prefetch(prefetch, start, cols * bytes, layout->row * bytes, rows);
    else
        tgi_cpu_start_prefetch(prefetch, start, rows * bytes, layout->col * bytes, cols);
}

/* Starts the prefetches of the next strip of B, of this chunk or the next one, and of a portion of
 * the next chunk of an A along m. Returns their number. */
static int start_strips(const tgi_packed_run *run, const tgi_packed_chunk *chunk,
                        const tgi_micropanels *s, tgi_prefetch prefetches[TGI_PREFETCH_COUNT])
{
    const tgi_problem *p = run->packing.call->problem;
    const tgi_packed_decision *decision = &run->decision;
    const int64_t bytes = tgi_type_bytes(p->type), strip_cols = decision->strip_cols;
    const int64_t next_k0 = chunk->k0 + chunk->k, later_col = s->col + strip_cols;
    const int is_inside = later_col < chunk->col1;
    const int64_t col = is_inside ? later_col : chunk->col0;
    const int64_t cols = chunk->col1 - col < strip_cols ? chunk->col1 - col : strip_cols;
    int count = 0;
    if (!is_inside && chunk->next_k == 0)
        return 0;
    if (p->b.col == 1 || (p->b.row == 1 && s->rows <= FEW))
        start_block(&prefetches[count++],
                    tgi_cpu_at(run->packing.call->b, &p->b, s->batch,
                               is_inside ? chunk->k0 : next_k0, col, bytes),
                    &p->b, is_inside ? chunk->k : chunk->next_k, cols, bytes);
    if (decision->is_a_packed && p->a.row == 1 && p->a.col != 1 && chunk->next_k > 0) {
        const int64_t portions = tgi_divide_up(chunk->col1 - chunk->col0, strip_cols);
        const int64_t portion = (s->col - chunk->col0) / strip_cols;
        const int64_t k0 = tgi_cpu_find_portion(chunk->next_k, portions, portion, 1);
        const int64_t k1 = tgi_cpu_find_portion(chunk->next_k, portions, portion + 1, 1);
        if (k1 > k0)
            start_block(
                &prefetches[count++],
                tgi_cpu_at(run->packing.call->a, &p->a, s->batch, s->row, next_k0 + k0, bytes),
                &p->a, s->rows, k1 - k0, bytes);
    }
    return count;
}

/* Starts the prefetch of the rows of an A along m that are packed next, behind those of `s` or
 * from row0 on. An A along k is packed in runs that need no prefetches. Returns their number. */
static int start_rows(const tgi_packed_run *run, const tgi_packed_chunk *chunk,
                      const tgi_micropanels *s, int64_t row0, int64_t row1, tgi_prefetch *prefetch)
{
    const tgi_problem *p = run->packing.call->problem;
    const tgi_packed_decision *decision = &run->decision;
    const int64_t bytes = tgi_type_bytes(p->type), later_row = s->row + s->rows;
    const int is_inside = later_row < row1, is_alone = row1 - row0 <= decision->mc;
    const int is_in_chunk = is_inside || s->col + decision->strip_cols < chunk->col1;
    const int64_t row = is_inside ? later_row : row0;
    const int64_t rows = row1 - row < decision->mc ? row1 - row : decision->mc;
    const int64_t k0 = is_in_chunk ? chunk->k0 : chunk->k0 + chunk->k;
    const int64_t k = is_in_chunk ? chunk->k : chunk->next_k;
    if (!decision->is_a_packed || p->a.row != 1 || p->a.col == 1 || s->cols > FEW || k == 0 ||
        (is_in_chunk && is_alone))
        return 0;
    start_block(prefetch, tgi_cpu_at(run->packing.call->a, &p->a, s->batch, row, k0, bytes), &p->a,
                rows, k, bytes);
    return 1;
}

/* Starts the prefetches of a packed B that takes over a fourth of L2: of its second and later
 * micropanels and, unless the rows of `s` are the last ones, of the first one for the next rows. A
 * micropanel then comes to L2 while tiles read the one before. Tiles request a line in each
 * iteration, so that those of few rows prefetch the first part of each micropanel alone. Returns
 * the number of prefetches. */
static int start_micropanels(const tgi_micropanels *s, int is_last,
                             tgi_prefetch prefetches[TGI_PREFETCH_COUNT])
{
    const int64_t bytes = s->b.micropanel_elems * s->tiles->elem_bytes;
    const int64_t later_count = tgi_divide_up(s->cols, s->b.cols) - 1;
    const int64_t most = s->tiling.count * (s->k_elems / TGI_TILE_UNROLL) * TGI_CACHE_LINE_BYTES;
    if (later_count == 0)
        return 0;
    tgi_cpu_start_prefetch(&prefetches[0], (const char *)s->b.data + bytes,
                           bytes < most ? bytes : most, bytes, later_count);
    if (is_last)
        return 1;
    tgi_cpu_start_prefetch(&prefetches[1], s->b.data, bytes, 0, 1);
    return 2;
}

/* Starts the prefetch of the D of a block of D^T, which is not written before the tiles of a
 * micropanel have finished. */
static void start_transposed(const tgi_packed_run *run, const tgi_micropanels *s,
                             tgi_prefetch *prefetch)
{
    const tgi_problem *p = run->packing.call->problem;
    const int64_t bytes = tgi_type_bytes(p->d_type);
    start_block(prefetch, tgi_cpu_at(run->packing.call->d, &p->d, s->batch, s->row, s->col, bytes),
                &p->d, s->rows, s->cols, bytes);
}

void tgi_cpu_start_prefetches(const tgi_packed_run *run, const tgi_packed_chunk *chunk,
                              tgi_micropanels *s, int64_t row0, int64_t row1,
                              tgi_prefetch prefetches[TGI_PREFETCH_COUNT])
{
    const tgi_packed_decision *decision = &run->decision;
    int count = 0;
    if (decision->is_prefetched)
        count = start_strips(run, chunk, s, prefetches);
    else if (s->tiles->k_per_elem == 1 && !tgi_cpu_is_narrow(s->tiles))
        count = start_rows(run, chunk, s, row0, row1, prefetches);
    if (count == 0 && decision->is_b_far)
        count = start_micropanels(s, s->row + s->rows >= row1, prefetches);
    if (decision->is_transposed && !run->chunk_sums)
        start_transposed(run, s, &prefetches[count++]);
    const int64_t micropanels = tgi_divide_up(s->cols, decision->micropanel_cols);
    s->prefetch = tgi_cpu_pace_prefetches(
        prefetches, count, s->tiling.count * micropanels * (s->k_elems / TGI_TILE_UNROLL));
}
