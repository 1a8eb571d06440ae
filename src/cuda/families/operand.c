#include "cuda/families/operand.h"

#include <stdlib.h>

#include "cuda/families/gemm.h"

#define UNIT_BYTES 16 /* that the copy engine's addresses are multiples of */
#define REPACKED_PITCH_BYTES 128
#define WORKSPACE_UNIT_BYTES 256
#define BLOCKS_PER_SM 8

static int64_t round_up(int64_t count, int64_t unit)
{
    return tgi_divide_up(count, unit) * unit;
}

int tgi_operand_is_batch_fit(const tgi_operand *o)
{
    const int64_t batch_bytes = o->batch_stride * o->elem_bytes;
    return o->batch_count == 1 || (batch_bytes > 0 && batch_bytes % UNIT_BYTES == 0 &&
                                   batch_bytes < TGI_TENSOR_STRIDE_MAX);
}

/* 1 where the copy engine can read runs of `count` elements, `stride` apart. */
static int is_direct(const tgi_operand *o, int64_t count, int64_t stride, int64_t run_count)
{
    const int64_t pitch_bytes = stride * o->elem_bytes;
    const int is_pitch_fit = run_count == 1 || (pitch_bytes % UNIT_BYTES == 0 && stride >= count &&
                                                pitch_bytes < TGI_TENSOR_STRIDE_MAX);
    return is_pitch_fit && tgi_operand_is_batch_fit(o);
}

tgi_runs tgi_operand_runs(const tgi_operand *o)
{
    return o->is_across ? (tgi_runs){o->k, o->line_count, o->k_stride, o->line_stride}
                        : (tgi_runs){o->line_count, o->k, o->line_stride, o->k_stride};
}

void tgi_operand_describe(const tgi_problem *p, int is_b, int can_be_across, int is_offset,
                          tgi_operand *o)
{
    const tgi_layout *layout = is_b ? &p->b : &p->a;
    o->line_count = is_b ? p->n : p->m;
    o->k = p->k;
    o->line_stride = is_b ? layout->col : layout->row;
    o->k_stride = is_b ? layout->row : layout->col;
    o->batch_stride = layout->batch;
    o->batch_count = layout->batch == 0 ? 1 : p->batch_count;
    o->elem_bytes = tgi_type_bytes(p->type);
    o->is_loose = 0;
    const int has_runs_along = o->k_stride == 1 || o->k == 1;
    const int has_runs_across = o->line_stride == 1 || o->line_count == 1;
    if (!is_offset && has_runs_along && is_direct(o, o->k, o->line_stride, o->line_count)) {
        o->is_across = o->is_repacked = 0;
    } else if (!is_offset && can_be_across && has_runs_across &&
               is_direct(o, o->line_count, o->k_stride, o->k)) {
        o->is_across = 1;
        o->is_repacked = 0;
    } else {
        o->is_repacked = 1;
        o->is_across = can_be_across && llabs(o->line_stride) < llabs(o->k_stride);
    }
    const tgi_runs runs = tgi_operand_runs(o);
    const int64_t run_bytes = runs.length * o->elem_bytes;
    /* Of a single run any pitch will do. */
    o->pitch_bytes = o->is_repacked    ? round_up(run_bytes, REPACKED_PITCH_BYTES)
                     : runs.count == 1 ? round_up(run_bytes, UNIT_BYTES)
                                       : runs.stride * o->elem_bytes;
    o->batch_bytes = o->is_repacked || o->batch_count == 1 ? o->pitch_bytes * runs.count
                                                           : o->batch_stride * o->elem_bytes;
}

int64_t tgi_operand_workspace_bytes(const tgi_operand *o)
{
    return o->is_repacked ? round_up(o->batch_bytes * o->batch_count, WORKSPACE_UNIT_BYTES) : 0;
}

/* 1 where runs of contiguous elements are moved as such. Not where they overlap: only before the
 * lowest one's first byte the kernel takes care to read nothing. */
static int is_in_lines(const tgi_operand *o)
{
    const tgi_runs runs = tgi_operand_runs(o);
    return runs.along == 1 && (runs.count == 1 || llabs(runs.stride) >= runs.length);
}

void tgi_operand_set_job(const tgi_operand *o, const void *source, void *target,
                         tgi_repack_job *job)
{
    job->source = source;
    job->target = target;
    const tgi_runs runs = tgi_operand_runs(o);
    job->line_count = runs.count;
    job->elem_count = runs.length;
    job->line_stride = runs.stride;
    job->elem_stride = runs.along;
    job->batch_count = o->batch_count;
    job->batch_stride = o->batch_stride;
    job->pitch_bytes = o->pitch_bytes;
    job->is_in_lines = is_in_lines(o);
    const int64_t lines = job->is_in_lines ? TGI_REPACK_PIECE_LINES : TGI_REPACK_TILE;
    const int64_t elems =
        job->is_in_lines ? TGI_REPACK_PIECE_BYTES / o->elem_bytes : TGI_REPACK_TILE;
    job->piece_count = job->batch_count * tgi_divide_up(job->line_count, lines) *
                       tgi_divide_up(job->elem_count, elems);
}

tg_status tgi_operand_repack(const tgi_cuda_queue *queue, int sm_count, const tgi_repack_args *args,
                             int64_t elem_bytes)
{
    const char *symbol = elem_bytes == 1   ? "tgi_repack_1"
                         : elem_bytes == 2 ? "tgi_repack_2"
                                           : "tgi_repack_4";
    const int64_t warps = TGI_REPACK_THREADS / 32;
    int64_t line_pieces = 0, block_count = 0;
    for (int i = 0; i < 2; i++) {
        const tgi_repack_job *job = &args->job[i];
        line_pieces += job->is_in_lines ? job->piece_count : 0;
        if (!job->is_in_lines && job->piece_count > block_count)
            block_count = job->piece_count;
    }
    if (tgi_divide_up(line_pieces, warps) > block_count)
        block_count = tgi_divide_up(line_pieces, warps);
    const int64_t limit = (int64_t)sm_count * BLOCKS_PER_SM;
    const tgi_cuda_launch launch = {
        .grid = {(unsigned)(block_count < limit ? block_count : limit), 1, 1},
        .block = {TGI_REPACK_THREADS, 1, 1},
        .is_early = 1};
    void *arguments[] = {(void *)args};
    return tgi_cuda_run(queue, "repack", symbol, &launch, arguments);
}
