#include "model/wgmma_model.h"

#include <math.h>

/* Fitted to runs of BF16 and FP8 on an H200, calls one behind the other, m from 1 to 8192. */
#define STEP_BYTES 128.0
#define LAUNCH_S 1.6e-6           /* as TGI_GPU_LAUNCH_S, of a kernel that starts early */
#define CLOCK_SHARE 0.82          /* of the top clock, where all multiprocessors use them */
#define ISSUE_SHARE 0.94          /* of the instructions' rate in the middle of a tile */
#define ODD_SHARE 0.945           /* more, of 160 and 192 columns */
#define HALF_SHARE 0.92           /* more, of 128 rows and at most 128 columns, but for FP8, */
#define FP8_SHARE 0.92            /* which has this in tiles of one part, */
#define FP8_WIDE_SHARE 0.98       /* and of two; */
#define FP8_ALONE_SHARE 0.65      /* nobody multiplies while one warpgroup alone adds in FP32 */
#define FILL_BYTES_PER_CYCLE 64.0 /* of the copy engine into one multiprocessor's shared memory, */
#define FILL_SHARED_LESS 4.8      /* less for each doubling, from two, of the blocks at a line, */
#define FILL_LEAST 38.0           /* but no less than this */
#define STRADDLE_SHARE 0.5 /* more, of a line that a block asks for and that lies in two of L2's */
#define OUTSIDE_LINE_S 4.8e-9  /* of it for a line outside the operand, which it fills with 0 */
#define LOOSE_LINE_S 3.7e-9    /* of a line that begins anywhere, with those who move it, */
#define LOOSE_SHARE 0.6        /* and of the products' time, as they share shared memory */
#define LOOSE_LINES 64.0       /* so many together */
#define MEMORY_SHARE 0.95      /* of the bus's rate, where all multiprocessors read, */
#define COPIED_SHARE 0.0115    /* longer for what L2 gives anew (find_copied_ratio), */
#define MEMORY_START_S 2.0e-6  /* and until it is reached */
#define TILE_S 0.09e-6         /* between the sums of a tile and the next one's first products */
#define STORE_BYTES_PER_S 25e9 /* of a block, through shared memory, */
#define STORE_FP32_BYTES_PER_S 40e9 /* of FP32 */
#define PIECE_BYTES_PER_S 100e9     /* of a block's sums into the workspace */
#define LATENCY_S 1.05e-6           /* from the request for a stage to its use, */
#define CLUSTER_LATENCY_S 1.25e-6   /* where two blocks wait for each other, */
#define LOADED_SHARE 0.33           /* how much longer it is where memory is busy, */
#define SHARED_WAIT 1.1  /* how many times as long where all lines have two readers or more, */
#define APART_WAIT 1.75  /* and where those have parts of k in clusters */
#define TURNED_S 0.45e-6 /* more of each tile, where D's rows lie across the tile's, */
#define TURNED_NARROW_PART_S 0.2e-6 /* and of its parts of fewer than 64 columns, but the first */
#define STORED_PART_S 0.35e-6       /* more of each part whose lines threads store, */
#define STORED_NARROW_PART_S 0.3e-6 /* of fewer than 64 columns; */
#define BYTES_PART_S 0.75e-6        /* of each of bytes, */
#define BYTES_NARROW_PART_S 1.2e-6  /* of fewer than 64 columns; */
#define ACROSS_PART_S 4.4e-6        /* of each of bytes that lie across, */
#define ACROSS_NARROW_PART_S 3.1e-6 /* of fewer than 64 columns */
#define SHARE_S 0.65e-6             /* of two blocks with parts of k of a tile: they wait, */
#define SHARE_PART_S 0.35e-6        /* for each more of them, */
#define SHARE_BYTES_PER_S 14.5e9    /* and what each sends to the others */
#define PIECES_S 2.2e-6             /* a second kernel, that adds parts of k, */
#define PIECE_PART_S 0.2e-6         /* one part after another, */
#define PIECES_RATIO 0.36           /* and its rate over that of memory */
#define POWER_SHARE 0.05            /* of products' time, where they and memory share the power: */
#define POWER_FREE 0.33             /* if it is more than this of memory's */
#define CALL_S 5e-6 /* of the processor, with the tensor maps: calls cannot follow faster */

/* FP32 by slices, fitted to 45 runs on an H200 from 64x10240x8192 to 4096 cubed, before those above
 * were set anew. Between the products of a chunk, for each 128 columns, and the next ones: sums are
 * waited for and added. Of two warpgroups one multiplies meanwhile, or some of the time. */
#define CHUNK_BYTES 64.0 /* of a slice's line, in a step */
#define ADD_CYCLES_OF_ONE 700.0
#define ADD_CYCLES_OF_TWO 340.0
#define ADD_CYCLES_OF_PARTS 480.0 /* of two, in two parts of 128 columns */
#define CUT_CYCLES 180.0      /* of cutting FP32 rows in registers, while the other multiplies */
#define SLICED_SHARE_S 1.6e-6 /* as SHARE_S, */
#define SLICED_SHARE_BYTES_PER_S 27e9 /* and as SHARE_BYTES_PER_S */
#define NARROW_SHARE 0.78             /* as ISSUE_SHARE, of 64 columns */
#define RUN_CHUNKS 32.0
#define RUN_BYTES_PER_S 33e9    /* of a block's sums, at the end of each run of k but the last */
#define SLICED_CLOCK_SHARE 0.97 /* as CLOCK_SHARE: less power a product */

/* What one step of k multiplies of a line of a slice, how often, what it copies of a row of A and a
 * column of B, and the cycles in which sums are added. */
typedef struct step_work {
    double slice_bytes, product_count, row_bytes, col_bytes, add_cycles;
} step_work;

static step_work find_step_work(const tgi_kernel *kernel, const tgi_problem *p)
{
    if (!tgi_kernels_has_slices(kernel))
        return (step_work){STEP_BYTES, 1.0, STEP_BYTES, STEP_BYTES, 0.0};
    const double part_cycles = kernel->thread_count > 256 ? ADD_CYCLES_OF_TWO : ADD_CYCLES_OF_ONE;
    const double add_cycles = kernel->tile_cols > 192
                                  ? ADD_CYCLES_OF_PARTS
                                  : ceil(kernel->tile_cols / 128.0) * part_cycles;
    const tgi_precision_row *precision = tgi_precision_sliced(p->precision);
    const double line_bytes = precision->slice_count * CHUNK_BYTES;
    const double product_count = precision->product_count;
    if (kernel->family == TGI_FAMILY_cuda_bf16r) /* whose rows are held in registers */
        return (step_work){CHUNK_BYTES, product_count, STEP_BYTES, line_bytes,
                           add_cycles + CUT_CYCLES};
    return (step_work){CHUNK_BYTES, product_count, line_bytes, line_bytes, add_cycles};
}

/* Cycles of the matrix instructions of one step of a tile: 8 columns of 64 rows and 32 bytes of k
 * take 4. */
static double count_step_cycles(const tgi_kernel *kernel, const step_work *step)
{
    return kernel->tile_rows / 64.0 * kernel->tile_cols / 8.0 * (step->slice_bytes / 32.0) * 4.0 *
           step->product_count;
}

/* Of one operand, as copied for a step of a block's tile. */
typedef struct tile_lines {
    double inside, outside;
} tile_lines;

/* `count` lines, of which each of a cluster's `tile_count` tiles takes lines_per_tile: where they
 * would take more than there are, the last box reaches beyond. */
static tile_lines count_lines(double count, double lines_per_tile, double tile_count,
                              double box_lines)
{
    const double all = lines_per_tile * tile_count, inside = fmin(all, count);
    const double copied = fmin(all, ceil(inside / box_lines) * box_lines);
    return (tile_lines){inside / tile_count, (copied - inside) / tile_count};
}

static tile_lines count_a_lines(const tgi_kernel *kernel, const tgi_problem *p,
                                const tgi_wgmma_work *work)
{
    return count_lines((double)p->m, kernel->tile_rows, work->cluster_rows,
                       work->a_is_loose ? LOOSE_LINES : work->a_box_lines);
}

static tile_lines count_b_lines(const tgi_problem *p, const tgi_wgmma_work *work)
{
    return count_lines((double)p->n, work->b_tile_lines, 1.0, work->b_box_lines);
}

/* Of ISSUE_SHARE, for the tile's size. FP8: a tile of more than 192 columns is in two parts, of
 * which one is added in FP32 while the other warpgroup multiplies, if there are two. */
static double find_width_share(const tgi_kernel *kernel)
{
    const double odd_share = kernel->tile_cols > 128 && kernel->tile_cols <= 192 ? ODD_SHARE : 1.0;
    const int is_fp8 = tgi_type_is_fp8(kernel->type);
    if (is_fp8 && kernel->tile_rows == 64)
        return FP8_ALONE_SHARE;
    if (is_fp8)
        return odd_share * (kernel->tile_cols <= 192 ? FP8_SHARE : FP8_WIDE_SHARE);
    return kernel->tile_rows == 128 && kernel->tile_cols <= 128 ? HALF_SHARE : odd_share;
}

/* Bytes a cycle, of lines that so many blocks copy at once. */
static double find_fill_rate(double sharer_count)
{
    const double less = FILL_SHARED_LESS * log2(fmax(1.0, sharer_count / 2.0));
    return fmax(FILL_LEAST, FILL_BYTES_PER_CYCLE - less);
}

/* Clusters of tiles of a batch entry, and the clusters that copy a line of A, and of B. */
typedef struct tile_grid {
    double rows, cols;
    double a_readers, b_readers;
} tile_grid;

static tile_grid count_grid(const tgi_kernel *kernel, const tgi_problem *p,
                            const tgi_wgmma_work *work)
{
    const double rows = ceil((double)p->m / kernel->tile_rows / work->cluster_rows);
    const double cols = ceil((double)p->n / kernel->tile_cols);
    const double entries = (double)p->batch_count;
    return (tile_grid){rows, cols, cols * (p->a.batch == 0 ? entries : 1.0),
                       rows * (p->b.batch == 0 ? entries : 1.0)};
}

/* Clusters that copy the same lines of A, and of B, at once: of those that run so many are side by
 * side, since they are numbered down groups of rows. */
typedef struct line_sharers {
    double of_a, of_b;
} line_sharers;

static line_sharers count_sharers(const tgi_problem *p, const tgi_wgmma_work *work,
                                  const tile_grid *grid)
{
    const double running = fmin(work->slot_count, work->whole_count + work->cut_count);
    const double entries = fmax(1.0, running / (grid->rows * grid->cols)); /* of a batch */
    const double in_entry = running / entries;
    const double beside = fmin(grid->cols, ceil(in_entry / work->group_rows));
    return (line_sharers){beside * (p->a.batch == 0 ? entries : 1.0),
                          fmax(1.0, in_entry / beside) * (p->b.batch == 0 ? entries : 1.0)};
}

/* Until a stage that was asked for is there, where memory is idle. */
static double find_wait_seconds(const tgi_wgmma_work *work, const line_sharers *sharers)
{
    const double wait_s = work->cluster_rows > 1 ? CLUSTER_LATENCY_S : LATENCY_S;
    const int is_shared = sharers->of_a >= 2.0 && sharers->of_b >= 2.0;
    return wait_s * (!is_shared ? 1.0 : work->cluster_parts > 1 ? APART_WAIT : SHARED_WAIT);
}

/* A step of a tile, apart from memory's rate: the instructions or the copy engine; the wait for a
 * stage where memory is idle; what each run of k but the last costs at its end; how many stages are
 * under way while one, or of FP8 two, are multiplied; and what multiplying waits for copies. */
typedef struct step_seconds {
    double busy_s, wait_s, run_s, stages_under_way, slack_s;
} step_seconds;

static step_seconds find_step_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                      const tgi_problem *p, const tgi_wgmma_work *work,
                                      const line_sharers *sharers, double busy_share)
{
    const tile_lines a = count_a_lines(kernel, p, work), b = count_b_lines(p, work);
    const step_work step = find_step_work(kernel, p);
    const double clock_share = tgi_kernels_has_slices(kernel) ? SLICED_CLOCK_SHARE : CLOCK_SHARE;
    const double issue_share = !tgi_kernels_has_slices(kernel)
                                   ? ISSUE_SHARE * find_width_share(kernel)
                               : kernel->tile_cols <= 64 ? NARROW_SHARE
                                                         : 1.0;
    const double clock_hz = gpu->clock_hz * (1.0 - (1.0 - clock_share) * busy_share);
    const double multiply_s =
        (count_step_cycles(kernel, &step) / issue_share + step.add_cycles) / clock_hz;
    const double a_bytes = step.row_bytes * (1.0 + STRADDLE_SHARE * work->a_straddles);
    const double b_share = STRADDLE_SHARE * work->b_straddles / work->cluster_rows;
    const double copy_s =
        (a.inside * a_bytes / find_fill_rate(sharers->of_a) +
         b.inside * step.col_bytes * (1.0 + b_share) / find_fill_rate(sharers->of_b)) /
        gpu->clock_hz;
    const double fill_s =
        (work->a_is_loose ? a.inside * LOOSE_LINE_S + LOOSE_SHARE * multiply_s : copy_s) +
        (a.outside + b.outside) * OUTSIDE_LINE_S;
    const double sum_bytes =
        tgi_kernels_has_slices(kernel) ? kernel->tile_rows * kernel->tile_cols * 4.0 : 0.0;
    return (step_seconds){fmax(multiply_s, fill_s), find_wait_seconds(work, sharers),
                          sum_bytes / RUN_BYTES_PER_S,
                          work->stage_count - (tgi_type_is_fp8(kernel->type) ? 2.0 : 1.0),
                          fmax(0.0, fill_s - multiply_s)};
}

/* `steps` of k of one tile. */
static double find_tile_seconds(const step_seconds *step, double steps, double memory_share)
{
    const double wait_s = step->wait_s * (1.0 + LOADED_SHARE * memory_share);
    return step->run_s * (ceil(steps / RUN_CHUNKS) - 1.0) +
           fmax(steps * step->busy_s, wait_s * fmax(1.0, steps / step->stages_under_way));
}

/* Of two things at once the slower, and more the closer they are: the root of order 12 of the sum
 * of their powers. No pow(): a plan asks some hundred times. */
static double join_seconds(double a, double b)
{
    const double most = fmax(a, b), ratio = fmin(a, b) / most, square = ratio * ratio;
    const double fourth = square * square;
    return most * cbrt(sqrt(sqrt(1.0 + fourth * fourth * fourth)));
}

/* What memory needs for `count` clusters in rounds, each_s one where all slots are busy. Its
 * rate falls with the share of slots that are, to the power of 5/16. */
static double find_memory_seconds(double count, double slots, double each_s)
{
    const double full = floor(count / slots), rest = count - full * slots;
    const double quarter = sqrt(sqrt(rest / slots));
    const double rest_s = rest > 0.0 ? each_s * rest / (quarter * sqrt(sqrt(quarter))) : 0.0;
    return full * slots * each_s + rest_s;
}

/* All rounds of tiles, apart from memory's rate. */
static double find_own_seconds(const tgi_wgmma_work *work, const step_seconds *step,
                               double memory_share)
{
    const double slots = work->slot_count, cut_units = work->cut_count * work->part_count;
    const double whole_steps = work->cluster_parts > 1 ? work->part_steps : work->step_count;
    return ceil(work->whole_count / slots) * find_tile_seconds(step, whole_steps, memory_share) +
           ceil(cut_units / slots) * find_tile_seconds(step, work->part_steps, memory_share);
}

/* What the blocks of a cluster lose with parts of k of a tile. */
static double find_share_seconds(const tgi_wgmma_work *work, const tgi_kernel *kernel, double sums)
{
    const int has_slices = tgi_kernels_has_slices(kernel);
    const double others = work->cluster_parts - 1;
    const double bytes = sums * 4.0 * others / work->cluster_parts;
    return others > 0.0 ? (has_slices ? SLICED_SHARE_S : SHARE_S) + SHARE_PART_S * (others - 1.0) +
                              bytes / (has_slices ? SLICED_SHARE_BYTES_PER_S : SHARE_BYTES_PER_S)
                        : 0.0;
}

/* 1: D's rows lie across the tile's. */
static int is_turned(const tgi_problem *p)
{
    return p->d.col != 1 || p->n == 1;
}

/* More of a tile whose columns are D's rows. */
static double find_turned_seconds(const tgi_wgmma_work *work, const tgi_kernel *kernel,
                                  const tgi_problem *p)
{
    const double parts = (double)kernel->tile_cols / work->d_part_cols;
    const double part_s = work->d_part_cols < 64 ? TURNED_NARROW_PART_S : 0.0;
    return is_turned(p) ? TURNED_S + part_s * (parts - 1.0) : 0.0;
}

/* More of a tile that threads store, part after part. */
static double find_stored_seconds(const tgi_wgmma_work *work, const tgi_kernel *kernel,
                                  const tgi_problem *p)
{
    const int is_narrow = work->d_part_cols < 64;
    const double part_s = tgi_type_bytes(p->d_type) > 1
                              ? (is_narrow ? STORED_NARROW_PART_S : STORED_PART_S)
                          : is_turned(p) ? (is_narrow ? ACROSS_NARROW_PART_S : ACROSS_PART_S)
                                         : (is_narrow ? BYTES_NARROW_PART_S : BYTES_PART_S);
    return work->is_d_boxed
               ? 0.0
               : part_s * ceil((double)kernel->tile_cols / work->d_part_cols / work->cluster_parts);
}

/* 1: a tile of sums alone is stored while the block's next one is multiplied. */
static int is_kept(const tgi_wgmma_work *work, const tgi_kernel *kernel, const tgi_problem *p)
{
    return !work->a_is_loose && tgi_type_bytes(kernel->type) == 2 &&
           tgi_type_bytes(p->d_type) == 2 && tgi_epilogue_is_sum_alone(&p->epilogue) &&
           work->is_d_boxed && !is_turned(p) && work->cluster_parts == 1 &&
           kernel->tile_cols > work->d_part_cols &&
           work->step_count * work->d_part_cols >= (double)kernel->tile_cols;
}

/* What a block does between the products of one tile and the next, and after the last, over all
 * rounds of tiles that are not cut. */
static double find_finish_seconds(const tgi_wgmma_work *work, const tgi_kernel *kernel,
                                  const tgi_problem *p)
{
    const double sums = (double)kernel->tile_rows * kernel->tile_cols;
    const double rounds = ceil(work->whole_count / work->slot_count);
    const double last = rounds > 0.0 && work->cut_count == 0.0 ? 1.0 : 0.0;
    const int64_t elem_bytes = tgi_type_bytes(p->d_type);
    const double store_s = sums / work->cluster_parts * (double)elem_bytes /
                           (elem_bytes == 4 ? STORE_FP32_BYTES_PER_S : STORE_BYTES_PER_S);
    return (is_kept(work, kernel, p) ? last : rounds) * store_s +
           rounds * (TILE_S + find_share_seconds(work, kernel, sums) +
                     find_turned_seconds(work, kernel, p) + find_stored_seconds(work, kernel, p));
}

/* What movers bring of the next tiles while those before are finished, and else is waited for. */
static double find_ahead_seconds(const tgi_wgmma_work *work, const step_seconds *step,
                                 double finish_s)
{
    const double rounds = ceil(work->whole_count / work->slot_count);
    const double most_s = fmin(work->stage_count * step->busy_s, work->step_count * step->slack_s);
    return work->a_is_loose && rounds > 1.0 ? (rounds - 1.0) * fmin(finish_s / rounds, most_s)
                                            : 0.0;
}

/* All products, of lines outside D too, where nothing is waited for. */
static double find_products_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                    const tgi_problem *p, const tgi_wgmma_work *work)
{
    const step_work step = find_step_work(kernel, p);
    const double tiles = (work->whole_count + work->cut_count) * work->cluster_rows;
    return tiles * work->step_count * count_step_cycles(kernel, &step) /
           ((double)gpu->sm_count * gpu->clock_hz);
}

/* What L2 gives anew, each byte as often as the blocks that copy it at once are doubled from one,
 * over what memory gives and takes. */
static double find_copied_ratio(const tgi_kernel *kernel, const tgi_problem *p,
                                const tgi_wgmma_work *work, const tile_grid *grid,
                                const line_sharers *sharers)
{
    const step_work step = find_step_work(kernel, p);
    const double steps = (work->whole_count + work->cut_count) * work->step_count;
    const double a_bytes =
        steps * work->cluster_rows * count_a_lines(kernel, p, work).inside * step.row_bytes;
    const double b_bytes = steps * count_b_lines(p, work).inside * step.col_bytes;
    return (a_bytes * (1.0 - 1.0 / grid->a_readers) * log2(sharers->of_a) +
            b_bytes * (1.0 - 1.0 / grid->b_readers) * log2(sharers->of_b)) /
           tgi_model_tile_bytes(p);
}

double tgi_model_wgmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                               const tgi_wgmma_work *work)
{
    const tile_grid grid = count_grid(kernel, p, work);
    const line_sharers sharers = count_sharers(p, work, &grid);
    const double slots = work->slot_count, parts = work->part_count;
    const double cut_units = work->cut_count * parts;
    const double sums = (double)kernel->tile_rows * kernel->tile_cols;
    const double each_s =
        tgi_model_tile_bytes(p) *
        (1.0 + COPIED_SHARE * find_copied_ratio(kernel, p, work, &grid, &sharers)) /
        (MEMORY_SHARE * gpu->memory_bytes_per_s) / (work->whole_count + work->cut_count);
    const double memory_s = find_memory_seconds(work->whole_count, slots, each_s) +
                            find_memory_seconds(cut_units, slots, each_s / parts);
    const double products_s = find_products_seconds(gpu, kernel, p, work);
    const double busy_share = fmin(1.0, (work->whole_count + cut_units) / slots);
    const step_seconds step = find_step_seconds(gpu, kernel, p, work, &sharers, busy_share);
    const double idle_s = find_own_seconds(work, &step, 0.0);
    const double own_s = find_own_seconds(work, &step, fmin(1.0, memory_s / idle_s));
    const double put_s = TILE_S + sums * 4.0 / PIECE_BYTES_PER_S;
    const double finish_s = find_finish_seconds(work, kernel, p);
    const double fetched_s = own_s - find_ahead_seconds(work, &step, finish_s);
    double seconds = LAUNCH_S + join_seconds(fetched_s, MEMORY_START_S + memory_s) + finish_s +
                     ceil(cut_units / slots) * put_s +
                     POWER_SHARE * fmax(0.0, fmin(products_s, memory_s) - POWER_FREE * memory_s);
    if (work->cut_count > 0.0) {
        const double piece_bytes = cut_units * work->cluster_rows * sums * 4.0;
        seconds += PIECES_S + PIECE_PART_S * parts +
                   piece_bytes / (PIECES_RATIO * gpu->memory_bytes_per_s);
    }
    /* Calls cannot follow faster than they are made, and yet every kernel has a time of its own. */
    return join_seconds(seconds, CALL_S);
}
