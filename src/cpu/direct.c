/*
 * Family `direct`: the register tile on operands where they lie, in one thread and without
 * workspace: for matrices so small that packing or waking threads would cost more than it saves.
 */
#include <stdio.h>

#include "cpu/panels.h"
#include "model/cpu_model.h"

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_isa_kernels *kernels = tgi_cpu_select(kernel);
    if (p->b.col != 1 || (p->a.col != 1 && p->a.row != 1)) {
        snprintf(proposal->reason, sizeof proposal->reason,
                 "reads in place: B's rows must be contiguous, and A's rows or columns");
        return;
    }
    int64_t chunk_k = tgi_cpu_chunk_k(p->k, 1);
    if (p->k > chunk_k && !tgi_cpu_is_d_plain(p)) {
        snprintf(
            proposal->reason, sizeof proposal->reason,
            "has no workspace for sums: k = %lld is above %lld and D's rows are not contiguous",
            (long long)p->k, (long long)chunk_k);
        return;
    }
    proposal->is_legal = 1;
    if (tgi_problem_is_empty(p) || tgi_problem_is_scale_only(p))
        return;
    const tgi_tile_set *tiles = kernels->direct_tiles;
    proposal->blocking.kc = chunk_k;
    proposal->blocking.panel_cols = tgi_cpu_panel_cols(p->n, tiles);
    proposal->blocking.row_parts = tgi_cpu_tile_count(p->m, tiles->rows); /* tiles, not tasks */
    double row_tiles = (double)tgi_cpu_tile_count(p->m, tiles->rows);
    double col_tiles = (double)tgi_cpu_tile_count(p->n, tiles->cols);
    double cols = (double)tgi_cpu_tile_count(p->n, tiles->vector_elems) * tiles->vector_elems;
    double batch_chunks = (double)p->batch_count * (double)tgi_cpu_tile_count(p->k, (int)chunk_k);
    /* B is read again for each row tile: from L1 for nothing, from L2 for little, from beyond with
     * the delays of long strides. */
    double b_bytes = (double)p->k * (double)p->n * (double)tiles->elem_bytes;
    double reread_cycles = b_bytes > (double)machine->l2_bytes / 2.0 ? 0.015
                           : b_bytes > (double)machine->l1_bytes     ? 0.0025
                                                                     : 0.0;
    double reread_bytes = (row_tiles - 1.0) * b_bytes * (double)p->batch_count;
    tgi_cpu_work work = {.macs = (double)p->m * cols * (double)p->k * (double)p->batch_count,
                         .macs_per_cycle = tgi_cpu_macs_per_cycle(kernel),
                         .memory_bytes = tgi_model_operand_bytes(p),
                         .memory_share = 0.4, /* D is written and B read down narrow columns */
                         .fixed_cycles = 40.0 * row_tiles * col_tiles * batch_chunks +
                                         reread_cycles * reread_bytes,
                         .thread_count = 1};
    proposal->predicted_s = proposal->serial_s = tgi_model_cpu_seconds(machine, &work);
}

static void execute(const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    const tgi_isa_kernels *kernels = tgi_cpu_select(call->kernel);
    const int64_t bytes = kernels->direct_tiles->elem_bytes, chunk_k = call->blocking->kc;
    /* Field by field: clearing the whole struct first would take as long as a small product. */
    tgi_panels s;
    s.call = call;
    s.kernels = kernels;
    s.tiles = kernels->direct_tiles;
    s.row = s.col = 0;
    s.rows = p->m;
    s.cols = p->n;
    s.tile_count = call->blocking->row_parts;
    s.sums = s.running = NULL;
    s.sums_row = s.running_row = 0;
    s.b.row = p->b.row;
    s.b.panel_elems = s.b.cols = call->blocking->panel_cols;
    tgi_cpu_read_a_in_place(p, s.tiles, &s.a);
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
