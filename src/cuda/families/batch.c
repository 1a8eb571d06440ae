/* Plans the family batch, whose blocks have whole entries in shared memory, several at once. */
#include "cuda/families/batch.h"

#include <stdlib.h>

#include "cuda/families/gemm.h"
#include "kernels/batch/batch_shape.h"

#define UNIT TGI_BATCH_UNIT_BYTES
#define SIDE_MAX 4096              /* keeps offsets in shared memory within 32 bits */
#define ENTRY_BYTES_MAX (68 << 10) /* A and B of an entry; larger ones leave too few blocks */
#define STAGE_BYTES_WANTED (14 << 10)
#define STAGE_BYTES_MAX (32 << 10) /* a block has one stage, not two, if it is larger */
#define D_BYTES_MAX (20 << 10)     /* most bytes of a group's D that are staged */
#define STAGED_K_MAX 24            /* longer products hide stores of a D that is not staged */
#define THREADS_LEAST 128          /* fewest threads of a block */
#define THREADS_LEAST_OF_MANY 64   /* fewest if there are many small blocks */
#define THREADS_WANTED 512         /* fewest threads on a multiprocessor */
#define GAP_BYTES_MAX 16           /* most bytes between lines that are copied as one */
#define CONFLICTS_MAX 3            /* most words of a bank, if lines are copied as one */

/* Returns the most words of one bank in a request of a warp that reads 4 words of each of 8 lines
 * `pitch` bytes apart, as matrix instructions on 16-bit types do. A pitch without conflicts there
 * serves all types. */
static int count_conflicts(int64_t pitch)
{
    int most = 1, counts[32] = {0};
    if (pitch < UNIT) /* lines share words */
        return 1;
    for (int i = 0; i < 32; i++) {
        const int bank = (int)((i / 4 * pitch / 4 + i % 4) % 32);
        most = ++counts[bank] > most ? counts[bank] : most;
    }
    return most;
}

/* Returns a pitch in shared memory for lines or entries of `bytes` bytes that lie stride_bytes
 * apart in global memory. It is equal to stride_bytes modulo a unit, and has the fewest conflicts
 * of the first 8 such pitches. */
static int32_t find_pitch(int64_t stride_bytes, int64_t bytes)
{
    const int64_t remainder = (stride_bytes % UNIT + UNIT) % UNIT;
    const int64_t first = tgi_round_up(bytes + UNIT - 1 - remainder, UNIT) + remainder;
    int64_t best = first;
    int least = count_conflicts(first);
    for (int64_t pitch = first + UNIT; least > 1 && pitch < first + 8 * UNIT; pitch += UNIT) {
        const int conflicts = count_conflicts(pitch);
        best = conflicts < least ? pitch : best;
        least = conflicts < least ? conflicts : least;
    }
    return (int32_t)best;
}

/* Returns 1 if lines can stay as close together as in global memory, because few words of a
 * request lie in one bank. */
static int is_spread(int64_t line_bytes, int64_t elem_bytes, int is_along_k)
{
    if (line_bytes % UNIT == 0)
        return line_bytes == 0 || line_bytes / UNIT % 2 == 1;
    return elem_bytes != 2 || !is_along_k || count_conflicts(line_bytes) <= CONFLICTS_MAX;
}

/* Describes an operand of `across` rows of A or columns of B. Returns 0 if its lines are not
 * contiguous. */
static int describe_entries(const tgi_problem *p, tg_type type, int64_t across,
                            int64_t across_stride, int64_t k_stride, int is_along_k,
                            int64_t batch_stride, tgi_entry_copy *copy)
{
    const int64_t elem_bytes = tgi_type_bytes(type);
    const int64_t line_bytes = (is_along_k ? across_stride : k_stride) * elem_bytes;
    int64_t lines = is_along_k ? across : p->k;
    int64_t length = (is_along_k ? p->k : across) * elem_bytes;
    int64_t pitch = line_bytes;
    if ((is_along_k ? k_stride : across_stride) != 1)
        return 0;
    if (line_bytes >= 0 && line_bytes <= length + GAP_BYTES_MAX &&
        is_spread(line_bytes, elem_bytes, is_along_k)) {
        length += (lines - 1) * line_bytes; /* one line, gaps included */
        lines = 1;
    } else {
        pitch = find_pitch(line_bytes, length);
    }
    copy->batch_bytes = batch_stride * elem_bytes;
    copy->is_joined =
        lines == 1 && copy->batch_bytes >= 0 && copy->batch_bytes <= length + GAP_BYTES_MAX;
    copy->line_bytes = line_bytes;
    copy->line_length = (int32_t)length;
    copy->pitch = (int32_t)pitch;
    copy->entry_pitch = copy->is_joined
                            ? (int32_t)copy->batch_bytes
                            : find_pitch(copy->batch_bytes, (lines - 1) * pitch + length);
    copy->across_bytes = (int32_t)(is_along_k ? pitch : elem_bytes);
    copy->k_bytes = (int32_t)(is_along_k ? elem_bytes : pitch);
    copy->row_bytes = across_stride * elem_bytes;
    copy->cut_lines = is_along_k && lines > 1;
    copy->cut_bytes = copy->cut_lines ? 0 : (int32_t)copy->row_bytes;
    copy->lines = tgi_make_divisor((int32_t)lines);
    return 1;
}

/* Returns the bytes of an operand's entries in shared memory, which begin up to 15 bytes into a
 * unit. */
static int32_t count_entry_bytes(const tgi_entry_copy *copy, int64_t entries)
{
    const int64_t last = (copy->lines.value - 1) * (int64_t)copy->pitch + copy->line_length;
    return (int32_t)tgi_round_up(UNIT - 1 + (entries - 1) * copy->entry_pitch + last, UNIT) +
           TGI_BATCH_SLACK_BYTES;
}

/* Returns 1 if neither the rows (or columns) of D nor its entries have gaps between them. */
static int is_d_packed(const tgi_problem *p)
{
    const int is_by_rows = p->d.col == 1 && (p->m == 1 || p->d.row == p->n);
    const int is_by_cols = p->d.row == 1 && (p->n == 1 || p->d.col == p->m);
    return (is_by_rows || is_by_cols) && (p->batch_count == 1 || p->d.batch == p->m * p->n);
}

/* Returns 1 if a warp's stores of pairs fill D's sectors of 32 bytes, which only FP64 does. */
static int has_wide_stores(const tgi_problem *p)
{
    return p->d_type == TG_TYPE_FP64 && p->d.col == 1 && p->d.row % 2 == 0 && p->d.batch % 2 == 0;
}

int tgi_batch_describe(const tgi_kernel *kernel, const tgi_problem *p,
                       const tgi_batch_decision *decision, tgi_batch_args *args)
{
    const int64_t group_entries = decision->group_entries;
    const int is_cut = decision->portion_count > 1;
    const int32_t rows = (int32_t)tgi_divide_up(p->m, kernel->tile_rows);
    const int32_t cols = (int32_t)tgi_divide_up(p->n, kernel->tile_cols);
    const int64_t portion_rows = tgi_divide_up(rows, decision->portion_count) * kernel->tile_rows;
    if (!describe_entries(p, p->type, is_cut ? portion_rows : p->m, p->a.row, p->a.col,
                          tgi_gemm_is_a_along_k(p), p->a.batch, &args->a) ||
        !describe_entries(p, p->b_type, p->n, p->b.col, p->b.row, tgi_gemm_is_b_along_k(p),
                          p->b.batch, &args->b))
        return 0;
    const int64_t d_elems = is_cut ? portion_rows * p->n : group_entries * p->m * p->n;
    const int64_t d_bytes = tgi_round_up(UNIT - 1 + d_elems * tgi_type_bytes(p->d_type), UNIT);
    const int is_staged = is_d_packed(p) && !has_wide_stores(p) && (!is_cut || p->d.col == 1) &&
                          d_bytes <= D_BYTES_MAX;
    args->portion_tile_rows = (int32_t)(portion_rows / kernel->tile_rows);
    args->portions = tgi_make_divisor((int32_t)decision->portion_count);
    args->tile_cols = tgi_make_divisor(cols);
    args->portion_tiles = tgi_make_divisor(args->portion_tile_rows * cols);
    args->group_entries = (int32_t)group_entries;
    args->group_count = tgi_divide_up(p->batch_count, group_entries) * decision->portion_count;
    args->b_place = count_entry_bytes(&args->a, group_entries);
    args->stage_bytes = args->b_place + count_entry_bytes(&args->b, group_entries);
    const int has_stages = kernel->type == TG_TYPE_FP64 && args->stage_bytes <= STAGE_BYTES_MAX;
    args->stage_count = has_stages ? kernel->stage_count : 1;
    args->shared_bytes = args->stage_count * args->stage_bytes;
    args->d_place = is_staged ? args->shared_bytes : 0;
    args->shared_bytes += is_staged ? (int32_t)d_bytes : 0;
    return 1;
}

/* Returns the threads of a worker. A worker forms one tile and is a thread or, for matrix
 * instructions, a warp. */
static int count_worker_threads(const tgi_kernel *kernel)
{
    return kernel->math == TGI_MATH_mma ? 32 : 1;
}

/* Returns into how many portions the tile rows of an entry are split, so that each worker has one
 * tile. Workers that are warps get as many portions as run at once, small enough that D is staged.
 * Workers that are threads, whose B is larger, get one portion on each multiprocessor, or two if
 * there are more entries than multiprocessors. Copies of B for the portions are at most half of all
 * bytes that are moved. */
static int64_t count_portions(const tgi_machine *machine, const tgi_kernel *kernel,
                              const tgi_problem *p)
{
    const int64_t sm_count = machine->gpu.sm_count, entries = p->batch_count;
    const int64_t slots = TGI_BATCH_BLOCKS_PER_SM((int)tgi_type_bytes(p->type)) * sm_count;
    const int64_t tile_rows = tgi_divide_up(p->m, kernel->tile_rows);
    const int64_t tiles = tile_rows * tgi_divide_up(p->n, kernel->tile_cols);
    const int64_t rounds =
        tgi_divide_up(tiles * count_worker_threads(kernel), kernel->thread_count);
    const int64_t b_elems = p->n * p->k, elems = b_elems + p->m * (p->n + p->k);
    const int64_t row_bytes = p->n * tgi_type_bytes(p->d_type), d_bytes = D_BYTES_MAX - 2 * UNIT;
    const int64_t staged_tiles = d_bytes / row_bytes / kernel->tile_rows;
    int64_t staged = tgi_divide_up(p->m * row_bytes, d_bytes);
    if (staged > 1 && staged_tiles > 0 && p->k <= STAGED_K_MAX)
        staged = tgi_divide_up(tile_rows, staged_tiles);
    int64_t wanted = slots / entries < rounds ? slots / entries : rounds;
    if (is_d_packed(p) && !has_wide_stores(p) && staged > wanted)
        wanted = staged;
    if (kernel->math != TGI_MATH_mma) {
        const int64_t filling =
            entries <= sm_count ? sm_count / entries : 1 + (entries < 2 * sm_count);
        wanted = filling > rounds ? filling : rounds;
        wanted = wanted < elems / b_elems ? wanted : elems / b_elems;
    }
    const int64_t portions = wanted < 1 ? 1 : wanted < tile_rows ? wanted : tile_rows;
    if (entries > INT32_MAX / portions)
        return 1;
    return tgi_divide_up(tile_rows, tgi_divide_up(tile_rows, portions));
}

/* Returns the threads of a block that has `tiles` tiles, if a multiprocessor has room for
 * `by_shared` blocks. Few threads are idle, and enough remain to copy. Since each thread needs time
 * to find its tile, fewer threads form more tiles each. */
static int64_t count_threads(const tgi_kernel *kernel, int64_t tiles, int64_t by_shared,
                             int64_t least)
{
    const int64_t most = kernel->thread_count, workers = tiles * count_worker_threads(kernel);
    int64_t best = most, best_idle = tgi_round_up(workers, most) - workers;
    for (int64_t threads = most - 32; threads >= least; threads -= 32) {
        const int64_t idle = tgi_round_up(workers, threads) - workers;
        if (idle <= best_idle && threads * by_shared >= THREADS_WANTED) {
            best = threads;
            best_idle = idle;
        }
    }
    return best;
}

/* Chooses the entries of a group and the threads of a block. */
static void choose_group(const tgi_machine *machine, const tgi_kernel *kernel, const tgi_problem *p,
                         const tgi_batch_args *entry, tgi_batch_decision *decision)
{
    const tgi_gpu *gpu = &machine->gpu;
    const int64_t tiles = entry->portion_tiles.value, spread = 2 * (int64_t)gpu->sm_count;
    const int64_t d_bytes = p->m * p->n * tgi_type_bytes(p->d_type);
    const int64_t pitches = entry->a.entry_pitch + entry->b.entry_pitch;
    const int64_t limits[] = {
        kernel->thread_count / (tiles * count_worker_threads(kernel)), p->batch_count / spread,
        STAGE_BYTES_WANTED / (pitches > UNIT ? pitches : UNIT), D_BYTES_MAX / (d_bytes + 1)};
    int64_t count = limits[0];
    for (int i = 1; i < 4; i++)
        count = limits[i] < count ? limits[i] : count;
    decision->group_entries = decision->portion_count > 1 || count < 1 ? 1 : count;
    const int64_t group_bytes =
        decision->group_entries * (pitches + d_bytes / decision->portion_count);
    const int64_t blocks =
        tgi_divide_up(p->batch_count, decision->group_entries) * decision->portion_count;
    const int is_small = decision->group_entries * pitches <= STAGE_BYTES_WANTED;
    decision->thread_count = kernel->thread_count; /* few blocks need many threads to copy */
    if (blocks > spread)
        decision->thread_count = (int)count_threads(
            kernel, decision->group_entries * tiles, gpu->shared_bytes_per_sm / (group_bytes + 1),
            is_small && 2 * blocks > 3 * spread ? THREADS_LEAST_OF_MANY : THREADS_LEAST);
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_kernel sized = *kernel; /* the row with the block's threads */
    tgi_batch_args args = {.group_count = 0};
    if (!tgi_gemm_rounds_sums(p, proposal))
        return;
    if (p->batch_count > INT32_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE, "there are 2^31 products or more");
        return;
    }
    if (p->m > SIDE_MAX || p->n > SIDE_MAX || p->k > SIDE_MAX ||
        (p->m + p->n) * p->k * tgi_type_bytes(p->type) > ENTRY_BYTES_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_SHAPE,
                   "A and B of a product are larger than %d bytes, which a stage holds",
                   ENTRY_BYTES_MAX);
        return;
    }
    tgi_batch_decision *decision = &proposal->decision.batch;
    *decision = (tgi_batch_decision){.group_entries = 1,
                                     .portion_count = count_portions(machine, kernel, p),
                                     .thread_count = kernel->thread_count};
    if (!tgi_batch_describe(kernel, p, decision, &args)) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_LAYOUT,
                   "A or B has neither contiguous rows nor contiguous columns");
        return;
    }
    choose_group(machine, kernel, p, &args, decision);
    tgi_batch_describe(kernel, p, decision, &args);
    if (!tgi_gemm_fits(machine, args.shared_bytes, proposal))
        return;
    sized.thread_count = decision->thread_count;
    const int registers = TGI_BATCH_BLOCKS_PER_SM((int)tgi_type_bytes(p->type));
    const int resident = tgi_gemm_count_resident(
        &machine->gpu, &sized, registers * kernel->thread_count / decision->thread_count,
        args.shared_bytes);
    const int64_t most =
        args.stage_count > 1 ? (int64_t)resident * machine->gpu.sm_count : INT32_MAX;
    const tgi_tile_work work = {.block_count = (double)args.group_count,
                                .blocks_per_sm = resident,
                                .access = tgi_gemm_find_access(p),
                                .is_moved = !args.d_place && !has_wide_stores(p),
                                .tile_count =
                                    (double)(decision->group_entries * args.portion_tiles.value)};
    proposal->is_legal = 1;
    proposal->resident_blocks = resident;
    proposal->predicted_s = tgi_model_batch_seconds(&machine->gpu, &sized, p, &work);
    decision->block_count = args.group_count < most ? args.group_count : most;
}

static void describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    tiling->block_count = proposal->decision.batch.block_count;
    tiling->thread_count = proposal->decision.batch.thread_count;
}

const tgi_cuda_planner tgi_cuda_planner_batch = {.propose = propose,
                                                 .describe_tiling = describe_tiling};
