/*
 * Family `packed` puts five loops around the register tile. Each task owns a portion of D and packs
 * what it reads, so that threads never wait for each other:
 *
 *     for columns by nc
 *       for rows by rows_kept           only where D cannot hold running sums
 *         for chunks of k
 *           for columns by strip_cols   pack B: chunk x strip, in the last-level cache
 *             for rows by mc            pack A: mc x chunk, in L2
 *               for tiles (micropanels.c)    a micropanel of B in L1 or L2, row tiles go by
 *
 * Few rows do not pay for a B that goes to the last-level cache and back. A strip then has few
 * micropanels, which stay in L2, and A is packed once for all strips of a chunk. Tiles prefetch the
 * next strip, so that packing finds it in L2.
 *
 * If D is small and k is long, chunks of k are tasks too (split-K). Their sums go to the workspace
 * and are added in the order of k, as one thread would have done.
 */
#include <string.h>

#include "cpu/blocking.h"
#include "cpu/packing.h"
#include "threads/threads.h"

/* A B along k is prefetched for at most so many rows, and blocks of an A along m for as many
 * columns. More of them multiply for so long that packing hardly counts. */
#define FEW 128

typedef struct packed_run {
    tgi_packing packing;
    tgi_packed_decision decision; /* the plan's; is_streamed is 0 if D's rows are unaligned */
    int64_t chunk_k, chunk_count;
    int64_t a_bytes, b_bytes, running_bytes; /* bytes of one thread's blocks */
    char *thread_blocks;                     /* thread_count x (a + b + running) */
    char *chunk_sums;                        /* chunk_count x m x n if k is split, else NULL */
} packed_run;

/* Returns 1 if running sums need rows of the workspace, because D cannot hold them. */
static int needs_running(const tgi_problem *p, int64_t chunk_count)
{
    return chunk_count > 1 && !tgi_cpu_is_d_plain(p);
}

static void set_sizes(const tgi_problem *p, const tgi_packed_decision *decision, packed_run *run)
{
    const tgi_tile_set *tiles = run->packing.tiles;
    run->chunk_k = decision->kc;
    run->chunk_count = tgi_divide_up(p->k, decision->kc);
    int64_t k_elems = tgi_cpu_count_k_elems(tiles, decision->kc);
    int64_t nc = tgi_round_up(decision->nc, decision->micropanel_cols);
    int64_t strip_cols = tgi_round_up(decision->strip_cols, decision->micropanel_cols);
    int64_t rows_kept = p->m < TGI_ROWS_KEPT ? p->m : TGI_ROWS_KEPT;
    const int64_t packed_rows = decision->is_a_packed ? tgi_round_up(decision->mc, tiles->rows)
                                : tiles->open && !decision->is_tall ? tiles->rows
                                                                    : 0;
    run->a_bytes = packed_rows * tgi_cpu_find_pitch(tiles, decision->kc) * tiles->elem_bytes;
    if (!decision->is_a_packed)
        run->a_bytes += tgi_cpu_count_tail_bytes(tiles);
    run->b_bytes = decision->is_b_packed ? k_elems * strip_cols * tiles->elem_bytes : 0;
    run->running_bytes =
        needs_running(p, run->chunk_count) ? rows_kept * nc * tiles->accum_bytes : 0;
    run->a_bytes = tgi_round_up(run->a_bytes, TGI_ALIGN_BYTES);
    run->b_bytes = tgi_round_up(run->b_bytes, TGI_ALIGN_BYTES);
    run->running_bytes = tgi_round_up(run->running_bytes, TGI_ALIGN_BYTES);
}

static int64_t count_chunk_sums_bytes(const tgi_problem *p, const tgi_packed_decision *decision,
                                      const packed_run *run)
{
    if (decision->k_splits == 1)
        return 0;
    return tgi_round_up(run->chunk_count * p->m * p->n * tgi_type_sum_bytes(p->type),
                        TGI_ALIGN_BYTES);
}

/* A chunk of k of a block. */
typedef struct packed_chunk {
    int64_t index, k0, k;
    int64_t next_k;     /* length of the next chunk of this task, or 0 */
    int64_t col0, col1; /* columns of all strips */
} packed_chunk;

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
static int start_strips(const packed_run *run, const packed_chunk *chunk, const tgi_micropanels *s,
                        tgi_prefetch prefetches[TGI_PREFETCH_COUNT])
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
static int start_rows(const packed_run *run, const packed_chunk *chunk, const tgi_micropanels *s,
                      int64_t row0, int64_t row1, tgi_prefetch *prefetch)
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

/* Lets the tiles of a block prefetch what is packed or read next, if they can. */
static void start_prefetches(const packed_run *run, const packed_chunk *chunk, tgi_micropanels *s,
                             int64_t row0, int64_t row1,
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
    const int64_t micropanels = tgi_divide_up(s->cols, decision->micropanel_cols);
    s->prefetch = tgi_cpu_pace_prefetches(
        prefetches, count, s->tiling.count * micropanels * (s->k_elems / TGI_TILE_UNROLL));
}

/* Computes the columns of a strip for one chunk. */
static void run_strip(const packed_run *run, const packed_chunk *chunk, tgi_micropanels *s,
                      char *blocks)
{
    const tgi_problem *p = run->packing.call->problem;
    const int64_t row0 = s->row, row1 = s->row + s->rows, mc = run->decision.mc;
    const int64_t sum_bytes = run->packing.tiles->accum_bytes;
    const int is_a_there = s->rows <= mc && s->col > chunk->col0; /* packed for another strip */
    char *a_block = blocks, *b_block = blocks + run->a_bytes;
    tgi_prefetch prefetches[TGI_PREFETCH_COUNT];
    tgi_cpu_pack_b(&run->packing, s, chunk->k0, chunk->k, b_block);
    for (int64_t row = row0; row < row1; row += mc) {
        s->row = row;
        s->rows = row1 - row < mc ? row1 - row : mc;
        s->tiling = tgi_cpu_tile_block(p, s->rows, s->tiles, run->decision.is_a_packed);
        if (!is_a_there)
            tgi_cpu_pack_a(&run->packing, s, chunk->k0, chunk->k, a_block);
        start_prefetches(run, chunk, s, row0, row1, prefetches);
        if (run->chunk_sums) {
            int64_t offset = (chunk->index * p->m + s->row) * p->n + s->col;
            s->sums = run->chunk_sums + offset * sum_bytes;
            s->sums_row = p->n;
        } else if (run->running_bytes) {
            s->running_row = tgi_round_up(run->decision.nc, run->decision.micropanel_cols);
            int64_t offset = (row - row0) * s->running_row + s->col - chunk->col0;
            s->running = b_block + run->b_bytes + offset * sum_bytes;
        }
        tgi_cpu_run_micropanels(s);
    }
    s->row = row0;
    s->rows = row1 - row0;
}

/* Computes the rows and columns of `s` for chunks first .. last - 1. */
static void run_block(const packed_run *run, tgi_micropanels *s, int64_t first, int64_t last,
                      char *blocks)
{
    const int64_t all_k = run->packing.call->problem->k, strip_cols = run->decision.strip_cols;
    packed_chunk chunk = {.col0 = s->col, .col1 = s->col + s->cols};
    for (chunk.index = first; chunk.index < last; chunk.index++) {
        chunk.k0 = chunk.index * run->chunk_k;
        int64_t left = all_k - chunk.k0;
        chunk.k = left < run->chunk_k ? left : run->chunk_k;
        left -= chunk.k;
        chunk.next_k = chunk.index + 1 == last ? 0 : left < run->chunk_k ? left : run->chunk_k;
        s->is_first = chunk.index == 0;
        s->is_last = chunk.index == run->chunk_count - 1;
        s->k_elems = tgi_cpu_count_k_elems(run->packing.tiles, chunk.k);
        for (s->col = chunk.col0; s->col < chunk.col1; s->col += strip_cols) {
            s->cols = chunk.col1 - s->col < strip_cols ? chunk.col1 - s->col : strip_cols;
            run_strip(run, &chunk, s, blocks);
        }
    }
}

static void run_task(void *state, int64_t index, int thread)
{
    const packed_run *run = state;
    const tgi_problem *p = run->packing.call->problem;
    const tgi_packed_decision *decision = &run->decision;
    const tgi_tile_set *tiles = run->packing.tiles;
    int64_t task = index;
    int64_t k_split = task % decision->k_splits;
    task /= decision->k_splits;
    int64_t col_portion = task % decision->col_portions;
    task /= decision->col_portions;
    int64_t row_portion = task % decision->row_portions;
    int64_t batch = task / decision->row_portions;
    int64_t row0 = tgi_cpu_find_portion(p->m, decision->row_portions, row_portion, 1);
    int64_t row1 = tgi_cpu_find_portion(p->m, decision->row_portions, row_portion + 1, 1);
    int64_t col0 =
        tgi_cpu_find_portion(p->n, decision->col_portions, col_portion, decision->micropanel_cols);
    int64_t col1 = tgi_cpu_find_portion(p->n, decision->col_portions, col_portion + 1,
                                        decision->micropanel_cols);
    int64_t first = tgi_cpu_find_portion(run->chunk_count, decision->k_splits, k_split, 1);
    int64_t last = tgi_cpu_find_portion(run->chunk_count, decision->k_splits, k_split + 1, 1);
    int64_t rows_kept = run->running_bytes ? TGI_ROWS_KEPT : p->m;
    char *blocks = run->thread_blocks + thread * (run->a_bytes + run->b_bytes + run->running_bytes);
    /* A call that forms all rows prepares the registers itself. */
    if (tiles->open && !decision->is_tall)
        tiles->open();
    for (int64_t col = col0; col < col1; col += decision->nc) {
        for (int64_t row = row0; row < row1; row += rows_kept) {
            tgi_micropanels s = {.call = run->packing.call,
                                 .decision = decision,
                                 .kernels = run->packing.kernels,
                                 .tiles = tiles,
                                 .batch = batch,
                                 .row = row,
                                 .col = col,
                                 .rows = row1 - row < rows_kept ? row1 - row : rows_kept,
                                 .cols = col1 - col < decision->nc ? col1 - col : decision->nc};
            run_block(run, &s, first, last, blocks);
        }
    }
    if (tiles->close && !decision->is_tall)
        tiles->close();
    /* Non-temporal stores must be visible before the thread reports its tasks as done. */
    if (decision->is_streamed)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Returns 1 if each row of D starts on a vector, which non-temporal stores require. */
static int is_d_aligned(const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    int64_t bytes = tgi_type_bytes(p->d_type);
    int64_t row_bytes = p->m > 1 ? p->d.row * bytes : 0;
    int64_t batch_bytes = p->batch_count > 1 ? p->d.batch * bytes : 0;
    return ((intptr_t)call->d | row_bytes | batch_bytes) % TGI_ALIGN_BYTES == 0;
}

static tg_status launch_oriented(const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    const tgi_cpu_prepared *prepared = call->prepared;
    packed_run run = {.decision = prepared->decision.packed};
    run.packing = (tgi_packing){.call = call,
                                .decision = &run.decision,
                                .kernels = prepared->kernels,
                                .tiles = tgi_cpu_packed_tiles(prepared->kernels, p),
                                .pack_b = prepared->pack_b};
    const tgi_packed_decision *decision = &run.decision;
    run.decision.is_streamed = decision->is_streamed && is_d_aligned(call);
    set_sizes(p, decision, &run);
    int64_t sums_bytes = count_chunk_sums_bytes(p, decision, &run);
    run.chunk_sums = sums_bytes ? call->workspace : NULL;
    run.thread_blocks = (char *)call->workspace + sums_bytes;
    int64_t count =
        p->batch_count * decision->row_portions * decision->col_portions * decision->k_splits;
    if (count == 1 && decision->is_b_packed) { /* A comes while B is packed */
        const tgi_prefetch_block a_block =
            tgi_cpu_find_block(&p->a, p->m, p->k, tgi_type_bytes(p->type));
        tgi_cpu_prefetch_block(call->a, &a_block);
    }
    tgi_threads_run(run_task, &run, count, prepared->thread_count);
    if (sums_bytes) {
        tgi_cpu_reduce_chunks(call, run.packing.kernels->finish, run.chunk_sums, run.chunk_count);
    }
    return TG_STATUS_OK;
}

/* Returns 1 if pairs compute D^T = B^T A^T: few columns of D are few rows of the canonical problem,
 * whose elements of D lie apart, and whose B along k would be transposed while it is packed. */
static int must_transpose(const tgi_problem *p, const tgi_isa_kernels *kernels)
{
    const int is_b_along_k = p->b.row == 1 && p->b.col != 1;
    return kernels->tiles->k_per_elem > 1 && p->d.row == 1 &&
           (p->d.col != 1 || (p->m == 1 && is_b_along_k));
}

static tg_status launch(const tgi_call *call)
{
    tgi_problem problem;
    tgi_call transposed;
    if (!must_transpose(call->problem, tgi_cpu_get_prepared(call)->kernels))
        return launch_oriented(call);
    tgi_cpu_transpose_call(call, &problem, &transposed);
    return launch_oriented(&transposed);
}

static void propose(const tgi_machine *machine, const tgi_problem *given, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_problem oriented = *given;
    const tgi_problem *const p = &oriented;
    tgi_packed_decision serial;
    tgi_cpu_work work;
    if (must_transpose(given, tgi_cpu_select(kernel)))
        tgi_problem_transpose(&oriented);
    if (kernel->math == TGI_MATH_dot && p->precision == TG_PRECISION_IEEE_FP32) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION,
                   "its dot products take subnormal BF16 as zero; ieee_fp32 keeps them");
        return;
    }
    proposal->is_legal = 1;
    if (tgi_problem_is_empty(p) || tgi_problem_is_scale_only(p))
        return;
    memset(&serial, 0, sizeof serial);
    tgi_cpu_choose_blocking(machine, p, kernel, 1, &serial, &work);
    proposal->serial_s = tgi_model_cpu_seconds(machine, &work);
    const int thread_count = tgi_cpu_count_threads(machine, proposal->serial_s);
    proposal->thread_count = thread_count;
    tgi_cpu_choose_blocking(machine, p, kernel, thread_count, &proposal->decision.packed, &work);
    proposal->predicted_s = tgi_model_cpu_seconds(machine, &work);

    packed_run run = {.packing.tiles = tgi_cpu_packed_tiles(tgi_cpu_select(kernel), p)};
    set_sizes(p, &proposal->decision.packed, &run);
    proposal->workspace_bytes = count_chunk_sums_bytes(p, &proposal->decision.packed, &run) +
                                thread_count * (run.a_bytes + run.b_bytes + run.running_bytes);
}

const tgi_cpu_family tgi_cpu_packed = {.propose = propose, .launch = launch};
