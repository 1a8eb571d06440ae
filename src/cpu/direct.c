/*
 * Family `direct` runs register tiles on the operands in place, in one thread. It serves matrices
 * so small that packing or waking threads costs more than it saves.
 */
#include "cpu/micropanels.h"
#include "model/cpu_model.h"

/* A B along k is transposed, micropanel by micropanel, if one has at most COPIED_BYTES_MAX, so that
 * it stays in L1. The copy lies in the workspace, or on the stack if it has at most
 * STACK_BYTES_MAX: to take workspace costs as much as a tiny product. */
#define COPIED_BYTES_MAX 16384
#define STACK_BYTES_MAX 4096

/* A D of at least so many bytes is prefetched, because its lines may be far. A smaller one comes as
 * fast without. */
#define FAR_BYTES 2048

/* Returns 1 if the problem is transposed: a D of one row whose B lies along k becomes a column, so
 * that the tiles read B as they read A, and a D along its columns is written along its rows. */
static int must_transpose(const tgi_problem *p)
{
    return p->m == 1 ? p->b.col != 1 && p->b.row == 1 : p->d.col != 1 && p->d.row == 1;
}

/* Returns the problem as the tiles compute it. */
static tgi_problem orient(const tgi_problem *p)
{
    tgi_problem oriented = *p;
    if (must_transpose(p))
        tgi_problem_transpose(&oriented);
    return oriented;
}

/* Returns the bytes of the largest micropanel of B if tiles read transposed copies, or -1. */
static int64_t count_copied_bytes(const tgi_problem *p, const tgi_tile_set *tiles)
{
    const int64_t bytes = p->k * (p->n < tiles->cols ? p->n : tiles->cols) * tiles->elem_bytes;
    const int is_along_k = p->b.col != 1 && p->b.row == 1;
    return is_along_k && p->k <= TGI_CHUNK_K && bytes <= COPIED_BYTES_MAX ? bytes : -1;
}

/* Returns the micropanels of `cols` columns: whole ones, and narrow ones for the rest. */
static double count_micropanels(const tgi_isa_kernels *kernels, int64_t cols)
{
    const tgi_tile_set *tiles = kernels->direct_tiles, *whole = kernels->narrow_tiles[1];
    const int is_split =
        whole && cols > whole->cols && cols <= whole->cols + kernels->narrow_tiles[0]->cols;
    return is_split ? 2.0 : (double)tgi_cpu_tile_count(cols, tiles->cols);
}

/* Returns the cycles that are lost because micropanels go down columns. A B or D of few rows loses
 * nothing, since each row is a stream that the hardware prefetcher follows. */
static double count_column_cycles(const tgi_machine *machine, const tgi_problem *p,
                                  double micropanel_count, double copied_elems)
{
    const double bytes = (double)tgi_type_bytes(p->type);
    const double b_elems =
        copied_elems > 0.0 || p->k <= TGI_SKINNY_ROWS ? 0.0 : (double)(p->k * p->n);
    const double d_elems = p->m <= TGI_SKINNY_ROWS ? 0.0 : (double)(p->m * p->n);
    return tgi_model_cpu_column_cycles(machine, micropanel_count, (double)(p->m * p->k) * bytes,
                                       (b_elems + d_elems) * bytes);
}

/* Returns the activation that tiles apply. Others are applied to D of a whole entry. */
static tg_activation find_tile_activation(const tgi_epilogue *epilogue)
{
    return epilogue->activation == TG_ACTIVATION_RELU ? TG_ACTIVATION_RELU : TG_ACTIVATION_NONE;
}

/* Returns the bytes of D that an activation outside the tiles reads and writes once more. An entry
 * of up to half of L2 is still there. */
static double count_activated_bytes(const tgi_machine *machine, const tgi_problem *p)
{
    const double entry_bytes = (double)(p->m * p->n * tgi_type_bytes(p->d_type));
    const int is_in_tiles = p->epilogue.activation == find_tile_activation(&p->epilogue);
    if (is_in_tiles || entry_bytes <= tgi_model_cpu_l2_bytes(machine) / 2.0)
        return 0.0;
    return 2.0 * entry_bytes * (double)p->batch_count;
}

static void propose(const tgi_machine *machine, const tgi_problem *given, tgi_proposal *proposal)
{
    const tgi_problem oriented = orient(given), *p = &oriented;
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_isa_kernels *kernels = tgi_cpu_select(kernel);
    if ((p->b.col != 1 && count_copied_bytes(p, kernels->direct_tiles) < 0) ||
        (p->a.col != 1 && p->a.row != 1) || !tgi_cpu_is_d_plain(p) || p->c.col != 1) {
        tgi_refuse(
            &proposal->refusal, TG_REFUSAL_LAYOUT,
            "works in place: the rows of C and D must be contiguous (or the columns of both), "
            "A's rows or columns, and B's rows, or its columns if a micropanel of them has at most "
            "%d bytes",
            COPIED_BYTES_MAX);
        return;
    }
    if (!tgi_cpu_do_tiles_know(&p->epilogue)) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_EPILOGUE,
                   "writes D from registers: alpha, beta, a bias and an activation, but no scale");
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
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    const tgi_tile_set *tiles = kernels->direct_tiles;
    const int64_t copied_bytes = count_copied_bytes(p, tiles);
    if (copied_bytes > STACK_BYTES_MAX)
        proposal->workspace_bytes = tgi_round_up(copied_bytes, TGI_ALIGN_BYTES);
    double row_tiles = (double)tgi_cpu_tile_count(p->m, tgi_cpu_find_tile_rows(p, tiles));
    double col_tiles = (double)tgi_cpu_tile_count(p->n, tiles->cols);
    double cols = (double)tgi_cpu_tile_count(p->n, tiles->vector_elems) * tiles->vector_elems;
    double batch_count = (double)p->batch_count;
    double partial_rows =
        !kernels->narrow_tiles[0] && p->n % tiles->vector_elems ? (double)p->m : 0.0;
    double copied_elems = copied_bytes > 0 ? (double)(p->k * p->n) : 0.0;
    /* Each row tile reads B again. Reads from L1 are free, reads from L2 cost little, and reads
     * from memory suffer from long strides. */
    double b_bytes = (double)p->k * (double)p->n * (double)tiles->elem_bytes;
    double reread_cycles = b_bytes > tgi_model_cpu_l2_bytes(machine) / 2.0 ? f->direct_far_b_cycles
                           : b_bytes > (double)machine->l1_bytes           ? f->direct_b_cycles
                                                                           : 0.0;
    double reread_bytes = (row_tiles - 1.0) * b_bytes * batch_count;
    tgi_cpu_work work = {
        .macs = (double)p->m * cols * (double)p->k * batch_count,
        .macs_per_cycle = tgi_cpu_macs_per_cycle(kernel),
        .memory_bytes = tgi_model_operand_bytes(p) + count_activated_bytes(machine, p),
        /* Accesses of B and D go down narrow columns. In a batch the next entry is prefetched. */
        .memory_share = p->batch_count > 1 ? f->direct_batch_share : f->direct_memory_share,
        .fixed_cycles =
            (f->direct_tile_cycles * row_tiles * col_tiles +
             f->direct_partial_cycles * partial_rows + f->direct_copied_cycles * copied_elems +
             tgi_cpu_count_strided_cycles(p) +
             count_column_cycles(machine, p, count_micropanels(kernels, p->n), copied_elems)) *
                batch_count +
            reread_cycles * reread_bytes,
        .cold_cycles = (tgi_cpu_count_far_cycles(p) +
                        tgi_model_cpu_tall_cycles(count_micropanels(kernels, p->n), p)) *
                       batch_count,
        .thread_count = 1};
    proposal->predicted_s = proposal->serial_s = tgi_model_cpu_seconds(machine, &work);
}

/* Calls of a micro-kernel, one below the other, for tiles of equal height. */
typedef struct direct_height {
    tgi_tile_fn *function;
    tgi_tile tile;
    int64_t call_count, a_bytes, c_bytes, d_bytes, bias_bytes; /* bytes from call to call */
} direct_height;

/* Micropanels of equal width, side by side. */
typedef struct direct_micropanels {
    int64_t count, micropanel_bytes; /* bytes of a row of B or D */
    int64_t bias_bytes;              /* bytes of the bias from micropanel to micropanel */
    int height_count;
    direct_height height[2]; /* tiles of one row more than the others come first */
} direct_micropanels;

typedef struct direct_prepared {
    int is_transposed; /* 1: A is the call's B */
    int is_one_call;   /* 1: one call of a micro-kernel does it all */
    int is_first_prefetched;
    int64_t batch_count, a_batch_bytes, b_batch_bytes, c_batch_bytes, d_batch_bytes;
    tgi_copy_fn *copy_b; /* NULL: B is read in place */
    tgi_copy copy;       /* the copy of a micropanel of B, without pointers and columns */
    tgi_prefetch_block a_first, b_first; /* before the first tile, if is_first_prefetched is set */
    /* Activates D of an entry after its tiles, as one row if its rows lie side by side, or NULL. */
    tgi_activate_fn *activate;
    int64_t activated_rows, activated_cols, d_row;
    int group_count;
    direct_micropanels group[3]; /* whole micropanels, the rest of the wide ones, a narrow one */
} direct_prepared;

/* Returns the elements from a tile's D to what it prefetches: a later tile of a long micropanel, or
 * the next micropanel. Tiles of a batch or beside a C prefetch their own D, narrow tiles nothing
 * but later tiles, and nothing if wider tiles have had these lines. */
static int64_t find_d_ahead(const tgi_problem *p, const tgi_tile_set *tiles, int64_t rows,
                            int64_t tile_count, int64_t cols)
{
    const int64_t tiles_ahead = tgi_divide_up(TGI_AHEAD_BYTES, rows * cols * tiles->elem_bytes);
    const int is_narrow = tgi_cpu_is_narrow(tiles);
    if (p->batch_count > 1 || p->epilogue.beta != 0.0 || (is_narrow && p->n > 2 * tiles->cols))
        return 0;
    if (tile_count > 2 * tiles_ahead && p->k <= TGI_SHORT_K)
        return tiles_ahead * rows * p->d.row;
    return p->n > tiles->cols && !is_narrow ? cols : 0;
}

/* Prepares `tile_count` tiles of `rows` rows. A call computes all of them, or one narrow tile. */
static void add_height(const tgi_problem *p, const tgi_tile_set *tiles, int64_t rows,
                       int64_t tile_count, int64_t b_row, direct_micropanels *micropanels)
{
    const tgi_epilogue *e = &p->epilogue;
    const tgi_a_order order = p->a.col == 1 ? TGI_A_ALONG_K : TGI_A_ALONG_ROWS;
    const int64_t bytes = tiles->elem_bytes;
    const int is_narrow = tgi_cpu_is_narrow(tiles);
    const int64_t call_tiles = is_narrow ? 1 : tile_count;
    const int64_t cols = micropanels->micropanel_bytes / bytes;
    const int64_t d_ahead = find_d_ahead(p, tiles, rows, tile_count, cols);
    const int64_t own_ahead = tgi_cpu_count_own_ahead(p->k, tgi_divide_up(p->n, tiles->cols));
    if (tile_count == 0)
        return;
    direct_height *height = &micropanels->height[micropanels->height_count++];
    *height = (direct_height){
        .function = tiles->functions[rows - 1][order],
        .tile = {.k = p->k,
                 .tile_count = call_tiles,
                 .a_tile_stride = rows * p->a.row,
                 .c_tile_stride = rows * p->c.row,
                 .d_tile_stride = rows * p->d.row,
                 .bias_tile_stride = e->bias == TG_BIAS_ROW ? rows : 0,
                 .a_stride = order == TGI_A_ALONG_K ? p->a.row : p->a.col,
                 .a_ahead = p->m > rows ? tgi_cpu_find_ahead(p, tiles, order, rows, rows * p->a.row)
                            : p->batch_count > 1 ? p->a.batch
                                                 : own_ahead * p->a.col,
                 .b_ahead = b_row != p->b.row           ? 0
                            : p->batch_count > 1        ? p->b.batch
                            : own_ahead && p->n == cols ? own_ahead * p->b.row
                                                        : cols,
                 .d_ahead = d_ahead,
                 .b_row = b_row,
                 .c_row = p->c.row,
                 .d_row = p->d.row,
                 .d_pace = tgi_cpu_find_d_pace(p->k, rows),
                 .cols = (int)cols,
                 .is_d_far =
                     is_narrow ? d_ahead != 0 : p->batch_count * p->m * p->n * bytes >= FAR_BYTES},
        .call_count = tile_count / call_tiles,
        .a_bytes = call_tiles * rows * p->a.row * bytes,
        .c_bytes = call_tiles * rows * p->c.row * bytes,
        .d_bytes = call_tiles * rows * p->d.row * bytes,
        .bias_bytes = e->bias == TG_BIAS_ROW ? call_tiles * rows * bytes : 0};
    tgi_cpu_set_epilogue(&height->tile, e->alpha, e->beta, e->bias, find_tile_activation(e));
}

/* Prepares `count` micropanels of `cols` columns. */
static void add_micropanels(const tgi_problem *p, const tgi_tile_set *tiles, int64_t count,
                            int64_t cols, direct_prepared *prepared)
{
    if (count == 0 || cols == 0)
        return;
    const tgi_row_tiling tiling = tgi_cpu_tile_rows(p->m, tgi_cpu_find_tile_rows(p, tiles));
    direct_micropanels *micropanels = &prepared->group[prepared->group_count++];
    micropanels->count = count;
    micropanels->micropanel_bytes = cols * tiles->elem_bytes;
    micropanels->bias_bytes = p->epilogue.bias == TG_BIAS_COL ? micropanels->micropanel_bytes : 0;
    const int64_t b_row = prepared->copy_b ? cols : p->b.row;
    add_height(p, tiles, tiling.larger_rows, tiling.larger_count, b_row, micropanels);
    add_height(p, tiles, tiling.rows, tiling.count - tiling.larger_count, b_row, micropanels);
}

static void prepare(const tgi_problem *given, const tgi_proposal *proposal, void *block)
{
    const tgi_problem oriented = orient(given), *p = &oriented;
    const tgi_isa_kernels *kernels = tgi_cpu_select(proposal->kernel);
    const tgi_tile_set *tiles = kernels->direct_tiles;
    const tgi_tile_set *half = kernels->narrow_tiles[0], *whole = kernels->narrow_tiles[1];
    const int64_t micropanel_cols = tgi_cpu_micropanel_cols(p->n, tiles);
    int64_t rest = p->n % micropanel_cols;
    direct_prepared *prepared = block;
    prepared->is_transposed = must_transpose(given);
    prepared->batch_count = p->batch_count;
    prepared->a_batch_bytes = p->a.batch * tiles->elem_bytes;
    prepared->b_batch_bytes = p->b.batch * tiles->elem_bytes;
    prepared->c_batch_bytes = p->c.batch * tiles->elem_bytes;
    prepared->d_batch_bytes = p->d.batch * tiles->elem_bytes;
    if (p->b.col != 1) {
        prepared->copy_b = kernels->pack_k_outer;
        prepared->copy =
            (tgi_copy){.outer = p->k, .outer_stride = p->b.row, .inner_stride = p->b.col};
    }
    const int64_t first_k = tgi_cpu_count_first_k(p, tiles);
    prepared->is_first_prefetched = first_k > 0;
    prepared->a_first = tgi_cpu_find_block(&p->a, p->m, first_k, tiles->elem_bytes);
    prepared->b_first = tgi_cpu_find_block(&p->b, first_k, p->n, tiles->elem_bytes);
    /* Narrow tiles compute a vector and half a vector of what is left beside whole micropanels. */
    if (whole && p->n <= whole->cols)
        rest = p->n;
    add_micropanels(p, tiles, (p->n - rest) / micropanel_cols, micropanel_cols, prepared);
    if (whole && rest <= whole->cols + half->cols) {
        const int64_t cols = rest <= half->cols ? 0 : rest < whole->cols ? rest : whole->cols;
        add_micropanels(p, whole, 1, cols, prepared);
        add_micropanels(p, half, 1, rest - cols, prepared);
    } else {
        add_micropanels(p, tiles, 1, rest, prepared);
    }
    if (p->epilogue.activation != find_tile_activation(&p->epilogue)) {
        const int is_one_row = p->d.row == p->n;
        prepared->activate = kernels->activate;
        prepared->activated_rows = is_one_row ? 1 : p->m;
        prepared->activated_cols = is_one_row ? p->m * p->n : p->n;
        prepared->d_row = p->d.row;
    }
    prepared->is_one_call = !prepared->copy_b && !prepared->activate && p->batch_count == 1 &&
                            prepared->group_count == 1 && prepared->group[0].count == 1 &&
                            prepared->group[0].height_count == 1 &&
                            prepared->group[0].height[0].call_count == 1;
}

/* Computes one micropanel; the pointers are those of its first row. */
static inline void run_micropanel(const direct_micropanels *micropanels, const char *a,
                                  const char *b, const char *c, char *d, const char *bias,
                                  double alpha, double beta)
{
    for (const direct_height *height = micropanels->height,
                             *end = height + micropanels->height_count;
         height < end; height++) {
        for (int64_t left = height->call_count; left > 0; left--) {
            height->function(&height->tile, a, b, c, d, bias, alpha, beta);
            a += height->a_bytes;
            c += height->c_bytes;
            d += height->d_bytes;
            bias += height->bias_bytes;
        }
    }
}

/* Computes one batch entry. Each micropanel of B is transposed to `copied` before tiles read it, if
 * that is not NULL. */
static inline __attribute__((always_inline)) void
run_entry(const direct_prepared *prepared, const char *a, const char *b, const char *c, char *d,
          const char *bias, double alpha, double beta, char *copied)
{
    tgi_copy copy = prepared->copy;
    int64_t offset = 0;
    copy.target = copied;
    for (int i = 0; i < prepared->group_count; i++) {
        const direct_micropanels *micropanels = &prepared->group[i];
        copy.inner = copy.target_stride = micropanels->height[0].tile.b_row;
        for (int64_t left = micropanels->count; left > 0; left--) {
            copy.source = b + offset * copy.inner_stride;
            if (copied)
                prepared->copy_b(&copy);
            run_micropanel(micropanels, a, copied ? copied : b + offset, c + offset, d + offset,
                           bias, alpha, beta);
            offset += micropanels->micropanel_bytes;
            bias += micropanels->bias_bytes;
        }
    }
}

static __attribute__((noinline)) void run_copied_entry(const direct_prepared *prepared,
                                                       const char *a, const char *b, const char *c,
                                                       char *d, const char *bias, double alpha,
                                                       double beta, void *workspace)
{
    _Alignas(TGI_ALIGN_BYTES) char local[STACK_BYTES_MAX];
    run_entry(prepared, a, b, c, d, bias, alpha, beta, workspace ? workspace : local);
}

/* The time outside the tiles counts here, so nothing is computed that the plan can tell. */
static tg_status launch(const tgi_call *call)
{
    const direct_prepared *prepared = call->prepared;
    const tgi_problem *p = call->problem;
    const double alpha = p->epilogue.alpha, beta = p->epilogue.beta;
    /* D stands for a C or a bias that is missing, and is not read as such. */
    const char *a = prepared->is_transposed ? call->b : call->a;
    const char *b = prepared->is_transposed ? call->a : call->b;
    const char *c = call->c ? call->c : call->d;
    const char *bias = p->epilogue.bias != TG_BIAS_NONE ? call->bias : call->d;
    char *d = call->d;
    if (prepared->is_first_prefetched) {
        tgi_cpu_prefetch_block(b, &prepared->b_first);
        tgi_cpu_prefetch_block(a, &prepared->a_first);
    }
    if (prepared->is_one_call) {
        const direct_height *height = prepared->group[0].height;
        height->function(&height->tile, a, b, c, d, bias, alpha, beta);
        return TG_STATUS_OK;
    }
    for (int64_t left = prepared->batch_count;;) {
        if (prepared->copy_b)
            run_copied_entry(prepared, a, b, c, d, bias, alpha, beta, call->workspace);
        else
            run_entry(prepared, a, b, c, d, bias, alpha, beta, NULL);
        if (prepared->activate)
            prepared->activate(d, prepared->activated_rows, prepared->activated_cols,
                               prepared->d_row, p->epilogue.activation, p->d_type);
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
