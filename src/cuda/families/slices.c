#include "cuda/families/slices.h"

#include <stdio.h>

#include "core/checked.h"
#include "cuda/families/operand.h"
#include "kernels/mma/mma_slices_args.h"

#define BLOCKS_PER_SM 8
#define SEGMENTS_MAX 64 /* most segments of a line; tiles read a range for each */
#define WORKSPACE_UNIT_BYTES 256
#define K_LEAST 64 /* least k; shorter sums exceed the error bound of precision default */
#define K_MAX ((int64_t)1 << 30)
#define REGISTER_PRODUCTS 6 /* products of kernels that slice in registers */
/* If the B of a batch-invariant problem has more elements, the rows of a kernel are the columns: a
 * B that meets few rows is then sliced in registers. D of a smaller one is stored faster. */
#define INVARIANT_B_ELEMS ((int64_t)1 << 20)
#define NAMES_BYTES 64 /* bytes of a list of precisions */

typedef long long ll; /* for printf */

void tgi_slices_describe(const tgi_problem *p, int is_b, int sm_count, tgi_slice_job *job)
{
    const tgi_layout *layout = is_b ? &p->b : &p->a;
    *job = (tgi_slice_job){.line_count = is_b ? p->n : p->m,
                           .k = p->k,
                           .batch_count = layout->batch == 0 ? 1 : p->batch_count,
                           .line_stride = is_b ? layout->col : layout->row,
                           .k_stride = is_b ? layout->row : layout->col,
                           .batch_stride = layout->batch};
    job->chunk_count = tgi_divide_up(p->k, TGI_CHUNK_ELEMS);
    job->block_count = (int32_t)tgi_divide_up(job->line_count, TGI_RANGE_LINES);
    int64_t wanted =
        tgi_divide_up((int64_t)sm_count * BLOCKS_PER_SM, 2 * job->block_count * job->batch_count);
    wanted = wanted < SEGMENTS_MAX ? wanted : SEGMENTS_MAX;
    job->chunks_per_segment = tgi_divide_up(job->chunk_count, wanted);
    job->segment_count = (int32_t)tgi_divide_up(job->chunk_count, job->chunks_per_segment);
}

static int64_t count_slice_bytes(const tgi_slice_job *job, tg_precision precision)
{
    const int64_t group_count = tgi_divide_up(job->line_count, TGI_GROUP_LINES) * job->batch_count;
    const int64_t chunk_bytes = tgi_precision_table[precision].slice_count * TGI_GROUP_BYTES;
    return tgi_checked_multiply(group_count, tgi_checked_multiply(job->chunk_count, chunk_bytes));
}

static int64_t count_range_bytes(const tgi_slice_job *job)
{
    return tgi_round_up(job->batch_count * job->block_count * job->segment_count *
                            (int64_t)sizeof(tgi_range),
                        WORKSPACE_UNIT_BYTES);
}

/* Returns the bytes of the largest magnitudes, one for each segment of a line. */
static int64_t count_largest_bytes(const tgi_slice_job *job)
{
    return tgi_round_up(job->batch_count * job->line_count * job->segment_count * 4,
                        WORKSPACE_UNIT_BYTES);
}

/* Places a job's results from `offset` on in the workspace. Returns the offset behind them. */
static int64_t place_job(const tgi_slice_job *job, tg_precision precision, int64_t offset,
                         tgi_slice_places *places)
{
    places->slices = offset;
    offset = tgi_checked_add(offset,
                             tgi_round_up(count_slice_bytes(job, precision), WORKSPACE_UNIT_BYTES));
    places->ranges = offset;
    offset = tgi_checked_add(offset, count_range_bytes(job));
    if (!tgi_slices_are_scaled(precision))
        return offset;
    places->line_largest = offset;
    offset = tgi_checked_add(offset, count_largest_bytes(job));
    places->line_scale = offset;
    return tgi_checked_add(
        offset, tgi_round_up(job->batch_count * job->line_count * 4, WORKSPACE_UNIT_BYTES));
}

int tgi_slices_are_scaled(tg_precision precision)
{
    return tgi_precision_table[precision].slice == TG_TYPE_FP16;
}

int tgi_slices_is_a_in_registers(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_bf16r;
}

/* Returns the bytes of the ranges of rows that the kernel slices in registers. A range describes 16
 * rows in one split. */
static int64_t count_register_range_bytes(const tgi_slice_job *job, int64_t split_count)
{
    const int64_t blocks = tgi_divide_up(job->line_count, TGI_REGISTER_ROWS) * job->batch_count;
    return tgi_round_up(blocks * split_count * (int64_t)sizeof(tgi_range), WORKSPACE_UNIT_BYTES);
}

/* Returns the most blocks of the kernel that a multiprocessor holds. */
static int count_resident_most(const tgi_kernel *kernel)
{
    return tgi_kernels_uses(kernel, TGI_FEATURE_WGMMA)
               ? 1
               : TGI_MMA_SLICES_BLOCKS(kernel->thread_rows * kernel->thread_cols,
                                       kernel->thread_count);
}

/* Returns the bytes of the sums of runs of k, one tile for each block. */
static int64_t count_run_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                               const tgi_problem *p)
{
    const int64_t tile_bytes = (int64_t)kernel->tile_rows * kernel->tile_cols * 4;
    const int64_t block_count = (int64_t)machine->gpu.sm_count * count_resident_most(kernel);
    return p->k > TGI_RUN_CHUNKS * TGI_CHUNK_ELEMS ? block_count * tile_bytes : 0;
}

int64_t tgi_slices_place(const tgi_machine *machine, const tgi_kernel *kernel, const tgi_problem *p,
                         int64_t split_count, tgi_slice_places places[2])
{
    int64_t offset = count_run_bytes(machine, kernel, p);
    tgi_slice_job job;
    tgi_slices_describe(p, 0, machine->gpu.sm_count, &job);
    if (tgi_slices_is_a_in_registers(kernel)) {
        places[0] = (tgi_slice_places){.ranges = offset};
        offset = tgi_checked_add(offset, count_register_range_bytes(&job, split_count));
    } else {
        offset = place_job(&job, p->precision, offset, &places[0]);
    }
    tgi_slices_describe(p, 1, machine->gpu.sm_count, &job);
    return place_job(&job, p->precision, offset, &places[1]);
}

int64_t tgi_slices_workspace_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *p, int64_t split_count)
{
    tgi_slice_places places[2];
    return tgi_slices_place(machine, kernel, p, split_count, places);
}

/* Returns 1 if the kernel slices rows of A, or both operands, in registers. */
static int slices_in_registers(const tgi_kernel *kernel)
{
    return tgi_slices_is_a_in_registers(kernel) || kernel->family == TGI_FAMILY_cuda_bf16d;
}

/* Returns 1 if the kernel computes in the precision. */
static int serves(const tgi_kernel *kernel, tg_precision precision)
{
    const tgi_precision_row *row = &tgi_precision_table[precision];
    return row->slice_count > 0 && row->slice == tgi_kernels_factor(kernel) &&
           (!slices_in_registers(kernel) || row->product_count == REGISTER_PRODUCTS);
}

/* Writes the names of the precisions that the kernel computes in: "default, bf16x3 or bf16x6". */
static void list_precisions(const tgi_kernel *kernel, char *text, size_t bytes)
{
    int left = 0;
    size_t length = 0;
    for (int i = 0; i < TGI_PRECISION_COUNT; i++)
        left += serves(kernel, (tg_precision)i);
    for (int i = 0; i < TGI_PRECISION_COUNT && length < bytes; i++) {
        if (!serves(kernel, (tg_precision)i))
            continue;
        left--;
        length +=
            (size_t)snprintf(text + length, bytes - length, "%s%s", tgi_precision_table[i].name,
                             left > 1    ? ", "
                             : left == 1 ? " or "
                                         : "");
    }
}

int tgi_slices_take_precision(const tgi_problem *p, tgi_proposal *proposal)
{
    char names[NAMES_BYTES];
    if (serves(proposal->kernel, p->precision))
        return 1;
    list_precisions(proposal->kernel, names, sizeof names);
    return tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION,
                      "computes fp32 only in precision %s", names);
}

int tgi_slices_can_serve(const tgi_problem *p, tgi_proposal *proposal)
{
    const int is_a_in_registers = tgi_slices_is_a_in_registers(proposal->kernel);
    tgi_operand a;
    tgi_operand_describe(p, 0, is_a_in_registers, p->is_a_offset, &a);
    if (p->precision == TG_PRECISION_DEFAULT && p->k < K_LEAST)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_SHAPE,
                   "keeps the error bound of precision default only from k = %d on; k is %lld",
                   K_LEAST, (ll)p->k);
    else if (p->k > K_MAX)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE, "k is %lld; the limit is %lld",
                   (ll)p->k, (ll)K_MAX);
    else if (is_a_in_registers && a.is_repacked)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_LAYOUT,
                   "reads one operand in lines along k or across k, multiples of %d bytes apart",
                   TGI_TENSOR_UNIT_BYTES);
    else
        return 1;
    return 0;
}

int tgi_slices_may_take_side(const tgi_problem *p, int is_transposed)
{
    const int are_rows_columns = p->is_swapped != is_transposed;
    const int64_t caller_n = p->is_swapped ? p->m : p->n;
    return !p->is_batch_invariant || are_rows_columns == (p->k > INVARIANT_B_ELEMS / caller_n);
}
