#include "cuda/families/slices.h"

#include <string.h>

#include "cuda/families/gemm.h"
#include "cuda/families/operand.h"

#define BLOCKS_PER_SM 8
#define SEGMENTS_MAX 64 /* each has a range of every block, which tiles read */
#define UNIT_BYTES 16   /* that addresses of the copy engine are multiples of */
#define GROUP_ELEMS (TGI_GROUP_BYTES / 2)
#define K_LEAST 64 /* from which on sums by slices keep the bound of precision default */
#define K_MAX ((int64_t)1 << 30)

typedef long long ll; /* for printf */

/* Slices of each operand, and products of them, that a precision takes. */
static int count_slices(tg_precision precision)
{
    return precision == TG_PRECISION_BF16X3 || precision == TG_PRECISION_FP16X3 ? 2 : 3;
}

static int count_products(tg_precision precision)
{
    return count_slices(precision) == 2 ? 3 : precision == TG_PRECISION_BF16X9 ? 9 : 6;
}

static int64_t round_up(int64_t count, int64_t unit)
{
    return tgi_divide_up(count, unit) * unit;
}

/* How A, or B where is_b is 1, is cut; pointers are NULL. `sm_count` blocks should find work. */
static void describe(const tgi_problem *p, int is_b, int sm_count, tgi_slice_job *job)
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
    return job->batch_count * job->chunk_count * count_slices(precision) *
           tgi_divide_up(job->line_count, TGI_GROUP_LINES) * TGI_GROUP_BYTES;
}

static int64_t count_range_bytes(const tgi_slice_job *job)
{
    return round_up(
        job->batch_count * job->block_count * job->segment_count * (int64_t)sizeof(tgi_range), 256);
}

/* The largest of each line's segments, and its scale. */
static int64_t count_largest_bytes(const tgi_slice_job *job)
{
    return round_up(job->batch_count * job->line_count * job->segment_count * 4, 256);
}

static int64_t count_job_bytes(const tgi_slice_job *job, tg_precision precision)
{
    const int64_t scale_bytes = round_up(job->batch_count * job->line_count * 4, 256);
    return round_up(count_slice_bytes(job, precision), 256) + count_range_bytes(job) +
           (precision == TG_PRECISION_FP16X3 ? count_largest_bytes(job) + scale_bytes : 0);
}

int tgi_slices_are_held(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_bf16r;
}

/* Ranges that the kernel finds of rows it cuts itself, for tiles that are cut. */
static int64_t count_held_bytes(const tgi_slice_job *job, int64_t k_part_count)
{
    const int64_t blocks = tgi_divide_up(job->line_count, TGI_HELD_LINES) * job->batch_count;
    return round_up(blocks * k_part_count * (int64_t)sizeof(tgi_range), 256);
}

/* Sums of runs of k, a tile for each block. */
static int64_t count_run_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                               const tgi_problem *p)
{
    const int64_t tile_bytes = (int64_t)kernel->tile_rows * kernel->tile_cols * 4;
    return p->k > TGI_RUN_CHUNKS * TGI_CHUNK_ELEMS ? machine->gpu.sm_count * tile_bytes : 0;
}

int64_t tgi_slices_workspace_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *p, int64_t k_part_count)
{
    tgi_slice_job a, b;
    describe(p, 0, machine->gpu.sm_count, &a);
    describe(p, 1, machine->gpu.sm_count, &b);
    return count_run_bytes(machine, kernel, p) + count_job_bytes(&b, p->precision) +
           (tgi_slices_are_held(kernel) ? count_held_bytes(&a, k_part_count)
                                        : count_job_bytes(&a, p->precision));
}

int tgi_slices_take_precision(const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_family family = proposal->kernel->family;
    const tg_precision precision = p->precision;
    const char *names = "fp16x3";
    int takes = precision == TG_PRECISION_FP16X3;
    if (family == TGI_FAMILY_cuda_bf16x) {
        names = "default, bf16x3, bf16x6 or bf16x9";
        takes = precision == TG_PRECISION_DEFAULT ||
                (precision >= TG_PRECISION_BF16X3 && precision <= TG_PRECISION_BF16X9);
    } else if (family == TGI_FAMILY_cuda_bf16r) {
        names = "default or bf16x6";
        takes = precision == TG_PRECISION_DEFAULT || precision == TG_PRECISION_BF16X6;
    }
    if (!takes)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION, "computes fp32 in precision %s alone",
                   names);
    return takes;
}

int tgi_slices_can_serve(const tgi_problem *p, tgi_proposal *proposal)
{
    const int is_held = tgi_slices_are_held(proposal->kernel);
    tgi_operand a;
    tgi_operand_describe(p, 0, 0, p->is_a_offset, &a);
    if (p->precision == TG_PRECISION_DEFAULT && p->k < K_LEAST)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_SHAPE,
                   "keeps the bound of default from k = %d on, k is %lld", K_LEAST, (ll)p->k);
    else if (p->k > K_MAX)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE, "k is %lld, at most %lld", (ll)p->k,
                   (ll)K_MAX);
    else if (is_held && p->is_batch_invariant)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_BATCH_INVARIANT,
                   "sums no batch-invariant products");
    else if (is_held && a.is_repacked)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_LAYOUT,
                   "reads one operand along k, in lines that are multiples of %d bytes apart",
                   UNIT_BYTES);
    else
        return 1;
    return 0;
}

/* Gives the job its operand and its places in `memory`. */
static void place(tg_precision precision, const void *source, char *memory, tgi_slice_job *job)
{
    job->source = source;
    job->has_vectors = job->k_stride == 1 && (uintptr_t)source % UNIT_BYTES == 0 &&
                       (job->line_count == 1 || job->line_stride % 4 == 0) &&
                       (job->batch_count == 1 || job->batch_stride % 4 == 0);
    job->slices = memory;
    memory += round_up(count_slice_bytes(job, precision), 256);
    job->ranges = (tgi_range *)(void *)memory;
    memory += count_range_bytes(job);
    if (precision == TG_PRECISION_FP16X3) {
        job->line_largest = (uint32_t *)(void *)memory;
        job->line_scale = (float *)(void *)(memory + count_largest_bytes(job));
    }
}

static int64_t count_pieces(const tgi_slice_job *job)
{
    return job->batch_count * job->block_count * job->segment_count;
}

/* Puts the kernels that make the slices into the queue. */
static tg_status make(const tgi_cuda_queue *queue, int sm_count, tg_precision precision,
                      tgi_slice_args *args)
{
    const int is_scaled = precision == TG_PRECISION_FP16X3;
    const int64_t count = count_pieces(&args->job[0]) + count_pieces(&args->job[1]);
    const int64_t limit = (int64_t)sm_count * BLOCKS_PER_SM;
    const tgi_cuda_launch launch = {.grid = {(unsigned)(count < limit ? count : limit), 1, 1},
                                    .block = {TGI_SLICE_THREADS, 1, 1},
                                    .is_early = 1};
    void *arguments[] = {args};
    args->slice_count = count_slices(precision);
    tg_status status = TG_STATUS_OK;
    if (is_scaled)
        status = tgi_cuda_run(queue, "slices", "tgi_find_line_largest", &launch, arguments);
    return status ? status
                  : tgi_cuda_run(queue, "slices", is_scaled ? "tgi_slice_fp16" : "tgi_slice_bf16",
                                 &launch, arguments);
}

/* The maps of the slices: boxes of whole groups of lines, of one slice and chunk. */
static tg_status encode(const tgi_cuda_queue *queue, const tgi_slice_job *job, int slice_count,
                        tgi_wgmma_operand *operand)
{
    const int64_t groups = tgi_divide_up(job->line_count, TGI_GROUP_LINES);
    const tgi_tensor tensor = {
        .data = job->slices,
        .elem_bytes = 2,
        .count = {GROUP_ELEMS, groups, job->batch_count * job->chunk_count * slice_count},
        .stride_bytes = {TGI_GROUP_BYTES, groups * TGI_GROUP_BYTES}};
    return tgi_tensor_encode_operand(queue, &tensor, GROUP_ELEMS, TGI_GROUP_LINES, operand);
}

/* The maps of rows that the kernel cuts itself. */
static tg_status encode_held(const tgi_cuda_queue *queue, const tgi_problem *p, const void *data,
                             tgi_wgmma_operand *operand)
{
    tgi_operand o;
    tgi_operand_describe(p, 0, 0, 0, &o);
    const tgi_tensor tensor = {.data = data,
                               .elem_bytes = o.elem_bytes,
                               .count = {o.k, o.line_count, o.batch_count},
                               .stride_bytes = {o.pitch_bytes, o.batch_bytes},
                               .is_swizzled = 1};
    return tgi_tensor_encode_operand(queue, &tensor, TGI_CHUNK_ELEMS, 1, operand);
}

/* Fills what `args` says of A, or B where i is 1, in the workspace from *memory on, which moves
 * behind it, and the job that makes its slices. */
static tg_status set_operand(const tgi_cuda_queue *queue, const tgi_call *call, int i,
                             char **memory, tgi_wgmma_args *args, tgi_slice_job *job)
{
    const tgi_problem *p = &args->gemm.problem;
    const void *data = i ? args->gemm.b : args->gemm.a;
    tgi_wgmma_operand *mapped = i ? &args->b : &args->a;
    tgi_wgmma_slices *slices = i ? &args->b_slices : &args->a_slices;
    describe(p, i, call->machine->gpu.sm_count, job);
    mapped->has_batch = job->batch_count > 1;
    if (i == 0 && tgi_slices_are_held(call->kernel)) {
        *slices = (tgi_wgmma_slices){.ranges = (tgi_range *)(void *)*memory,
                                     .block_lines = TGI_HELD_LINES,
                                     .block_count =
                                         (int32_t)tgi_divide_up(job->line_count, TGI_HELD_LINES),
                                     .segment_count = args->gemm.k_part_count};
        *memory += count_held_bytes(job, args->gemm.k_part_count);
        job->batch_count = 0; /* there is nothing to do */
        return encode_held(queue, p, data, mapped);
    }
    place(p->precision, data, *memory, job);
    *memory += count_job_bytes(job, p->precision);
    *slices = (tgi_wgmma_slices){.ranges = job->ranges,
                                 .line_scale = job->line_scale,
                                 .block_lines = TGI_RANGE_LINES,
                                 .block_count = job->block_count,
                                 .segment_count = job->segment_count};
    return encode(queue, job, args->slice_count, mapped);
}

tg_status tgi_slices_map(const tgi_cuda_queue *queue, const tgi_call *call, char *memory,
                         tgi_wgmma_args *args)
{
    const tgi_problem *p = &args->gemm.problem;
    tgi_slice_args slices;
    memset(&slices, 0, sizeof slices);
    args->slice_count = count_slices(p->precision);
    args->first_product = TGI_SLICE_PRODUCTS - count_products(p->precision);
    args->run_sums = memory;
    memory += count_run_bytes(call->machine, call->kernel, p);
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = set_operand(queue, call, i, &memory, args, &slices.job[i]);
    return status ? status : make(queue, call->machine->gpu.sm_count, p->precision, &slices);
}
