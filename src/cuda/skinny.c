/*
 * Families rank and dot: D has few rows, or few columns, and then is formed transposed. The grid is
 * as many blocks as run at once; they share out tiles of D, whole or cut along k.
 */
#include <stdio.h>

#include "cuda/gemm.h"
#include "cuda/operand.h"
#include "kernels/tile_shape.h"

/* Fewer steps than these are not worth a block's start. */
#define STEPS_MIN 4

static int is_dot(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_dot;
}

static int count_shared_bytes(const tgi_kernel *kernel)
{
    const int elem_bytes = (int)tgi_type_bytes(kernel->type);
    return TGI_SKINNY_SHARED_BYTES(is_dot(kernel), kernel->tile_rows, kernel->tile_cols,
                                   kernel->tile_depth, kernel->stage_count, kernel->thread_count,
                                   elem_bytes);
}

static int count_blocks_per_sm(const tgi_machine *machine, const tgi_kernel *kernel)
{
    const int shared_bytes = count_shared_bytes(kernel);
    const int most = TGI_SKINNY_BLOCKS_PER_SM(is_dot(kernel), kernel->tile_rows, shared_bytes,
                                              (int)tgi_type_bytes(kernel->type));
    return tgi_gemm_count_resident(machine, most, shared_bytes);
}

/* 1 where the columns are the few. */
static int is_turned(const tgi_problem *p)
{
    return p->n < p->m;
}

/* Tiles and the units that they are cut into; a block has unit_count / block_count of them. */
typedef struct skinny_cut {
    int64_t block_count, unit_elems, part_count;
    int64_t block_steps; /* of the block that has most */
} skinny_cut;

static skinny_cut keep_whole(const tgi_kernel *kernel, const tgi_problem *p, int64_t tile_count,
                             int64_t slot_count)
{
    skinny_cut cut = {.unit_elems = p->k, .part_count = 1};
    cut.block_count = tile_count < slot_count ? tile_count : slot_count;
    cut.block_steps =
        tgi_divide_up(tile_count, cut.block_count) * tgi_divide_up(p->k, kernel->tile_depth);
    return cut;
}

static skinny_cut cut_tiles(const tgi_kernel *kernel, const tgi_problem *p, int64_t tile_count,
                            int64_t slot_count)
{
    const int64_t tile_steps = tgi_divide_up(p->k, kernel->tile_depth);
    const int64_t step_count = tile_count * tile_steps;
    int64_t most = step_count / STEPS_MIN > 1 ? step_count / STEPS_MIN : 1;
    skinny_cut cut = {.unit_elems = kernel->tile_depth};
    cut.block_count = most < slot_count ? most : slot_count;
    cut.block_steps = tgi_divide_up(step_count, cut.block_count);
    cut.part_count = tgi_divide_up(tile_steps - 1, step_count / cut.block_count) + 1;
    if (cut.part_count > tile_steps)
        cut.part_count = tile_steps;
    return cut;
}

/* A, for kernels of narrow types, which read lines along k: in vectors as it lies, or repacked. */
static void describe_a(const tgi_problem *p, tgi_operand *a)
{
    tgi_operand_describe(p, 0, 0, p->is_a_offset, a);
}

/* dot is predicted by strides alone, as its B is. */
static tgi_access find_narrow_a_access(const tgi_kernel *kernel, const tgi_problem *p)
{
    tgi_operand a;
    tgi_operand_describe(p, 0, 0, !is_dot(kernel) && p->is_a_offset, &a);
    return !a.is_repacked  ? TGI_ACCESS_VECTORS
           : p->a.col == 1 ? TGI_ACCESS_SHIFTED
                           : TGI_ACCESS_ELEMENTS;
}

/* Narrow types need lines without gaps, wherever they begin; of wider ones those are read element
 * by element, and others a sector for each. */
static void set_access(const tgi_kernel *kernel, const tgi_problem *p, tgi_tile_work *work)
{
    const int along_k = p->n == 1 || p->b.row == 1, is_along = along_k == is_dot(kernel);
    const int has_lines = (is_dot(kernel) ? p->b.row : p->b.col) == 1;
    if (tgi_type_bytes(p->type) >= 4) {
        work->access = is_along && tgi_gemm_find_access(p) == TGI_ACCESS_VECTORS
                           ? TGI_ACCESS_VECTORS
                       : has_lines ? TGI_ACCESS_ELEMENTS
                                   : TGI_ACCESS_STRIDED;
        return;
    }
    work->a_access = find_narrow_a_access(kernel, p);
    work->access = is_along && tgi_gemm_find_b_access(p) == TGI_ACCESS_VECTORS ? TGI_ACCESS_VECTORS
                   : has_lines                                                 ? TGI_ACCESS_SHIFTED
                               : TGI_ACCESS_ELEMENTS;
    if (is_dot(kernel) && work->a_access > work->access)
        work->access = work->a_access;
}

/* Of A's copy in the workspace: behind the sums of the parts of k. */
static int64_t find_a_place(const tgi_problem *p, int64_t part_count)
{
    return tgi_divide_up(tgi_gemm_part_bytes(p, part_count), 256) * 256;
}

static tgi_layout find_repacked_layout(const tgi_operand *a)
{
    return (tgi_layout){.row = a->pitch_bytes / a->elem_bytes,
                        .col = 1,
                        .batch = a->batch_count == 1 ? 0 : a->batch_bytes / a->elem_bytes};
}

static double predict(const tgi_machine *machine, const tgi_kernel *kernel, const tgi_problem *p,
                      const skinny_cut *cut)
{
    tgi_tile_work work = {.block_count = (double)cut->block_count,
                          .block_k = (double)cut->block_steps * kernel->tile_depth,
                          .part_count = (double)cut->part_count,
                          .blocks_per_sm = count_blocks_per_sm(machine, kernel)};
    set_access(kernel, p, &work);
    return tgi_model_skinny_seconds(&machine->gpu, kernel, p, &work);
}

/* Refuses, with the reason, what the kernel does not compute. */
static int takes(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal))
        return 0;
    if (p->m <= kernel->tile_rows &&
        (p->precision != TG_PRECISION_IEEE_FP32 || p->type == TG_TYPE_FP32))
        return 1;
    if (p->m <= kernel->tile_rows)
        snprintf(proposal->reason, sizeof proposal->reason,
                 "matrix instructions do not round every sum as ieee_fp32 asks");
    else
        snprintf(proposal->reason, sizeof proposal->reason,
                 "D's shorter side is %lld; this kernel takes at most %d", (long long)p->m,
                 kernel->tile_rows);
    return 0;
}

/* Proposes the better cut where it is predicted to be faster than what was proposed before;
 * a_bytes: of A, which is to be repacked; 0: it is not. */
static void propose_cut(const tgi_machine *machine, const tgi_problem *p, int64_t a_bytes,
                        tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t tile_count = tgi_divide_up(p->n, kernel->tile_cols) * p->batch_count;
    const int64_t slot_count =
        (int64_t)machine->gpu.sm_count * count_blocks_per_sm(machine, kernel);
    skinny_cut best = keep_whole(kernel, p, tile_count, slot_count);
    double best_s = predict(machine, kernel, p, &best);
    skinny_cut cut = cut_tiles(kernel, p, tile_count, slot_count);
    double cut_s = predict(machine, kernel, p, &cut);
    if (cut_s < best_s && tgi_gemm_part_bytes(p, cut.part_count) <= TGI_WORKSPACE_BYTES_MAX) {
        best = cut;
        best_s = cut_s;
    }
    best_s += tgi_model_repack_seconds(&machine->gpu, (double)a_bytes);
    if (proposal->is_legal && best_s >= proposal->predicted_s)
        return;
    proposal->is_legal = 1;
    proposal->resident_blocks = count_blocks_per_sm(machine, kernel);
    proposal->predicted_s = best_s;
    proposal->workspace_bytes = find_a_place(p, best.part_count) + a_bytes;
    proposal->blocking.kc = best.unit_elems;
    proposal->blocking.k_parts = best.part_count;
    proposal->blocking.col_parts = best.block_count;
    proposal->blocking.is_a_packed = a_bytes > 0;
}

void tgi_cuda_propose_skinny(const tgi_machine *machine, const tgi_problem *given,
                             tgi_proposal *proposal)
{
    tgi_problem p = *given;
    if (is_turned(&p))
        tgi_problem_transpose(&p);
    if (!takes(machine, &p, proposal))
        return;
    propose_cut(machine, &p, 0, proposal);
    tgi_operand a;
    describe_a(&p, &a);
    const int64_t a_bytes = tgi_operand_workspace_bytes(&a);
    if (tgi_type_bytes(p.type) >= 4 || a_bytes == 0 || a_bytes > TGI_WORKSPACE_BYTES_MAX)
        return;
    p.a = find_repacked_layout(&a);
    p.is_a_offset = 0;
    propose_cut(machine, &p, a_bytes, proposal);
}

/* Repacks A into the workspace, behind the parts of k. */
static tg_status repack_a(const tgi_cuda_queue *queue, const tgi_call *call, tgi_gemm_args *args)
{
    const tgi_problem *p = &args->problem;
    char *memory = (char *)call->workspace + find_a_place(p, call->blocking->k_parts);
    tgi_repack_args repack = {.job[1].piece_count = 0};
    tgi_operand a;
    describe_a(p, &a);
    tgi_operand_set_job(&a, args->a, memory, &repack.job[0]);
    tgi_gemm_replace_a(args, memory, find_repacked_layout(&a));
    return tgi_operand_repack(queue, call->machine->gpu.sm_count, &repack, a.elem_bytes);
}

tg_status tgi_cuda_launch_skinny(const tgi_cuda_queue *queue, const tgi_call *call)
{
    const tgi_kernel *kernel = call->kernel;
    tgi_gemm_args args;
    if (is_turned(call->problem))
        tgi_gemm_set_transposed_args(call, &args);
    else
        tgi_gemm_set_args(call, &args);
    tg_status status = call->blocking->is_a_packed ? repack_a(queue, call, &args) : TG_STATUS_OK;
    tgi_gemm_set_parts(call, &args);
    const tgi_cuda_launch launch = {.grid = {(unsigned)call->blocking->col_parts, 1, 1},
                                    .block = {(unsigned)kernel->thread_count, 1, 1},
                                    .shared_bytes = (unsigned)count_shared_bytes(kernel),
                                    .is_early = 1};
    void *arguments[] = {&args};
    if (!status)
        status = tgi_cuda_run(queue, kernel->image, kernel->name, &launch, arguments);
    return status ? status : tgi_gemm_add_parts(queue, &args);
}
