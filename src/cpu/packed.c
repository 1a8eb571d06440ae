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
 *
 * All this may compute D^T = B^T A^T, if that packs less (transposed.c).
 */
#include <string.h>

#include "cpu/blocking.h"
#include "cpu/packed_run.h"
#include "cpu/transposed.h"
#include "threads/threads.h"

/* One thread loses, if operands come from memory, so many cycles for an element of an A along m,
 * and of a B along k beside few rows, which `direct` does not lose. */
#define FAR_A_CYCLES 0.05
#define FAR_B_CYCLES 0.1

/* Returns the bytes of running sums that need rows of the workspace, because D cannot hold them, or
 * of the sums of a micropanel of D^T. */
static int64_t count_running_bytes(const tgi_problem *p, const tgi_packed_decision *decision,
                                   const tgi_tile_set *tiles)
{
    const int64_t rows_kept = p->m < TGI_ROWS_KEPT ? p->m : TGI_ROWS_KEPT;
    if (decision->is_transposed)
        return decision->mc * decision->micropanel_cols * tiles->accum_bytes;
    if (p->k <= decision->kc || tgi_cpu_is_d_plain(p))
        return 0;
    return rows_kept * tgi_round_up(decision->nc, decision->micropanel_cols) * tiles->accum_bytes;
}

static void set_sizes(const tgi_problem *p, const tgi_packed_decision *decision,
                      tgi_packed_run *run)
{
    const tgi_tile_set *tiles = run->packing.tiles;
    run->chunk_k = decision->kc;
    run->chunk_count = tgi_divide_up(p->k, decision->kc);
    int64_t k_elems = tgi_cpu_count_k_elems(tiles, decision->kc);
    int64_t strip_cols = tgi_round_up(decision->strip_cols, decision->micropanel_cols);
    const int64_t packed_rows = decision->is_a_packed ? tgi_round_up(decision->mc, tiles->rows)
                                : tiles->open && !decision->is_tall ? tiles->rows
                                                                    : 0;
    run->a_bytes = packed_rows * tgi_cpu_find_pitch(tiles, decision->kc) * tiles->elem_bytes;
    if (!decision->is_a_packed)
        run->a_bytes += tgi_cpu_count_tail_bytes(tiles);
    const int has_later_chunk = decision->is_tall && p->k > tgi_cpu_find_chunk(p, tiles);
    if (has_later_chunk && tiles->open) /* the sums of that chunk */
        run->a_bytes += tiles->rows * tiles->cols * tiles->accum_bytes;
    run->b_bytes = decision->is_b_packed ? k_elems * strip_cols * tiles->elem_bytes : 0;
    run->running_bytes = count_running_bytes(p, decision, tiles);
    run->a_bytes = tgi_round_up(run->a_bytes, TGI_ALIGN_BYTES);
    run->b_bytes = tgi_round_up(run->b_bytes, TGI_ALIGN_BYTES);
    run->running_bytes = tgi_round_up(run->running_bytes, TGI_ALIGN_BYTES);
}

static int64_t count_chunk_sums_bytes(const tgi_problem *p, const tgi_packed_decision *decision,
                                      const tgi_packed_run *run)
{
    if (decision->k_splits == 1)
        return 0;
    return tgi_round_up(run->chunk_count * p->m * p->n * tgi_type_sum_bytes(p->type),
                        TGI_ALIGN_BYTES);
}

/* Computes the columns of a strip for one chunk. */
static void run_strip(const tgi_packed_run *run, const tgi_packed_chunk *chunk, tgi_micropanels *s,
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
        tgi_cpu_start_prefetches(run, chunk, s, row0, row1, prefetches);
        if (!run->chunk_sums && run->decision.is_transposed) {
            s->sums = b_block + run->b_bytes;
            tgi_cpu_run_transposed(s);
            continue;
        }
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
static void run_block(const tgi_packed_run *run, tgi_micropanels *s, int64_t first, int64_t last,
                      char *blocks)
{
    const int64_t all_k = run->packing.call->problem->k, strip_cols = run->decision.strip_cols;
    tgi_packed_chunk chunk = {.col0 = s->col, .col1 = s->col + s->cols};
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
    const tgi_packed_run *run = state;
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
    int64_t rows_kept = run->running_bytes && !decision->is_transposed ? TGI_ROWS_KEPT : p->m;
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

static tg_status run_packed(const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    const tgi_cpu_prepared *prepared = call->prepared;
    tgi_packed_run run = {.decision = prepared->decision.packed};
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
    const tgi_cpu_prepared *prepared = call->prepared;
    tgi_problem problem;
    tgi_call transposed;
    if (!prepared->decision.packed.is_transposed &&
        !must_transpose(call->problem, prepared->kernels))
        return run_packed(call);
    tgi_cpu_transpose_call(call, &problem, &transposed);
    return run_packed(&transposed);
}

/* Fills *decision for one thread. Returns the seconds that it takes. */
static double propose_serial(const tgi_machine *machine, const tgi_problem *p,
                             const tgi_kernel *kernel, int is_transposed,
                             tgi_packed_decision *decision)
{
    tgi_cpu_work work;
    memset(decision, 0, sizeof *decision);
    decision->is_transposed = is_transposed;
    tgi_cpu_choose_blocking(machine, p, kernel, 1, decision, &work);
    return tgi_model_cpu_seconds(machine, &work);
}

/* Returns the cycles that one thread loses where operands come from memory. Measured of single
 * products of FP32 and FP64. */
static double count_far_cycles(const tgi_problem *p)
{
    const int is_a_far = p->a.col != 1 && p->a.row == 1;
    const int is_b_far = p->b.col != 1 && p->b.row == 1 && p->m <= TGI_SKINNY_ROWS;
    if (p->batch_count > 1 || tgi_type_bytes(p->type) < tgi_type_sum_bytes(p->type))
        return 0.0;
    return FAR_A_CYCLES * (double)(is_a_far * p->m * p->k) +
           FAR_B_CYCLES * (double)(is_b_far * p->k * p->n);
}

static void propose(const tgi_machine *machine, const tgi_problem *given, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_problem transposed = *given;
    tgi_packed_decision serial, *decision = &proposal->decision.packed;
    tgi_cpu_work work;
    tgi_problem_transpose(&transposed);
    const tgi_problem *p = must_transpose(given, tgi_cpu_select(kernel)) ? &transposed : given;
    if (kernel->math == TGI_MATH_dot && p->precision == TG_PRECISION_IEEE_FP32) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION,
                   "its dot products take subnormal BF16 as zero; ieee_fp32 keeps them");
        return;
    }
    proposal->is_legal = 1;
    if (tgi_problem_is_empty(p) || tgi_problem_is_scale_only(p))
        return;
    proposal->serial_s = propose_serial(machine, p, kernel, 0, &serial);
    if (tgi_cpu_can_transpose(given)) {
        const double transposed_s = propose_serial(machine, &transposed, kernel, 1, &serial);
        if (transposed_s < proposal->serial_s) {
            decision->is_transposed = 1;
            proposal->serial_s = transposed_s;
            p = &transposed;
        }
    }
    const int thread_count = tgi_cpu_count_threads(machine, proposal->serial_s);
    proposal->thread_count = thread_count;
    tgi_cpu_choose_blocking(machine, p, kernel, thread_count, decision, &work);
    if (thread_count == 1)
        work.cold_cycles += count_far_cycles(given);
    proposal->predicted_s = tgi_model_cpu_seconds(machine, &work);

    tgi_packed_run run = {.packing.tiles = tgi_cpu_packed_tiles(tgi_cpu_select(kernel), p)};
    set_sizes(p, decision, &run);
    proposal->workspace_bytes = count_chunk_sums_bytes(p, decision, &run) +
                                thread_count * (run.a_bytes + run.b_bytes + run.running_bytes);
}

const tgi_cpu_family tgi_cpu_packed = {.propose = propose, .launch = launch};
