/* Plans the family batch: whole entries in shared memory, several at once. */
#include "cuda/families/batch.h"

#include <stdlib.h>

#include "cuda/families/gemm.h"
#include "kernels/batch/batch_shape.h"

#define UNIT TGI_BATCH_UNIT_BYTES
#define SIDE_MAX 4096              /* keeps offsets in shared memory within 32 bits */
#define ENTRY_BYTES_MAX (40 << 10) /* A and B of an entry; larger ones leave too few blocks */
#define STAGE_BYTES_WANTED (14 << 10)
#define STAGE_BYTES_MAX (36 << 10) /* two stages of three blocks share a multiprocessor */
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
        (line_bytes % UNIT != 0 || line_bytes <= UNIT)) {
        length += (lines - 1) * line_bytes; /* one line: what lies between is copied too */
        lines = 1;
    } else {
        step = find_pitch(line_bytes, length);
    }
    copy->batch_bytes = batch_stride * elem_bytes;
    copy->line_bytes = line_bytes;
    copy->line_length = (int32_t)length;
    copy->pitch = (int32_t)step;
    copy->entry_pitch = find_pitch(copy->batch_bytes, (lines - 1) * step + length);
    copy->across_bytes = (int32_t)(is_along_k ? step : elem_bytes);
    copy->k_bytes = (int32_t)(is_along_k ? elem_bytes : step);
    copy->lines = tgi_make_divisor((int32_t)lines);
    tgi_batch_count_units(copy, 0);
    return 1;
}

int tgi_batch_describe(const tgi_kernel *kernel, const tgi_problem *p, int64_t group_entries,
                       tgi_batch_args *args)
{
    const int32_t rows = (int32_t)tgi_divide_up(p->m, kernel->tile_rows);
    const int32_t cols = (int32_t)tgi_divide_up(p->n, kernel->tile_cols);
    if (!describe_entries(p, p->type, p->m, p->a.row, p->a.col, tgi_gemm_is_a_along_k(p),
                          p->a.batch, &args->a) ||
        !describe_entries(p, p->b_type, p->n, p->b.col, p->b.row, tgi_gemm_is_b_along_k(p),
                          p->b.batch, &args->b))
        return 0;
    args->tile_rows = rows;
    args->tile_cols = tgi_make_divisor(cols);
    args->entry_tiles = tgi_make_divisor(rows * cols);
    args->group_entries = (int32_t)group_entries;
    args->group_count = tgi_divide_up(p->batch_count, group_entries);
    args->b_place =
        (int32_t)tgi_round_up(group_entries * args->a.entry_pitch, UNIT) + TGI_BATCH_SLACK_BYTES;
    args->stage_bytes = (int32_t)tgi_round_up(group_entries * args->b.entry_pitch, UNIT) +
                        TGI_BATCH_SLACK_BYTES + args->b_place;
    return 1;
}

/* Returns how many entries a stage has: enough to fill it and to give each of a block's workers,
 * threads or warps, a tile, but no more than leave a group for each multiprocessor. */
static int64_t count_group_entries(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *p, const tgi_batch_args *entry)
{
    const int64_t entry_bytes = entry->a.entry_pitch + entry->b.entry_pitch;
    const int64_t workers = kernel->thread_count / (kernel->math == TGI_MATH_mma ? 32 : 1);
    const int64_t tiles = entry->entry_tiles.value;
    const int64_t unit = tiles < workers ? workers / tiles : 1;
    const int64_t filling = tgi_round_up(tgi_divide_up(STAGE_BYTES_WANTED, entry_bytes), unit);
    const int64_t most = STAGE_BYTES_MAX / entry_bytes;
    const int64_t shared = p->batch_count / (2 * machine->gpu.sm_count);
    int64_t count = filling < most ? filling : most / unit > 0 ? most / unit * unit : most;
    count = count < shared ? count : shared;
    return count > 1 ? count : 1;
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
    if (!tgi_batch_describe(kernel, p, 1, &args)) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_LAYOUT,
                   "A or B has neither contiguous rows nor contiguous columns");
        return;
    }
    const int64_t entries = count_group_entries(machine, kernel, p, &args);
    tgi_batch_describe(kernel, p, entries, &args);
    const int64_t shared_bytes = kernel->stage_count * (int64_t)args.stage_bytes;
    if (!tgi_gemm_fits(machine, shared_bytes, proposal))
        return;
    const int resident = tgi_gemm_count_resident(
        &machine->gpu, kernel, TGI_BATCH_BLOCKS_PER_SM((int)tgi_type_bytes(p->type)), shared_bytes);
    const int64_t most = (int64_t)resident * machine->gpu.sm_count;
    const tgi_tile_work work = {.block_count = (double)args.group_count,
                                .blocks_per_sm = resident,
                                .access = tgi_gemm_find_access(p),
                                .tile_count = (double)(entries * args.entry_tiles.value)};
    proposal->is_legal = 1;
    proposal->resident_blocks = resident;
    proposal->predicted_s = tgi_model_batch_seconds(&machine->gpu, kernel, p, &work);
    proposal->decision.batch = (tgi_batch_decision){
        .group_entries = entries, .block_count = args.group_count < most ? args.group_count : most};
}

static void describe_split(const tgi_proposal *proposal, tgi_plan_split *split)
{
    split->block_count = proposal->decision.batch.block_count;
}

const tgi_cuda_planner tgi_cuda_planner_batch = {propose, describe_split};
