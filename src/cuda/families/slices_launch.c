#include "cuda/families/slices_launch.h"

#include <string.h>

#include "core/checked.h"
#include "cuda/families/operand.h"

#define BLOCKS_PER_SM 8
#define GROUP_ELEMS (TGI_GROUP_BYTES / 2)

/* Returns 1 if the strides allow reads of 16 bytes along k. */
static int has_vectors(const tgi_slice_job *job)
{
    return job->k_stride == 1 && (job->line_count == 1 || job->line_stride % 4 == 0) &&
           (job->batch_count == 1 || job->batch_stride % 4 == 0);
}

static int64_t count_tasks(const tgi_slice_job *job)
{
    return job->batch_count * job->block_count * job->segment_count;
}

/* Returns the tensor of the slices. A TMA box holds whole groups of lines of one slice and
 * chunk. */
static tgi_tensor find_tensor(const tgi_slice_job *job, int slice_count)
{
    const int64_t groups = tgi_divide_up(job->line_count, TGI_GROUP_LINES);
    return (tgi_tensor){
        .elem_bytes = 2,
        .count = {GROUP_ELEMS, groups, job->batch_count * job->chunk_count * slice_count},
        .stride_bytes = {TGI_GROUP_BYTES, groups * TGI_GROUP_BYTES},
        .tma_box_elems = GROUP_ELEMS};
}

/* Returns the tensor of the rows of A that the kernel slices in registers. */
static tgi_tensor find_register_tensor(const tgi_problem *p)
{
    tgi_operand o;
    tgi_operand_describe(p, 0, 1, 0, &o);
    return (tgi_tensor){.elem_bytes = o.elem_bytes,
                        .count = {o.is_across ? o.line_count : o.k,
                                  o.is_across ? o.k : o.line_count, o.batch_count},
                        .stride_bytes = {o.pitch_bytes, o.batch_bytes},
                        .tma_box_elems = TGI_CHUNK_ELEMS,
                        .is_swizzled = 1};
}

/* Fills the facts of A, or of B if i is 1, and the job that makes its slices. */
static void prepare_operand(const tgi_machine *machine, const tgi_problem *p, int i,
                            int split_count, tgi_slices_prepared *prepared, tgi_tensor *tensor)
{
    tgi_slice_job *job = &prepared->args.job[i];
    tgi_slice_ranges *ranges = &prepared->facts.ranges[i];
    tgi_slices_describe(p, i, machine->gpu.sm_count, job);
    prepared->facts.has_batch[i] = job->batch_count > 1;
    if (i == 0 && prepared->is_a_in_registers) {
        ranges->block_lines = TGI_REGISTER_ROWS;
        ranges->block_count = (int32_t)tgi_divide_up(job->line_count, TGI_REGISTER_ROWS);
        ranges->segment_count = split_count;
        *tensor = find_register_tensor(p);
        job->batch_count = 0; /* the job has no work */
        return;
    }
    ranges->block_lines = TGI_RANGE_LINES;
    ranges->block_count = job->block_count;
    ranges->segment_count = job->segment_count;
    job->has_vectors = has_vectors(job);
    *tensor = find_tensor(job, prepared->facts.slice_count);
}

void tgi_slices_prepare(const tgi_machine *machine, const tgi_kernel *kernel, const tgi_problem *p,
                        int split_count, int64_t offset, tgi_tensor tensor[2],
                        tgi_slices_prepared *prepared)
{
    const tgi_precision_row *precision = &tgi_precision_table[p->precision];
    tgi_slice_job *job = prepared->args.job;
    prepared->is_a_in_registers = tgi_slices_is_a_in_registers(kernel);
    prepared->is_scaled = tgi_slices_are_scaled(p->precision);
    prepared->args.slice_count = prepared->facts.slice_count = precision->slice_count;
    prepared->facts.first_product = TGI_SLICE_PRODUCTS - precision->product_count;
    for (int i = 0; i < 2; i++)
        prepare_operand(machine, p, i, split_count, prepared, &tensor[i]);
    tgi_slices_place(machine, kernel, p, split_count, prepared->places);
    prepared->run_sums = offset;
    for (int i = 0; i < 2; i++) {
        tgi_slice_places *places = &prepared->places[i];
        places->slices += offset;
        places->ranges += offset;
        places->line_largest += offset;
        places->line_scale += offset;
    }
    const int64_t count = count_tasks(&job[0]) + count_tasks(&job[1]);
    const int64_t limit = (int64_t)machine->gpu.sm_count * BLOCKS_PER_SM;
    prepared->make_slices =
        (tgi_cuda_kernel){.image = "slices",
                          .grid = {(unsigned)(count < limit ? count : limit), 1, 1},
                          .block = {TGI_SLICE_THREADS, 1, 1},
                          .is_early = 1};
    prepared->find_largest = prepared->make_slices;
    strcpy(prepared->find_largest.symbol, "tgi_find_line_largest");
    strcpy(prepared->make_slices.symbol, prepared->is_scaled ? "tgi_slice_fp16" : "tgi_slice_bf16");
}

/* Sets the pointers of a job: its operand and its results in the workspace. */
static void complete_job(const tgi_slices_prepared *prepared, int i, const void *source,
                         char *workspace, tgi_slice_job *job)
{
    const tgi_slice_places *places = &prepared->places[i];
    job->source = source;
    job->has_vectors = job->has_vectors && tgi_tensor_shift(source) == 0;
    job->slices = workspace + places->slices;
    job->ranges = (tgi_range *)(void *)(workspace + places->ranges);
    if (prepared->is_scaled) {
        job->line_largest = (uint32_t *)(void *)(workspace + places->line_largest);
        job->line_scale = (float *)(void *)(workspace + places->line_scale);
    }
}

tg_status tgi_slices_launch(const tgi_cuda_queue *queue, tgi_slices_prepared *prepared,
                            const void *a, const void *b, char *workspace, const void *base[2])
{
    tgi_slice_args args = prepared->args;
    tg_status status = TG_STATUS_OK;
    base[0] = a;
    if (!prepared->is_a_in_registers) {
        complete_job(prepared, 0, a, workspace, &args.job[0]);
        base[0] = args.job[0].slices;
    }
    complete_job(prepared, 1, b, workspace, &args.job[1]);
    base[1] = args.job[1].slices;
    if (prepared->is_scaled)
        status = tgi_cuda_run(queue, &prepared->find_largest, &args, sizeof args);
    return status ? status : tgi_cuda_run(queue, &prepared->make_slices, &args, sizeof args);
}

tgi_slice_facts tgi_slices_find_facts(const tgi_slices_prepared *prepared, char *workspace)
{
    tgi_slice_facts facts = prepared->facts;
    facts.run_sums = workspace + prepared->run_sums;
    for (int i = 0; i < 2; i++) {
        const tgi_slice_places *places = &prepared->places[i];
        facts.ranges[i].ranges = (tgi_range *)(void *)(workspace + places->ranges);
        if (prepared->is_scaled)
            facts.ranges[i].line_scale =
                (const float *)(const void *)(workspace + places->line_scale);
    }
    return facts;
}
