#include "cpu/blocking.h"

#include <stdlib.h>

#include "cpu/packing.h"

/* The packed blocks of all threads take at most this. Together with TGI_CHUNK_SUMS_BYTES the
 * workspace stays below 32 MB. */
#define PACKED_BYTES ((int64_t)24 << 20)

/* This bounds the smallest blocks of one thread: a micropanel of B, a row tile of A, running
 * sums. */
#define THREAD_BYTES ((int64_t)320 << 10)

/* Tiles of AMX read an A in place for at most so many micropanels, since each loads all of its rows
 * anew, which a packed A has in order. Other tiles do so for two. */
#define OPEN_REUSE_MAX 4

/* A strip of B takes one part of L2 in so many, which leaves room for A or for the next strip. */
#define STRIPS_OF_L2 4

/* Rows of a B in place that lie so far apart are on pages of their own, which the processor does
 * not prefetch. */
#define FAR_ROW_BYTES (16 << 10)

/* Tiles that round D finish an element behind an epilogue in about half of the cycles that others
 * take, whose sums go through memory outside the tile. */
#define ROUNDING_SHARE 0.5

/* A tile takes so much of a tile's cycles if one call forms all rows. */
#define TALL_TILE_SHARE 0.6

/* One call forms all rows of several chunks of k if each of several threads has so many rows. */
#define LONG_ROWS_MIN 128

/* Registers of AMX take so many cycles to configure and to release, and as long again where D is
 * one register wide, beside which pairs have tiles of their own. */
#define OPEN_CYCLES 344.0
#define NARROW_COLS 16

/* Pairs of BF16 whose tiles have several vectors take so much longer beside AMX. From so many rows
 * on, a row of more than two vectors takes so many cycles more if operands come from memory. */
#define WIDE_PAIRS_RATIO 1.2
#define PAIRS_ROWS_MIN 96
#define PAIRS_ROW_CYCLES 10.0

/* Beside few row tiles an element of FP32 of a B along k takes so many cycles more than
 * packed_copy_cycles. */
#define TRANSPOSED_CYCLES 0.2
#define FEW_ROW_TILES 8

/* An input of a B along k that is widened alone, as k or the columns are too few for blocks of the
 * copy, takes so many cycles more. */
#define SINGLE_CYCLES 1.2

/* A core reads at most so many bytes a cycle from L2. */
#define READ_BYTES_PER_CYCLE 64.0

static int64_t smaller(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t larger(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

int tgi_cpu_count_threads(const tgi_machine *machine, double serial_s)
{
    int64_t most = smaller(machine->thread_count, PACKED_BYTES / THREAD_BYTES);
    return tgi_model_cpu_threads(serial_s, (int)most);
}

/* Returns 1 if A must be packed: the tiles cannot read it in place, its rows evict each other from
 * the L1 cache, or each value of k touches another page. */
static int must_pack_a(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_set *tiles)
{
    int64_t bytes = tgi_type_bytes(p->type);
    tgi_left left;
    if (!tgi_cpu_read_a_in_place(p, tiles, &left))
        return 1;
    int64_t reuse_count = tgi_divide_up(p->n, tiles->cols);
    if (reuse_count <= (tiles->open ? OPEN_REUSE_MAX : 2))
        return 0;
    if (tiles->open)
        return 1;
    if (p->a.col != 1) /* up to so many values of k a copy takes longer */
        return p->k > TGI_NEAR_STEPS;
    /* A stride near a multiple of 4 KiB maps all rows of a tile to one set, which has 8 ways. */
    int64_t off_page = (p->a.row < 0 ? -p->a.row : p->a.row) * bytes % 4096;
    return machine->l1_bytes <= 32 << 10 && (off_page < 64 || off_page > 4096 - 64);
}

/* Returns 1 if tiles of all columns write D themselves. */
static int is_d_direct(const tgi_problem *p, const tgi_tile_set *tiles)
{
    return tgi_cpu_do_tiles_round(p, tiles) ||
           (tgi_cpu_is_d_plain(p) && tgi_cpu_do_tiles_know(&p->epilogue) &&
            (p->epilogue.beta == 0.0 || p->c.col == 1));
}

/* Returns 1 if one call forms all rows of a task: A lies along k, D has at most one vector of
 * columns and k one chunk or, on AMX, B stays in L2. With several chunks each thread has many rows,
 * since threads that share out chunks would pack less of B. */
static int is_tall(const tgi_machine *machine, const tgi_problem *p, const tgi_isa_kernels *kernels,
                   int thread_count)
{
    const tgi_tile_set *tiles = kernels->tiles;
    const int64_t b_bytes =
        p->k * tgi_round_up(p->n, tiles->vector_elems) * tgi_type_bytes(p->type);
    const int is_near = tiles->open && b_bytes <= machine->l2_bytes / 2;
    if (!kernels->tall || p->a.col != 1 || !is_d_direct(p, tiles))
        return 0;
    if (p->k <= tgi_cpu_find_chunk(p, tiles))
        return p->n <= tiles->vector_elems || is_near;
    return is_near && b_bytes <= PACKED_BYTES / thread_count / 2 &&
           (thread_count == 1 || p->m >= LONG_ROWS_MIN * thread_count);
}

static int must_pack_b(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_set *tiles)
{
    int64_t bytes = tgi_type_bytes(p->type);
    if (tiles->elem_bytes != bytes || p->b.col != 1)
        return 1;
    int64_t reuse_count = tgi_divide_up(p->m, tiles->rows);
    int64_t stride_bytes = p->b.row < 0 ? -p->b.row * bytes : p->b.row * bytes;
    int is_read_often = reuse_count >= 8;
    /* A vector of a row that starts inside a line touches two lines. */
    int is_cut = is_read_often && stride_bytes % TGI_ALIGN_BYTES != 0;
    int is_side_by_side = stride_bytes <= 2 * tiles->cols * bytes;
    int64_t near_bytes = is_read_often ? machine->l1_bytes : machine->l2_bytes / 4;
    int is_near = p->k * p->n * bytes <= near_bytes;
    return reuse_count > 2 && (is_cut || !(is_side_by_side || is_near));
}

/* Returns the values of k of the longest of k_splits portions, which are whole chunks. */
static int64_t find_longest_k(const tgi_problem *p, const tgi_packed_decision *decision)
{
    const int64_t chunks = tgi_divide_up(p->k, decision->kc), splits = decision->k_splits;
    int64_t longest = 0;
    for (int64_t split = 0; split < splits; split++) {
        const int64_t first = tgi_cpu_find_portion(chunks, splits, split, 1);
        const int64_t last = tgi_cpu_find_portion(chunks, splits, split + 1, 1);
        longest = larger(longest, smaller(last * decision->kc, p->k) - first * decision->kc);
    }
    return longest;
}

/* Returns the cycles of the slowest task if D is split into row_portions x col_portions x
 * k_splits. */
static double count_task_cycles(const tgi_problem *p, const tgi_tile_set *tiles,
                                const tgi_packed_decision *decision, double macs_per_cycle)
{
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    double rows = (double)tgi_divide_up(p->m, decision->row_portions);
    double cols = (double)(tgi_divide_up(tgi_divide_up(p->n, tiles->cols), decision->col_portions) *
                           tiles->cols);
    double k = (double)find_longest_k(p, decision);
    if (cols > (double)p->n) {
        /* A task of at most one micropanel computes whole vectors. */
        cols = (double)(tgi_divide_up(p->n, tiles->vector_elems) * tiles->vector_elems);
    }
    double packed =
        (decision->is_a_packed ? rows * k : 0.0) + (decision->is_b_packed ? cols * k : 0.0);
    /* A tile of few rows or columns loads more for each product. */
    double tile_rows = rows < tiles->rows ? rows : tiles->rows;
    double tile_cols = cols < tiles->cols ? cols : tiles->cols;
    double loads =
        1.0 + f->packed_load_share * (1.0 / tile_rows - 1.0 / tiles->rows +
                                      tiles->vector_elems * (1.0 / tile_cols - 1.0 / tiles->cols));
    const double copied_words =
        packed * (double)tiles->elem_bytes / (double)tiles->k_per_elem / 4.0;
    return rows * cols * k / macs_per_cycle * loads + copied_words * f->packed_copy_cycles;
}

/* Returns the least cycles in which a task's rows of A and columns of B reach its core. A split
 * whose tasks read less is faster than others that multiply as long. */
static double count_read_cycles(const tgi_problem *p, const tgi_packed_decision *decision)
{
    const int64_t lines =
        tgi_divide_up(p->m, decision->row_portions) + tgi_divide_up(p->n, decision->col_portions);
    return (double)(lines * tgi_divide_up(p->k, decision->k_splits) * tgi_type_bytes(p->type)) /
           READ_BYTES_PER_CYCLE;
}

static void split_for_threads(const tgi_problem *p, const tgi_tile_set *tiles, int thread_count,
                              double macs_per_cycle, tgi_packed_decision *decision)
{
    int64_t chunk_count = tgi_divide_up(p->k, decision->kc);
    double sums_bytes = (double)(chunk_count * tiles->accum_bytes) * (double)p->m * (double)p->n;
    int64_t per_batch = tgi_divide_up(thread_count, p->batch_count);
    /* D takes most of the time of a short k. Shares of its rows that are shorter than what tiles
     * prefetch ahead cost more than to pack all of B in each thread. */
    const int64_t share_bytes = p->n * tgi_type_bytes(p->d_type) / per_batch;
    const int must_split_rows = p->k <= TGI_SHORT_K && share_bytes <= TGI_AHEAD_BYTES &&
                                p->m >= 2 * tiles->rows * per_batch;
    double best_cycles = 0.0;
    tgi_packed_decision best = *decision;
    for (int64_t row_portions = 1; row_portions <= per_batch; row_portions++) {
        for (int64_t k_splits = 1; row_portions * k_splits <= per_batch; k_splits++) {
            int can_split_k = p->batch_count == 1 && k_splits <= chunk_count &&
                              sums_bytes <= (double)TGI_CHUNK_SUMS_BYTES;
            if (k_splits > 1 && !can_split_k)
                break;
            decision->row_portions = smaller(row_portions, p->m);
            decision->k_splits = k_splits;
            decision->col_portions =
                smaller(per_batch / (row_portions * k_splits), tgi_divide_up(p->n, tiles->cols));
            if (must_split_rows && decision->col_portions > 1)
                continue;
            double cycles = count_task_cycles(p, tiles, decision, macs_per_cycle);
            if (k_splits > 1)
                cycles *= tgi_figures_find_cpu()->packed_splits_ratio;
            cycles += count_read_cycles(p, decision);
            if (best_cycles == 0.0 || cycles < best_cycles) {
                best_cycles = cycles;
                best = *decision;
            }
        }
    }
    *decision = best;
}

/* With few values of k, writing D takes most of the time. Tiles then follow its rows, so that it is
 * written in long runs, and B's block lies in L2. A longer k hides what D's lines take, and the D
 * of a small batch entry has no long runs. */
static int must_follow_rows(const tgi_machine *machine, const tgi_problem *p,
                            int64_t micropanel_cols)
{
    int64_t entry_bytes = p->m * p->n * tgi_type_bytes(p->d_type);
    return p->k <= TGI_SHORT_K || (p->k <= 512 && p->n > micropanel_cols && machine->l2_bytes > 0 &&
                                   entry_bytes > machine->l2_bytes / 4);
}

/* Returns 1 if B is packed in strips of `strip_bytes` that stay in L2, beside an A of `a_bytes`
 * that is packed once for all strips of a chunk. Few rows do not pay for a block of B that goes to
 * the last-level cache and back. A B along k is packed micropanel by micropanel, so that a larger
 * block gains nothing. Tiles that follow rows have B in L2 anyway; strips spare them packing A
 * again, and the next one is prefetched. */
static int must_pack_in_strips(const tgi_problem *p, const tgi_packed_decision *decision,
                               int64_t a_bytes, int64_t b_bytes, int64_t strip_bytes)
{
    const int is_b_along_k = p->b.row == 1 && p->b.col != 1;
    if (decision->is_along_rows)
        return b_bytes > strip_bytes;
    return is_b_along_k || a_bytes <= (STRIPS_OF_L2 - 1) * strip_bytes;
}

static void choose_blocks(const tgi_machine *machine, const tgi_problem *p,
                          const tgi_tile_set *tiles, int thread_count,
                          tgi_packed_decision *decision)
{
    const int64_t micropanel_cols = decision->micropanel_cols;
    int64_t k_elems = tgi_divide_up(decision->kc, tiles->k_per_elem);
    int64_t k_bytes = k_elems * tiles->elem_bytes;
    int64_t thread_bytes = PACKED_BYTES / thread_count;
    int64_t l2_bytes = machine->l2_bytes ? machine->l2_bytes : 256 << 10;
    /* A packed row of A takes whole lines, and skips one if their number is even. A's lines are a
     * fourth of the thread's bytes, and with the skipped ones three eighths. B has the rest. */
    const int64_t row_bytes = tgi_round_up(k_bytes, TGI_ALIGN_BYTES);
    const int64_t most_rows = thread_bytes / 4 / row_bytes;
    int needs_running = p->k > decision->kc && !tgi_cpu_is_d_plain(p) && !decision->is_transposed;
    const int64_t strip_bytes = l2_bytes / STRIPS_OF_L2;
    int64_t rows = tgi_divide_up(p->m, decision->row_portions);
    int64_t cols = tgi_divide_up(tgi_divide_up(p->n, micropanel_cols), decision->col_portions) *
                   micropanel_cols;
    const int is_long = decision->is_tall && p->k > tgi_cpu_find_chunk(p, tiles);
    /* The sums of a micropanel of D^T stay in L2, beside A and B. */
    const int64_t sums_bytes = micropanel_cols * tiles->accum_bytes;
    const int is_far = decision->is_transposed && rows * sums_bytes > l2_bytes / 2;
    const int is_in_strips =
        !is_long && !is_far && rows <= most_rows &&
        must_pack_in_strips(p, decision, rows * k_bytes, cols * k_bytes, strip_bytes);
    int64_t b_bytes = smaller(decision->is_along_rows && !is_in_strips ? strip_bytes : 16 << 20,
                              thread_bytes * (needs_running ? 3 : 5) / 8);
    int64_t mc =
        smaller(l2_bytes / 4 / (is_far ? larger(k_bytes, sums_bytes) : k_bytes), most_rows);
    mc = larger(mc / tiles->rows, 1) * tiles->rows;
    int64_t nc = larger(b_bytes / k_bytes / micropanel_cols, 1) * micropanel_cols;
    if (needs_running) {
        int64_t most = thread_bytes / 4 / TGI_ROWS_KEPT / tiles->accum_bytes;
        nc = smaller(nc, larger(most / micropanel_cols, 1) * micropanel_cols);
    }
    /* Equal blocks are better than a small last one. */
    decision->mc = is_in_strips || is_long ? rows : tgi_divide_up(rows, tgi_divide_up(rows, mc));
    if (tiles->open && !is_in_strips && !is_long)
        decision->mc = tgi_round_up(decision->mc, tiles->rows);
    decision->nc = tgi_divide_up(tgi_divide_up(cols, tgi_divide_up(cols, nc)), micropanel_cols) *
                   micropanel_cols;
    decision->strip_cols = decision->nc;
    if (is_in_strips && (decision->is_b_packed || decision->is_along_rows)) {
        int64_t strip_cols = larger(strip_bytes / k_bytes / micropanel_cols, 1) * micropanel_cols;
        decision->strip_cols = smaller(decision->nc, strip_cols);
    }
    const int can_prefetch = tiles->k_per_elem == 1 && !tgi_cpu_is_narrow(tiles);
    decision->is_prefetched = is_in_strips && can_prefetch;
    decision->is_b_far = !is_in_strips && can_prefetch && decision->is_b_packed &&
                         !decision->is_along_rows && decision->nc * k_bytes > l2_bytes / 4;
}

/* Returns the cycles that a B in place of `b_bytes` takes more than a packed one, because its
 * micropanels are narrow columns. */
static double count_narrow_b_cycles(const tgi_machine *machine, const tgi_problem *p,
                                    double b_bytes)
{
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    const int is_far = llabs(p->b.row) * tgi_type_bytes(p->type) >= FAR_ROW_BYTES;
    const double far_bytes =
        is_far ? tgi_model_find_excess(b_bytes, tgi_model_cpu_l2_bytes(machine)) : 0.0;
    return f->packed_narrow_b_cycles * b_bytes + f->direct_far_column_cycles * far_bytes;
}

/* Returns the cycles that packing a B along k takes more if it comes from memory. */
static double count_transposed_cycles(const tgi_problem *p, const tgi_tile_set *tiles)
{
    const int is_widened = tgi_type_bytes(p->type) < tiles->elem_bytes / tiles->k_per_elem;
    const int is_single = is_widened && (p->k < tiles->vector_elems || p->n < 4);
    const int is_slow = p->type == TG_TYPE_FP32 && p->m < FEW_ROW_TILES * tiles->rows;
    const double cycles = is_single ? SINGLE_CYCLES : is_slow ? TRANSPOSED_CYCLES : 0.0;
    return p->b.row == 1 && p->b.col != 1 ? cycles * (double)(p->k * p->n * p->batch_count) : 0.0;
}

void tgi_cpu_choose_blocking(const tgi_machine *machine, const tgi_problem *p,
                             const tgi_kernel *kernel, int thread_count,
                             tgi_packed_decision *decision, tgi_cpu_work *work)
{
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    const tgi_isa_kernels *kernels = tgi_cpu_select(kernel);
    const tgi_tile_set *tiles = tgi_cpu_packed_tiles(kernels, p);
    /* On 512-bit units half a vector takes as long as a whole one. */
    double macs_per_cycle =
        tgi_cpu_macs_per_cycle(kernel) * tiles->vector_elems / kernels->tiles->vector_elems;
    /* Processors with AMX multiply vectors of BF16 pairs in one unit. */
    const int is_beside_amx =
        kernel->math == TGI_MATH_dot && !tiles->open && machine->features & TGI_FEATURE_AMX_BF16;
    const double pairs_ratio = is_beside_amx && p->n > tiles->vector_elems ? WIDE_PAIRS_RATIO : 1.0;
    macs_per_cycle /= (is_beside_amx ? 2.0 : 1.0) * pairs_ratio;
    decision->is_tall = is_tall(machine, p, kernels, thread_count);
    decision->kc = decision->is_tall ? p->k : tgi_cpu_find_chunk(p, tiles);
    decision->micropanel_cols = tgi_cpu_micropanel_cols(p->n, tiles);
    decision->is_a_packed = !decision->is_tall && must_pack_a(machine, p, tiles);
    decision->is_b_packed = must_pack_b(machine, p, tiles);
    int64_t d_bytes = p->m * p->n * p->batch_count * tgi_type_bytes(p->d_type);
    decision->is_d_far = d_bytes > machine->l1_bytes / 2;
    decision->is_along_rows =
        !decision->is_transposed && must_follow_rows(machine, p, decision->micropanel_cols);
    split_for_threads(p, tiles, thread_count, macs_per_cycle, decision);
    choose_blocks(machine, p, tiles, thread_count, decision);
    decision->is_streamed = !tgi_cpu_is_narrow(tiles) && p->k <= decision->kc &&
                            p->epilogue.beta == 0.0 && tgi_cpu_is_d_plain(p) &&
                            tgi_epilogue_is_linear(&p->epilogue) && d_bytes > machine->l3_bytes;

    double tasks = (double)(decision->row_portions * decision->col_portions * decision->k_splits) *
                   (double)p->batch_count;
    double task_cycles = count_task_cycles(p, tiles, decision, macs_per_cycle);
    double tile_count = (double)tgi_divide_up(p->m, tiles->rows) *
                        (double)tgi_divide_up(p->n, tiles->cols) *
                        (double)tgi_divide_up(p->k, decision->kc) * (double)p->batch_count;
    work->macs = task_cycles * macs_per_cycle * tasks;
    work->macs_per_cycle = macs_per_cycle;
    /* Tiles that follow rows each begin with another micropanel of B, whose first rows they wait
     * for. Sums in registers of AMX go to memory first. */
    const double tile_cycles = (tiles->open               ? f->packed_open_tile_cycles
                                : decision->is_along_rows ? f->packed_row_tile_cycles
                                                          : f->packed_tile_cycles) *
                               (decision->is_tall ? TALL_TILE_SHARE : 1.0) * pairs_ratio;
    const double open_cycles = p->n <= NARROW_COLS ? 2.0 * OPEN_CYCLES : OPEN_CYCLES;
    const double task_cycles_more = tiles->open ? open_cycles : 0.0;
    work->fixed_cycles =
        (f->packed_task_cycles + task_cycles_more) * tasks + tile_cycles * tile_count;
    /* Micropanels of a B in place are narrow columns, unless its rows are hardly wider. */
    double b_bytes = (double)(p->k * p->n) * (double)tgi_type_bytes(p->type);
    if (!decision->is_b_packed && p->n > 2 * tiles->cols && b_bytes > (double)machine->l1_bytes)
        work->fixed_cycles += count_narrow_b_cycles(machine, p, b_bytes) * (double)p->batch_count;
    work->cold_cycles = count_transposed_cycles(p, tiles) * (double)decision->row_portions;
    if (is_beside_amx && p->n > 2 * tiles->vector_elems && p->m >= PAIRS_ROWS_MIN &&
        !tgi_cpu_has_steps(&p->epilogue))
        work->cold_cycles += PAIRS_ROW_CYCLES * (double)(p->m * p->batch_count);
    if (!decision->is_a_packed) {
        work->fixed_cycles += tgi_cpu_count_strided_cycles(p) * (double)p->batch_count;
        work->cold_cycles += tgi_cpu_count_far_cycles(p) * (double)p->batch_count;
    }
    /* Elements of D are transposed, there and back for each chunk but the first one, or they are
     * finished one by one. */
    const double apart_cycles =
        decision->is_transposed
            ? f->direct_copied_cycles * (double)(2 * tgi_divide_up(p->k, decision->kc) - 1)
        : p->d.col != 1 ? f->apart_cycles
                        : 0.0;
    work->fixed_cycles += apart_cycles * (double)p->m * (double)p->n * (double)p->batch_count;
    const int do_round = tgi_cpu_do_tiles_round(p, tiles);
    if (p->d.col == 1 && !tgi_cpu_is_d_plain(p) && (!do_round || tgi_cpu_has_steps(&p->epilogue)))
        work->fixed_cycles += (do_round ? ROUNDING_SHARE : 1.0) * f->packed_finish_cycles *
                              (double)p->m * (double)p->n * (double)p->batch_count;
    work->memory_bytes = tgi_model_operand_bytes(p);
    work->memory_share = decision->is_b_packed || decision->is_along_rows ? 1.0 : f->packed_b_share;
    work->thread_count = (int)(tasks < thread_count ? tasks : thread_count);
}
