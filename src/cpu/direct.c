/*
 * Family `direct` runs register tiles on the operands in place, in one thread, without workspace.
 * It serves matrices so small that packing or waking threads costs more than it saves.
 */

#include "cpu/panels.h"
#include "model/cpu_model.h"

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_isa_kernels *kernels = tgi_cpu_select(kernel);
    if (p->b.col != 1 || (p->a.col != 1 && p->a.row != 1) || !tgi_cpu_is_d_plain(p) ||
        p->c.col != 1) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_LAYOUT,
                   "works in place: the rows of B, C and D must be contiguous, and A's rows or "
                   "columns");
        return;
    }
    if (!tgi_epilogue_is_linear(&p->epilogue)) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_EPILOGUE,
                   "writes D from registers: alpha and beta, but no bias and no activation");
        return;
    }
    if (p->k > TGI_CHUNK_K) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "sums all of k in registers: k = %lld is above %d", (long long)p->k,
                   TGI_CHUNK_K);
        return;
    }
    proposal->is_legal = 1;
    if (tgi_problem_is_empty(p) || tgi_problem_is_scale_only(p))
        return;
    const tgi_tile_set *tiles = kernels->direct_tiles;
    /* The cut is made at planning, because its divisions take as long as a small tile. */
    const tgi_tile_cut cut = tgi_cpu_cut_rows(p->m, tiles->rows);
    proposal->decision.direct = (tgi_direct_decision){.panel_cols = tgi_cpu_panel_cols(p->n, tiles),
                                                      .tile_rows = cut.rows,
                                                      .tile_count = cut.count,
                                                      .larger_count = cut.larger_count};
    double row_tiles = (double)tgi_cpu_tile_count(p->m, tiles->rows);
    double col_tiles = (double)tgi_cpu_tile_count(p->n, tiles->cols);
    double cols = (double)tgi_cpu_tile_count(p->n, tiles->vector_elems) * tiles->vector_elems;
    double batch_count = (double)p->batch_count;
    /* Each row tile reads B again. Reads from L1 are free, reads from L2 cost little, and reads
     * from memory suffer from long strides. */
    double b_bytes = (double)p->k * (double)p->n * (double)tiles->elem_bytes;
    double reread_cycles = b_bytes > (double)machine->l2_bytes / 2.0 ? 0.015
                           : b_bytes > (double)machine->l1_bytes     ? 0.0025
                                                                     : 0.0;
    double reread_bytes = (row_tiles - 1.0) * b_bytes * batch_count;
    tgi_cpu_work work = {.macs = (double)p->m * cols * (double)p->k * batch_count,
                         .macs_per_cycle = tgi_cpu_macs_per_cycle(kernel),
                         .memory_bytes = tgi_model_operand_bytes(p),
                         .memory_share = 0.4, /* D is written and B read down narrow columns */
                         .fixed_cycles = 40.0 * row_tiles * col_tiles * batch_count +
                                         reread_cycles * reread_bytes,
                         .thread_count = 1};
    proposal->predicted_s = proposal->serial_s = tgi_model_cpu_seconds(machine, &work);
}

/* The time outside the tiles counts here, so structs are filled field by field, and nothing is
 * computed twice. */
static void launch(const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    const tgi_cpu_prepared *prepared = call->prepared;
    const tgi_direct_decision *cut = &prepared->decision.direct;
    const tgi_tile_set *tiles = prepared->kernels->direct_tiles;
    const int64_t bytes = tiles->elem_bytes, cols = cut->panel_cols;
    const int64_t rows = cut->tile_rows, larger_count = cut->larger_count;
    const int64_t larger_rows = larger_count * (rows + 1);
    const tgi_a_order order = p->a.col == 1 ? TGI_A_ALONG_K : TGI_A_ALONG_ROWS;
    /* If beta is 0, C is never read, and D stands for it. */
    const char *a = call->a, *b = call->b, *c = call->c ? call->c : call->d;
    char *d = call->d;
    tgi_tile tile;
    tile.k = p->k;
    tile.a_stride = order == TGI_A_ALONG_K ? p->a.row : p->a.col;
    tile.b_row = p->b.row;
    tile.c_row = p->c.row;
    tile.d_row = p->d.row;
    tile.alpha = p->epilogue.alpha;
    tile.beta = p->epilogue.beta;
    tile.is_plain = p->epilogue.alpha == 1.0 && p->epilogue.beta == 0.0;
    tile.is_d_far = tile.is_streamed = 0;
    for (int64_t batch = 0; batch < p->batch_count; batch++) {
        for (int64_t j = 0; j < p->n; j += cols) {
            tile.cols = (int)(p->n - j < cols ? p->n - j : cols);
            tile.b = b + j * bytes;
            if (larger_count) {
                tile.tile_count = larger_count;
                tile.a = a;
                tile.a_step = (rows + 1) * p->a.row;
                tile.c = c + j * bytes;
                tile.d = d + j * bytes;
                tiles->functions[rows][order](&tile);
            }
            if (larger_rows == p->m)
                continue;
            tile.tile_count = cut->tile_count - larger_count;
            tile.a = a + larger_rows * p->a.row * bytes;
            tile.a_step = rows * p->a.row;
            tile.c = c + (larger_rows * p->c.row + j) * bytes;
            tile.d = d + (larger_rows * p->d.row + j) * bytes;
            tiles->functions[rows - 1][order](&tile);
        }
        a += p->a.batch * bytes;
        b += p->b.batch * bytes;
        c += p->c.batch * bytes;
        d += p->d.batch * bytes;
    }
}

const tgi_cpu_family tgi_cpu_direct = {propose, launch};
