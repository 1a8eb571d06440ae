/* Launches the families rank and dot. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/families/repack_launch.h"
#include "cuda/families/skinny.h"
#include "cuda/runtime/tensor_map.h"
#include "kernels/skinny/rank_args.h"
#include "kernels/skinny/skinny_shape.h"

enum { BASE_A, BASE_B, BASE_COUNT };

typedef struct skinny_prepared {
    tgi_rank_args args; /* kernels without tensor maps take only the first member */
    size_t args_bytes;
    int is_transposed;
    int64_t a_place; /* offset of A's copy in the workspace, if A is repacked */
    tgi_tensor_slots slots;
    tgi_tensor_slot slot[1 + TGI_RANK_MAPS_MAX];
    tgi_repack_prepared repack;
    tgi_cuda_kernel multiply, add;
} skinny_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(skinny_prepared);
}

/* Returns 1 if TMA can load B's lines. Lines with equal offsets from a unit of 16 bytes must lie at
 * multiples of 16 bytes from one another, and so must the batch entries. */
static int has_maps(const tgi_machine *machine, const tgi_problem *p)
{
    const int64_t elem_bytes = tgi_type_bytes(p->type), elems = TGI_RANK_UNIT_BYTES / elem_bytes;
    const int64_t batch_bytes = p->b.batch * elem_bytes;
    return tgi_arch_has(machine->gpu.capability, TGI_FEATURE_TMA) && p->b.col == 1 &&
           p->k >= elems && p->n <= INT32_MAX - elems && p->k <= INT32_MAX &&
           p->batch_count <= INT32_MAX && p->b.row > 0 &&
           p->b.row < TGI_TENSOR_STRIDE_MAX / TGI_RANK_UNIT_BYTES &&
           p->b.row * elems >= p->n + elems &&
           (p->batch_count == 1 || batch_bytes == 0 ||
            (batch_bytes > 0 && batch_bytes < TGI_TENSOR_STRIDE_MAX &&
             batch_bytes % TGI_RANK_UNIT_BYTES == 0));
}

/* Adds the map of A. A TMA box holds a part of all rows. */
static void add_row_map(skinny_prepared *prepared)
{
    tgi_operand a;
    tgi_skinny_describe_a(&prepared->args.gemm.problem, &a);
    prepared->args.has_a_batch = a.batch_count > 1;
    prepared->slot[prepared->slots.count++] =
        (tgi_tensor_slot){.tensor = {.elem_bytes = a.elem_bytes,
                                     .count = {a.k, a.line_count, a.batch_count},
                                     .stride_bytes = {a.pitch_bytes, a.batch_bytes},
                                     .tma_box_elems = (int)(TGI_RANK_BOX_BYTES / a.elem_bytes),
                                     .tma_box_runs = (int)a.line_count,
                                     .is_swizzled = 1},
                          .operand = BASE_A,
                          .argument_offset = offsetof(tgi_rank_args, a)};
}

/* Adds the maps of B, one for each offset of a line from a unit of 16 bytes. */
static void add_line_maps(skinny_prepared *prepared)
{
    const tgi_problem *p = &prepared->args.gemm.problem;
    const int64_t elem_bytes = tgi_type_bytes(p->type), elems = TGI_RANK_UNIT_BYTES / elem_bytes;
    const int64_t batch_count = p->b.batch == 0 ? 1 : p->batch_count; /* distinct entries */
    const int64_t pitch_bytes = p->b.row * TGI_RANK_UNIT_BYTES;
    prepared->args.has_b_batch = batch_count > 1;
    for (int64_t i = 0; prepared->args.has_maps && i < elems; i++) {
        prepared->slot[prepared->slots.count++] = (tgi_tensor_slot){
            .tensor = {.elem_bytes = elem_bytes,
                       .count = {p->n, tgi_divide_up(p->k - i, elems), batch_count},
                       .stride_bytes = {pitch_bytes,
                                        batch_count == 1 ? pitch_bytes : p->b.batch * elem_bytes},
                       .tma_box_elems = (int)(TGI_RANK_BOX_BYTES / elem_bytes),
                       .tma_box_runs = TGI_RANK_BOX_LINES,
                       .is_swizzled = 1},
            .operand = BASE_B,
            .operand_offset = i * p->b.row * elem_bytes,
            .is_shifted = 1,
            .argument_offset =
                offsetof(tgi_rank_args, lines[0]) + i * (int64_t)sizeof(tgi_tensor_map)};
    }
}

/* Returns the number of blocks. Splits of a batch-invariant problem have one each; the last band of
 * its rows has fewer tiles than those that the plan counted. */
static int64_t count_blocks(const tgi_problem *p, const tgi_skinny_decision *decision)
{
    if (!p->is_batch_invariant || decision->split_count == 1)
        return decision->block_count;
    return tgi_divide_up(p->n, decision->tile_cols) * p->batch_count * decision->split_count;
}

static void prepare(const tgi_machine *machine, const tgi_problem *given,
                    const tgi_proposal *proposal, void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_skinny_decision *decision = &proposal->decision.skinny;
    skinny_prepared *prepared = block;
    tgi_gemm_args *gemm = &prepared->args.gemm;
    tgi_problem p = *given;
    prepared->is_transposed = tgi_skinny_is_transposed(given);
    if (prepared->is_transposed)
        tgi_problem_transpose(&p);
    if (decision->is_a_repacked) {
        tgi_operand a;
        tgi_skinny_describe_a(&p, &a);
        tgi_repack_add(&a, &prepared->repack.args.job[0]);
        tgi_repack_prepare(machine->gpu.sm_count, a.elem_bytes, &prepared->repack);
        prepared->a_place = tgi_skinny_find_a_place(&p, decision->split_count);
        p.a = tgi_skinny_find_repacked_layout(&a);
        p.is_a_offset = 0;
    }
    tgi_gemm_prepare_args(&p, gemm);
    gemm->split_elems = decision->unit_elems;
    gemm->split_count = (int32_t)decision->split_count;
    gemm->tile_cols = (int32_t)decision->tile_cols;
    prepared->args_bytes = sizeof *gemm;
    prepared->slots.slot = prepared->slot;
    if (tgi_skinny_is_narrow_rank(kernel)) {
        prepared->args_bytes = sizeof prepared->args;
        prepared->args.has_maps = has_maps(machine, &p);
        if (prepared->args.has_maps)
            add_row_map(prepared);
        add_line_maps(prepared);
    }
    prepared->multiply = (tgi_cuda_kernel){.image = kernel->image,
                                           .grid = {(unsigned)count_blocks(&p, decision), 1, 1},
                                           .block = {(unsigned)kernel->thread_count, 1, 1},
                                           .shared_bytes = (unsigned)proposal->shared_bytes,
                                           .is_early = 1};
    snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", kernel->name);
    tgi_gemm_prepare_add(gemm, &prepared->add);
}

/* Fills the arguments of a call that reads A at `a`. */
static tg_status fill_args(const tgi_cuda_queue *queue, const tgi_call *call, const void *a,
                           skinny_prepared *prepared, tgi_rank_args *args)
{
    const int is_transposed = prepared->is_transposed;
    const void *const base[BASE_COUNT] = {a, is_transposed ? call->a : call->b};
    tg_status status = tgi_tensor_fill(queue->device, &prepared->slots, base, &prepared->args, args,
                                       prepared->args_bytes);
    if (status)
        return status;
    tgi_gemm_complete_args(call, is_transposed, &args->gemm);
    if (prepared->repack.kernel.image) {
        args->gemm.a = a;
        args->gemm.a_vector_elems = prepared->args.gemm.a_vector_elems;
    }
    return TG_STATUS_OK;
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    skinny_prepared *prepared = block;
    const void *a = prepared->is_transposed ? call->b : call->a;
    tgi_rank_args args;
    tg_status status = TG_STATUS_OK;
    if (prepared->repack.kernel.image) {
        void *copy = (char *)call->workspace + prepared->a_place;
        status = tgi_repack_launch(queue, &prepared->repack, (const void *[2]){a, NULL},
                                   (void *[2]){copy, NULL});
        a = copy;
    }
    if (!status)
        status = fill_args(queue, call, a, prepared, &args);
    if (!status)
        status = tgi_cuda_run(queue, &prepared->multiply, &args, prepared->args_bytes);
    return status ? status : tgi_gemm_add_splits(queue, &args.gemm, &prepared->add);
}

const tgi_cuda_launcher tgi_cuda_launcher_skinny = {count_prepared_bytes, prepare, launch};
