#include "cuda/slices.h"

#include "cuda/gemm.h"
#include "cuda/operand.h"

#define BLOCKS_PER_SM 8
#define SEGMENTS_MAX 64 /* each has a range of every block, which tiles read */
#define UNIT_BYTES 16
#define GROUP_ELEMS (TGI_GROUP_BYTES / 2)

int tgi_slices_count(tg_precision precision)
{
    return precision == TG_PRECISION_BF16X3 || precision == TG_PRECISION_FP16X3 ? 2 : 3;
}

int tgi_slices_count_products(tg_precision precision)
{
    return tgi_slices_count(precision) == 2 ? 3 : precision == TG_PRECISION_BF16X9 ? 9 : 6;
}

static int64_t round_up(int64_t count, int64_t unit)
{
    return tgi_divide_up(count, unit) * unit;
}

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
    return job->batch_count * job->chunk_count * tgi_slices_count(precision) *
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

int64_t tgi_slices_workspace_bytes(const tgi_slice_job *job, tg_precision precision)
{
    const int64_t scale_bytes = round_up(job->batch_count * job->line_count * 4, 256);
    return round_up(count_slice_bytes(job, precision), 256) + count_range_bytes(job) +
           (precision == TG_PRECISION_FP16X3 ? count_largest_bytes(job) + scale_bytes : 0);
}

void tgi_slices_place(const tg_precision precision, const void *source, char *memory,
                      tgi_slice_job *job)
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

tg_status tgi_slices_make(const tgi_cuda_queue *queue, int sm_count, tg_precision precision,
                          tgi_slice_args *args)
{
    const int is_scaled = precision == TG_PRECISION_FP16X3;
    const int64_t count = count_pieces(&args->job[0]) + count_pieces(&args->job[1]);
    const int64_t limit = (int64_t)sm_count * BLOCKS_PER_SM;
    const tgi_cuda_launch launch = {.grid = {(unsigned)(count < limit ? count : limit), 1, 1},
                                    .block = {TGI_SLICE_THREADS, 1, 1}};
    void *arguments[] = {args};
    args->slice_count = tgi_slices_count(precision);
    tg_status status = TG_STATUS_OK;
    if (is_scaled)
        status = tgi_cuda_run(queue, "slices", "tgi_find_line_largest", &launch, arguments);
    return status ? status
                  : tgi_cuda_run(queue, "slices", is_scaled ? "tgi_slice_fp16" : "tgi_slice_bf16",
                                 &launch, arguments);
}

tg_status tgi_slices_encode(const tgi_cuda_queue *queue, const tgi_slice_job *job, int slice_count,
                            int lines, tgi_tensor_map *map)
{
    const int64_t groups = tgi_divide_up(job->line_count, TGI_GROUP_LINES);
    const int64_t count[3] = {GROUP_ELEMS, groups,
                              job->batch_count * job->chunk_count * slice_count};
    const int64_t stride_bytes[2] = {TGI_GROUP_BYTES, groups * TGI_GROUP_BYTES};
    const int box[2] = {GROUP_ELEMS, lines / TGI_GROUP_LINES};
    return tgi_operand_encode(queue, map, job->slices, 2, count, stride_bytes, box, 0);
}
