#include "cuda/families/repack_launch.h"

#include <stdio.h>

#include "core/checked.h"

#define BLOCKS_PER_SM 8

void tgi_repack_add(const tgi_operand *o, tgi_repack_job *job)
{
    const tgi_runs runs = tgi_operand_runs(o);
    job->line_count = runs.count;
    job->elem_count = runs.length;
    job->line_stride = runs.stride;
    job->elem_stride = runs.along;
    job->batch_count = o->batch_count;
    job->batch_stride = o->batch_stride;
    job->pitch_bytes = o->pitch_bytes;
    job->copy_line_count = o->is_across ? o->copy_k : runs.count;
    job->copy_bytes = tgi_round_up((o->is_across ? runs.length : o->copy_k) * o->elem_bytes,
                                   TGI_REPACK_UNIT_BYTES);
    job->is_in_lines = runs.along == 1;
    const int64_t lines = job->is_in_lines ? TGI_REPACK_TASK_LINES : TGI_REPACK_TILE;
    const int64_t bytes =
        job->is_in_lines ? TGI_REPACK_TASK_BYTES : TGI_REPACK_TILE * o->elem_bytes;
    job->task_count = job->batch_count * tgi_divide_up(job->copy_line_count, lines) *
                      tgi_divide_up(job->copy_bytes, bytes);
}

void tgi_repack_prepare(int sm_count, int64_t elem_bytes, tgi_repack_prepared *prepared)
{
    const int64_t warps = TGI_REPACK_THREADS / 32, limit = (int64_t)sm_count * BLOCKS_PER_SM;
    int64_t line_tasks = 0, block_count = 0;
    for (int i = 0; i < 2; i++) {
        const tgi_repack_job *job = &prepared->args.job[i];
        line_tasks += job->is_in_lines ? job->task_count : 0;
        if (!job->is_in_lines && job->task_count > block_count)
            block_count = job->task_count;
    }
    if (tgi_divide_up(line_tasks, warps) > block_count)
        block_count = tgi_divide_up(line_tasks, warps);
    prepared->kernel =
        (tgi_cuda_kernel){.image = "repack",
                          .grid = {(unsigned)(block_count < limit ? block_count : limit), 1, 1},
                          .block = {TGI_REPACK_THREADS, 1, 1},
                          .is_early = 1};
    snprintf(prepared->kernel.symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_repack_%d", (int)elem_bytes);
}

tg_status tgi_repack_launch(const tgi_cuda_queue *queue, tgi_repack_prepared *prepared,
                            const void *const source[2], void *const target[2])
{
    tgi_repack_args args = prepared->args;
    for (int i = 0; i < 2; i++) {
        args.job[i].source = source[i];
        args.job[i].target = target[i];
    }
    return tgi_cuda_run(queue, &prepared->kernel, &args, sizeof args);
}
