/*
 * Family `direct`: the register tile on operands where they lie, in one thread and without workspace:
 * for matrices so small that packing or waking threads would cost more than it saves.
 */
#include <stdio.h>

#include "cpu/panels.h"
#include "model/cpu_model.h"

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_isa_kernels kernels = tgi_cpu_select(kernel);
    if (p->b.col != 1 || (p->a.col != 1 && p->a.row != 1)) {
        snprintf(proposal->reason, sizeof proposal->reason,
                 "reads in place: B's rows must be contiguous, and A's rows or columns");
        return;
    }
    int64_t chunk_k = tgi_cpu_chunk_k(p->k);
    if (p->k > chunk_k && !tgi_cpu_is_d_plain(p)) {
        snprintf(proposal->reason, sizeof proposal->reason,
                 "has no workspace for sums: k = %lld is above %lld and D's rows are not contiguous",
                 (long long)p->k, (long long)chunk_k);
        return;
    }
    proposal->is_legal = 1;
    if (tgi_problem_is_empty(p) || tgi_problem_is_scale_only(p)) return;
    const tgi_tile_set *tiles = kernels.tiles;
    double row_tiles = (double)tgi_cpu_tile_count(p->m, tiles->rows);
    double col_tiles = (double)tgi_cpu_tile_count(p->n, tiles->cols);
    double cols = (double)tgi_cpu_tile_count(p->n, tiles->vector_elems) * tiles->vector_elems;
    double batch_chunks = (double)p->batch_count * (double)tgi_cpu_tile_count(p->k, (int)chunk_k);
    /* B is read again for each row tile, from L2 where it does not fit in L1, with stride. */
    double b_bytes = (double)p->k * (double)p->n * (double)tiles->elem_bytes;
    double reread = b_bytes > (double)machine->l1_bytes ? (row_tiles - 1.0) : 0.0;
    tgi_cpu_work work = {
        .macs = (double)p->m * cols * (double)p->k * (double)p->batch_count,
        .macs_per_cycle = tgi_cpu_macs_per_cycle(kernel),
        .moved_elems = 0.05 * reread * (double)p->k * (double)p->n * (double)p->batch_count,
        .memory_bytes = tgi_model_operand_bytes(p),
        .fixed_cycles = 40.0 * row_tiles * col_tiles * batch_chunks,
        .thread_count = 1};
    proposal->predicted_s = proposal->serial_s = tgi_model_cpu_seconds(machine, &work);
}

static void execute(const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    const tgi_isa_kernels kernels = tgi_cpu_select(call->kernel);
    const int64_t bytes = kernels.tiles->elem_bytes, chunk_k = tgi_cpu_chunk_k(p->k);
    tgi_panels s = {.call = call, .kernels = &kernels, .rows = p->m, .cols = p->n};
    tgi_cpu_read_a_in_place(call, &kernels, &s.a);
    s.b.row = p->b.row;
    s.b.panel_elems = kernels.tiles->cols;
    for (s.batch = 0; s.batch < p->batch_count; s.batch++) {
        for (int64_t k0 = 0; k0 < p->k; k0 += chunk_k) {
            s.is_first = k0 == 0;
            s.is_last = k0 + chunk_k >= p->k;
            s.k_elems = s.is_last ? p->k - k0 : chunk_k;
            s.a.data = tgi_cpu_at(call->a, &p->a, s.batch, 0, k0, bytes);
            s.b.data = tgi_cpu_at(call->b, &p->b, s.batch, k0, 0, bytes);
            tgi_cpu_run_panels(&s);
        }
    }
}

const tgi_cpu_family tgi_cpu_direct = {propose, execute};
