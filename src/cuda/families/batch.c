/* Plans the family batch: whole entries in shared memory, several at once. */
#include "cuda/families/batch.h"

#include <stdlib.h>

#include "cuda/families/gemm.h"
#include "kernels/batch/batch_shape.h"

#define UNIT TGI_BATCH_UNIT_BYTES
#define SIDE_MAX 4096              /* keeps offsets in shared memory within 32 bits */
#define ENTRY_BYTES_MAX (68 << 10) /* A and B of an entry; larger ones leave too few blocks */
#define STAGE_BYTES_WANTED (14 << 10)
#define STAGE_BYTES_MAX (32 << 10) /* more than that is one stage of a block, not one of two */
#define D_BYTES_MAX (20 << 10)     /* the most of a group's D that is staged */
#define GAP_BYTES_MAX 16           /* between lines that are copied as one */

/* Returns a pitch in shared memory for lines or entries of `bytes`, `stride_bytes` apart in memory:
 * equal to that modulo a unit, and else an odd number of units, so that neighbours lie in different
 * banks. */
static int32_t find_pitch(int64_t stride_bytes, int64_t bytes)
{
    const int64_t remainder = (stride_bytes % UNIT + UNIT) % UNIT;
    int64_t pitch = tgi_round_up(bytes + UNIT - 1 - remainder, UNIT) + remainder;
    if (remainder == 0 && pitch / UNIT % 2 == 0)
        pitch += UNIT;
    return (int32_t)pitch;
}

void tgi_batch_count_units(tgi_entry_copy *copy, int is_aligned)
{
    const int32_t before = is_aligned ? 0 : UNIT - 1; /* bytes of the first unit before the line */
    copy->units = tgi_make_divisor((copy->line_length + before + UNIT - 1) / UNIT);
}

/* Describes an operand of `across` rows of A or columns of B. */
static int describe_entries(const tgi_problem *p, tg_type type, int64_t across,
                            int64_t across_stride, int64_t k_stride, int is_along_k,
                            int64_t batch_stride, tgi_entry_copy *copy)
{
    const int64_t elem_bytes = tgi_type_bytes(type);
    const int64_t line_bytes = (is_along_k ? across_stride : k_stride) * elem_bytes;
    int64_t lines = is_along_k ? across : p->k;
    int64_t length = (is_along_k ? p->k : across) * elem_bytes;
    int64_t step = line_bytes;
    if ((is_along_k ? k_stride : across_stride) != 1)
        return 0;
    if (line_bytes >= 0 && line_bytes <= length + GAP_BYTES_MAX &&
        (line_bytes % UNIT != 0 || line_bytes == 0 || line_bytes / UNIT % 2 == 1)) {
        length += (lines - 1) * line_bytes; /* one line: what lies between is copied too */
        lines = 1;
    } else {
        step = find_pitch(line_bytes, length);
    }
    copy->batch_bytes = batch_stride * elem_bytes;
    copy->is_joined =
        lines == 1 && copy->batch_bytes >= 0 && copy->batch_bytes <= length + GAP_BYTES_MAX;
    copy->line_bytes = line_bytes;
    copy->line_length = (int32_t)length;
    copy->pitch = (int32_t)step;
    copy->entry_pitch = copy->is_joined
                            ? (int32_t)copy->batch_bytes
                            : find_pitch(copy->batch_bytes, (lines - 1) * step + length);
    copy->across_bytes = (int32_t)(is_along_k ? step : elem_bytes);
    copy->k_bytes = (int32_t)(is_along_k ? elem_bytes : step);
    copy->lines = tgi_make_divisor((int32_t)lines);
    tgi_batch_count_units(copy, 0);
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

int tgi_batch_describe(const tgi_kernel *kernel, const tgi_problem *p,
                       const tgi_batch_decision *split, tgi_batch_args *args)
{
    const int64_t group_entries = split->group_entries;
    const int32_t rows = (int32_t)tgi_divide_up(p->m, kernel->tile_rows);
    const int32_t cols = (int32_t)tgi_divide_up(p->n, kernel->tile_cols);
    if (!describe_entries(p, p->type, p->m, p->a.row, p->a.col, tgi_gemm_is_a_along_k(p),
                          p->a.batch, &args->a) ||
        !describe_entries(p, p->b_type, p->n, p->b.col, p->b.row, tgi_gemm_is_b_along_k(p),
                          p->b.batch, &args->b))
        return 0;
    const int64_t part_rows = tgi_divide_up(rows, split->part_count) * kernel->tile_rows;
    const int64_t d_elems = split->part_count > 1 ? part_rows * p->n : group_entries * p->m * p->n;
    const int64_t d_bytes = tgi_round_up(UNIT - 1 + d_elems * tgi_type_bytes(p->d_type), UNIT);
    const int is_staged =
        is_d_packed(p) && (split->part_count == 1 || p->d.col == 1) && d_bytes <= D_BYTES_MAX;
    args->part_tile_rows = (int32_t)(part_rows / kernel->tile_rows);
    args->parts = tgi_make_divisor((int32_t)split->part_count);
    args->tile_cols = tgi_make_divisor(cols);
    args->part_tiles = tgi_make_divisor(args->part_tile_rows * cols);
    args->group_entries = (int32_t)group_entries;
    args->group_count = tgi_divide_up(p->batch_count, group_entries) * split->part_count;
    args->b_place = count_entry_bytes(&args->a, group_entries);
    args->stage_bytes = args->b_place + count_entry_bytes(&args->b, group_entries);
    args->stage_count = args->stage_bytes <= STAGE_BYTES_MAX ? kernel->stage_count : 1;
    args->shared_bytes = args->stage_count * args->stage_bytes;
    args->d_place = is_staged ? args->shared_bytes : 0;
    args->shared_bytes += is_staged ? (int32_t)d_bytes : 0;
    return 1;
}

/* Returns a block's workers, threads or warps, each of which forms a tile. */
static int64_t count_workers(const tgi_kernel *kernel)
{
    return kernel->thread_count / (kernel->math == TGI_MATH_mma ? 32 : 1);
}

/* Returns how many blocks run at once, by registers. */
static int64_t count_slots(const tgi_machine *machine, const tgi_problem *p)
{
    return (int64_t)TGI_BATCH_BLOCKS_PER_SM((int)tgi_type_bytes(p->type)) * machine->gpu.sm_count;
}

/* Returns how many entries a group has: enough to fill a stage and to give each worker a tile, but
 * no more than leave whole rounds of blocks a group each. */
static int64_t count_group_entries(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *p, const tgi_batch_args *entry)
{
    const int64_t d_bytes = p->m * p->n * tgi_type_bytes(p->d_type);
    const int64_t pitches = entry->a.entry_pitch + entry->b.entry_pitch;
    const int64_t entry_bytes = pitches > UNIT ? pitches : UNIT; /* all may have the same operand */
    const int64_t workers = count_workers(kernel), tiles = entry->part_tiles.value;
    const int64_t unit = tiles < workers ? workers / tiles : 1;
    const int64_t filling = tgi_round_up(tgi_divide_up(STAGE_BYTES_WANTED, entry_bytes), unit);
    const int64_t by_d = D_BYTES_MAX / (d_bytes + 1);
    const int64_t by_stage = STAGE_BYTES_MAX / entry_bytes;
    const int64_t most = by_d > 0 && by_d < by_stage ? by_d : by_stage;
    int64_t count = filling < most ? filling : most / unit > 0 ? most / unit * unit : most;
    count = count > 1 ? count : 1;
    const int64_t slots = count_slots(machine, p);
    const int64_t rounds = tgi_divide_up(p->batch_count, count * slots);
    return tgi_divide_up(p->batch_count, rounds * slots);
}

/* Returns into how many parts the tile rows of an entry are split: one, unless there are fewer
 * entries than blocks that run at once and a part has a tile for each worker, or D of an entry is
 * too large to be staged. */
static int64_t count_parts(const tgi_machine *machine, const tgi_kernel *kernel,
                           const tgi_problem *p)
{
    const int64_t tile_rows = tgi_divide_up(p->m, kernel->tile_rows);
    const int64_t tiles = tile_rows * tgi_divide_up(p->n, kernel->tile_cols);
    const int64_t turns = tgi_divide_up(tiles, count_workers(kernel));
    const int64_t room = count_slots(machine, p) / p->batch_count;
    const int64_t filling = turns < room ? turns : room;
    const int64_t staged =
        tgi_divide_up(p->m * p->n * tgi_type_bytes(p->d_type), D_BYTES_MAX - 2 * UNIT);
    const int64_t wanted = filling > staged ? filling : staged;
    const int64_t parts = wanted < tile_rows ? wanted : tile_rows;
    if (kernel->math != TGI_MATH_mma || parts < 2 || p->batch_count > INT32_MAX / parts)
        return 1;
    return tgi_divide_up(tile_rows, tgi_divide_up(tile_rows, parts));
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_batch_args args = {.group_count = 0};
    if (!tgi_gemm_rounds_sums(p, proposal))
        return;
    if (p->m > SIDE_MAX || p->n > SIDE_MAX || p->k > SIDE_MAX ||
        (p->m + p->n) * p->k * tgi_type_bytes(p->type) > ENTRY_BYTES_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_SHAPE,
                   "A and B of a product are larger than %d bytes, which a stage holds",
                   ENTRY_BYTES_MAX);
        return;
    }
    tgi_batch_decision *split = &proposal->decision.batch;
    *split =
        (tgi_batch_decision){.group_entries = 1, .part_count = count_parts(machine, kernel, p)};
    if (!tgi_batch_describe(kernel, p, split, &args)) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_LAYOUT,
                   "A or B has neither contiguous rows nor contiguous columns");
        return;
    }
    if (split->part_count == 1)
        split->group_entries = count_group_entries(machine, kernel, p, &args);
    tgi_batch_describe(kernel, p, split, &args);
    if (!tgi_gemm_fits(machine, args.shared_bytes, proposal))
        return;
    const int resident = tgi_gemm_count_resident(
        &machine->gpu, kernel, TGI_BATCH_BLOCKS_PER_SM((int)tgi_type_bytes(p->type)),
        args.shared_bytes);
    const int64_t most = (int64_t)resident * machine->gpu.sm_count;
    const tgi_tile_work work = {.block_count = (double)args.group_count,
                                .blocks_per_sm = resident,
                                .access = tgi_gemm_find_access(p),
                                .tile_count =
                                    (double)(split->group_entries * args.part_tiles.value)};
    proposal->is_legal = 1;
    proposal->resident_blocks = resident;
    proposal->predicted_s = tgi_model_batch_seconds(&machine->gpu, kernel, p, &work);
    split->block_count = args.group_count < most ? args.group_count : most;
}

static void describe_split(const tgi_proposal *proposal, tgi_plan_split *split)
{
    split->block_count = proposal->decision.batch.block_count;
}

const tgi_cuda_planner tgi_cuda_planner_batch = {propose, describe_split};
