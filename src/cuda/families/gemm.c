/* Arguments of the production kernels, and the kernel that adds parts of k. */
#include "cuda/families/gemm.h"

#include <stdlib.h>

#include "kernels/tile_shape.h"

#define VECTOR_BYTES 16
#define BLOCK_SHARED_BYTES 1024 /* that the system takes of each block */
#define PARTS_MAX 1024

/* Of the accumulator. */
static int64_t count_sum_bytes(const tgi_problem *p)
{
    return p->type == TG_TYPE_FP64 ? 8 : 4;
}

static int is_along_k(const tgi_layout *layout, int64_t k_stride, int64_t line_count)
{
    int64_t across = k_stride == layout->col ? layout->row : layout->col;
    return line_count == 1 || llabs(k_stride) <= llabs(across);
}

/* 1 where lines of contiguous elements, `across` apart, allow accesses of 16 bytes. */
static int has_vectors(const tgi_problem *p, tg_type type, const tgi_layout *layout, int64_t along,
                       int64_t across, int64_t line_count)
{
    const int64_t elems = VECTOR_BYTES / tgi_type_bytes(type);
    return along == 1 && (line_count == 1 || across % elems == 0) &&
           (p->batch_count == 1 || layout->batch % elems == 0);
}

static int has_a_vectors(const tgi_problem *p, int along_k)
{
    return along_k ? has_vectors(p, p->type, &p->a, p->a.col, p->a.row, p->m)
                   : has_vectors(p, p->type, &p->a, p->a.row, p->a.col, p->k);
}

static int has_b_vectors(const tgi_problem *p, int along_k)
{
    return along_k ? has_vectors(p, p->type, &p->b, p->b.row, p->b.col, p->n)
                   : has_vectors(p, p->type, &p->b, p->b.col, p->b.row, p->k);
}

tgi_access tgi_gemm_find_b_access(const tgi_problem *p)
{
    return has_b_vectors(p, is_along_k(&p->b, p->b.row, p->n)) ? TGI_ACCESS_VECTORS
                                                               : TGI_ACCESS_ELEMENTS;
}

tgi_access tgi_gemm_find_access(const tgi_problem *p)
{
    return has_a_vectors(p, is_along_k(&p->a, p->a.col, p->m)) ? tgi_gemm_find_b_access(p)
                                                               : TGI_ACCESS_ELEMENTS;
}

static int32_t count_elems(tg_type type, const void *data, int is_vector)
{
    return is_vector && (uintptr_t)data % VECTOR_BYTES == 0
               ? (int32_t)(VECTOR_BYTES / tgi_type_bytes(type))
               : 1;
}

static void set_access(tgi_gemm_args *args)
{
    const tgi_problem *p = &args->problem;
    args->a_along_k = is_along_k(&p->a, p->a.col, p->m);
    args->b_along_k = is_along_k(&p->b, p->b.row, p->n);
    args->a_vector_elems = count_elems(p->type, args->a, has_a_vectors(p, args->a_along_k));
    args->b_vector_elems = count_elems(p->type, args->b, has_b_vectors(p, args->b_along_k));
    args->d_vector_elems =
        count_elems(p->d_type, args->d, has_vectors(p, p->d_type, &p->d, p->d.col, p->d.row, p->m));
    args->is_sum_alone = tgi_problem_is_sum_alone(p);
    args->is_plain = args->is_sum_alone && tgi_type_bytes(p->d_type) == count_sum_bytes(p);
    args->k_part_elems = p->k;
    args->k_part_count = 1;
    args->tile_rows_per_group = 8;
}

void tgi_gemm_set_args(const tgi_call *call, tgi_gemm_args *args)
{
    *args = (tgi_gemm_args){.problem = *call->problem,
                            .a = call->a,
                            .b = call->b,
                            .c = call->c,
                            .bias = call->bias,
                            .a_scale = call->a_scale,
                            .b_scale = call->b_scale,
                            .d_scale = call->d_scale,
                            .d = call->d,
                            .workspace = call->workspace};
    set_access(args);
}

void tgi_gemm_set_transposed_args(const tgi_call *call, tgi_gemm_args *args)
{
    tgi_gemm_set_args(call, args);
    tgi_problem_transpose(&args->problem);
    args->a = call->b;
    args->b = call->a;
    args->a_scale = call->b_scale;
    args->b_scale = call->a_scale;
    set_access(args);
}

void tgi_gemm_replace_a(tgi_gemm_args *args, const void *data, tgi_layout layout)
{
    args->problem.a = layout;
    args->problem.is_a_offset = 0;
    args->a = data;
    set_access(args);
}

int64_t tgi_gemm_part_bytes(const tgi_problem *p, int64_t k_part_count)
{
    return k_part_count > 1 ? p->batch_count * p->m * p->n * k_part_count * count_sum_bytes(p) : 0;
}

int tgi_gemm_try_parts(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_work *whole,
                       tgi_gemm_predict *predict, int64_t wanted, tgi_proposal *proposal)
{
    const int64_t depth = proposal->kernel->tile_depth, steps = tgi_divide_up(p->k, depth);
    const int64_t part_steps = tgi_divide_up(steps, wanted);
    const int64_t part_count = tgi_divide_up(steps, part_steps);
    tgi_tile_work work = *whole;
    work.block_count *= (double)part_count;
    work.block_k = part_count > 1 ? (double)(part_steps * depth) : (double)p->k;
    work.part_count = (double)part_count;
    if (tgi_gemm_part_bytes(p, part_count) > TGI_WORKSPACE_BYTES_MAX)
        return 0;
    double seconds = predict(&machine->gpu, proposal->kernel, p, &work);
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return 1;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->workspace_bytes = tgi_gemm_part_bytes(p, part_count);
    proposal->blocking.kc = part_count > 1 ? part_steps * depth : p->k;
    proposal->blocking.k_parts = part_count;
    return 1;
}

void tgi_gemm_cut_k(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_work *whole,
                    tgi_gemm_predict *predict, tgi_proposal *proposal)
{
    const int64_t steps = tgi_divide_up(p->k, proposal->kernel->tile_depth);
    proposal->resident_blocks = whole->blocks_per_sm;
    const int64_t most = p->is_batch_invariant ? 1 : steps < PARTS_MAX ? steps : PARTS_MAX;
    for (int64_t wanted = 1; wanted <= most; wanted *= 2)
        if (!tgi_gemm_try_parts(machine, p, whole, predict, wanted, proposal))
            break;
}

void tgi_gemm_set_parts(const tgi_call *call, tgi_gemm_args *args)
{
    args->k_part_elems = call->blocking->kc;
    args->k_part_count = (int32_t)call->blocking->k_parts;
}

int tgi_gemm_fits(const tgi_machine *machine, int64_t shared_bytes, tgi_proposal *proposal)
{
    proposal->shared_bytes = shared_bytes;
    if (shared_bytes <= machine->gpu.shared_bytes_per_block)
        return 1;
    tgi_refuse(&proposal->refusal, TG_REFUSAL_SHARED_MEMORY,
               "a block needs %lld bytes of shared memory; this GPU has %lld",
               (long long)shared_bytes, (long long)machine->gpu.shared_bytes_per_block);
    return 0;
}

int tgi_gemm_count_resident(const tgi_machine *machine, int by_registers, int64_t shared_bytes)
{
    const int64_t by_shared =
        machine->gpu.shared_bytes_per_sm / (shared_bytes + BLOCK_SHARED_BYTES);
    const int64_t count = by_registers < by_shared ? by_registers : by_shared;
    return count > 1 ? (int)count : 1;
}

tg_status tgi_gemm_add_parts(const tgi_cuda_queue *queue, tgi_gemm_args *args)
{
    const tgi_problem *p = &args->problem;
    if (args->k_part_count == 1)
        return TG_STATUS_OK;
    const char *symbol = p->type == TG_TYPE_FP64 ? "tgi_add_parts_fp64" : "tgi_add_parts_fp32";
    const unsigned row_count = args->k_part_count <= 8 ? 4 : TGI_PART_ROWS_MAX;
    const int64_t block_elems = TGI_PART_COLS * VECTOR_BYTES / count_sum_bytes(p);
    const int64_t batches =
        p->batch_count < TGI_GRID_HEIGHT_MAX ? p->batch_count : TGI_GRID_HEIGHT_MAX;
    const tgi_cuda_launch launch = {
        .grid = {(unsigned)tgi_divide_up(p->m * p->n, block_elems), (unsigned)batches, 1},
        .block = {TGI_PART_COLS, row_count, 1},
        .is_early = 1};
    void *arguments[] = {args};
    return tgi_cuda_run(queue, "parts", symbol, &launch, arguments);
}
