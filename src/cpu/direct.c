/*
 * Family `direct` runs register tiles on the operands in place, in one thread, without workspace.
 * It serves matrices so small that packing or waking threads costs more than it saves.
 */

#include "cpu/panels.h"
#include "model/cpu_model.h"

/* Cycles to store a part of a vector on processors whose masks are vectors. */
#define PARTIAL_STORE_CYCLES 8.0

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
    double row_tiles = (double)tgi_cpu_tile_count(p->m, tiles->rows);
    double col_tiles = (double)tgi_cpu_tile_count(p->n, tiles->cols);
    double cols = (double)tgi_cpu_tile_count(p->n, tiles->vector_elems) * tiles->vector_elems;
    double batch_count = (double)p->batch_count;
    double partial_rows = !kernels->narrow_tiles && p->n % tiles->vector_elems ? (double)p->m : 0.0;
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
                         .fixed_cycles =
                             (40.0 * row_tiles * col_tiles + PARTIAL_STORE_CYCLES * partial_rows) *
                                 batch_count +
                             reread_cycles * reread_bytes,
                         .thread_count = 1};
    proposal->predicted_s = proposal->serial_s = tgi_model_cpu_seconds(machine, &work);
}

/* A call of a micro-kernel for some of a panel's rows. */
typedef struct direct_part {
    tgi_tile_fn *function;
    tgi_tile tile;
    int64_t a_offset, c_offset, d_offset; /* bytes from the panel's first row */
} direct_part;

/* Panels of equal width, side by side. */
typedef struct direct_panels {
    int64_t count, panel_bytes;
    int part_count;
    direct_part part[2]; /* tiles of one row more than the others come first */
} direct_panels;

typedef struct direct_prepared {
    int64_t batch_count, a_batch_bytes, b_batch_bytes, c_batch_bytes, d_batch_bytes;
    int group_count;
    direct_panels group[3]; /* whole panels, the rest of the wide ones, a narrow one */
} direct_prepared;

/* Prepares `tile_count` tiles of `rows` rows from `first_row` on. */
static void add_part(const tgi_problem *p, const tgi_tile_set *tiles, int64_t first_row,
                     int64_t rows, int64_t tile_count, direct_panels *panels)
{
    const tgi_a_order order = p->a.col == 1 ? TGI_A_ALONG_K : TGI_A_ALONG_ROWS;
    const int64_t bytes = tiles->elem_bytes;
    if (tile_count == 0)
        return;
    panels->part[panels->part_count++] =
        (direct_part){.function = tiles->functions[rows - 1][order],
                      .tile = {.k = p->k,
                               .tile_count = tile_count,
                               .a_step = rows * p->a.row,
                               .a_stride = order == TGI_A_ALONG_K ? p->a.row : p->a.col,
                               .b_row = p->b.row,
                               .c_row = p->c.row,
                               .d_row = p->d.row,
                               .cols = (int)(panels->panel_bytes / bytes),
                               .is_plain = p->epilogue.alpha == 1.0 && p->epilogue.beta == 0.0},
                      .a_offset = first_row * p->a.row * bytes,
                      .c_offset = first_row * p->c.row * bytes,
                      .d_offset = first_row * p->d.row * bytes};
}

/* Prepares `count` panels of `cols` columns. */
static void add_panels(const tgi_problem *p, const tgi_tile_set *tiles, int64_t count, int64_t cols,
                       direct_prepared *prepared)
{
    if (count == 0 || cols == 0)
        return;
    const tgi_tile_cut cut = tgi_cpu_cut_rows(p->m, tiles->rows);
    direct_panels *panels = &prepared->group[prepared->group_count++];
    panels->count = count;
    panels->panel_bytes = cols * tiles->elem_bytes;
    add_part(p, tiles, 0, cut.rows + 1, cut.larger_count, panels);
    add_part(p, tiles, cut.larger_count * (cut.rows + 1), cut.rows, cut.count - cut.larger_count,
             panels);
}

/* Returns the columns of the last panel if narrow tiles compute it, else 0. */
static int64_t count_narrow_cols(const tgi_isa_kernels *kernels, int64_t n)
{
    const int64_t rest = n % kernels->direct_tiles->vector_elems;
    return kernels->narrow_tiles && rest <= kernels->narrow_tiles->cols ? rest : 0;
}

static void prepare(const tgi_problem *p, const tgi_proposal *proposal, void *block)
{
    const tgi_isa_kernels *kernels = tgi_cpu_select(proposal->kernel);
    const tgi_tile_set *tiles = kernels->direct_tiles;
    const int64_t narrow_cols = count_narrow_cols(kernels, p->n), wide_cols = p->n - narrow_cols;
    const int64_t panel_cols = tgi_cpu_panel_cols(wide_cols, tiles);
    direct_prepared *prepared = block;
    prepared->batch_count = p->batch_count;
    prepared->a_batch_bytes = p->a.batch * tiles->elem_bytes;
    prepared->b_batch_bytes = p->b.batch * tiles->elem_bytes;
    prepared->c_batch_bytes = p->c.batch * tiles->elem_bytes;
    prepared->d_batch_bytes = p->d.batch * tiles->elem_bytes;
    add_panels(p, tiles, wide_cols / panel_cols, panel_cols, prepared);
    add_panels(p, tiles, 1, wide_cols % panel_cols, prepared);
    add_panels(p, kernels->narrow_tiles, 1, narrow_cols, prepared);
}

/* Computes panels side by side; the pointers are those of the first one's first row. */
static inline void run_panels(const direct_panels *panels, const char *a, const char *b,
                              const char *c, char *d, double alpha, double beta)
{
    for (int64_t left = panels->count;;) {
        for (const direct_part *part = panels->part, *end = part + panels->part_count; part < end;
             part++) {
            part->function(&part->tile, a + part->a_offset, b, c + part->c_offset,
                           d + part->d_offset, alpha, beta);
        }
        if (--left == 0)
            return;
        b += panels->panel_bytes;
        c += panels->panel_bytes;
        d += panels->panel_bytes;
    }
}

/* The time outside the tiles counts here, so nothing is computed that the plan can tell. */
static tg_status launch(const tgi_call *call)
{
    const direct_prepared *prepared = call->prepared;
    const double alpha = call->problem->epilogue.alpha, beta = call->problem->epilogue.beta;
    /* If beta is 0, C is never read, and D stands for it. */
    const char *a = call->a, *b = call->b, *c = call->c ? call->c : call->d;
    char *d = call->d;
    for (int64_t left = prepared->batch_count;;) {
        int64_t offset = 0;
        for (const direct_panels *panels = prepared->group, *end = panels + prepared->group_count;
             panels < end; panels++) {
            run_panels(panels, a, b + offset, c + offset, d + offset, alpha, beta);
            offset += panels->count * panels->panel_bytes;
        }
        if (--left == 0)
            return TG_STATUS_OK;
        a += prepared->a_batch_bytes;
        b += prepared->b_batch_bytes;
        c += prepared->c_batch_bytes;
        d += prepared->d_batch_bytes;
    }
}

const tgi_cpu_family tgi_cpu_direct = {.propose = propose,
                                       .launch = launch,
                                       .prepared_bytes = sizeof(direct_prepared),
                                       .prepare = prepare};
