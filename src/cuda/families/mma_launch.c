/* Launches the family mma. */
#include "cuda/families/mma.h"

#include <stdio.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/families/repack_launch.h"
#include "kernels/mma/mma_shape.h"

typedef struct mma_prepared {
    tgi_tile_prepared tile;
    /* The launch of the rows of D from whole_rows on. whole_rows is 0 if all rows have one
     * launch. */
    tgi_tile_prepared rest;
    int64_t whole_rows;
    tgi_repack_prepared repack;
    int64_t place[2]; /* offsets in the workspace of operands that are repacked */
    int is_repacked[2];
} mma_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(mma_prepared);
}

/* Makes the kernel read the operand's copy in the workspace. */
static void replace_layout(const tgi_operand *o, int is_b, tgi_problem *p)
{
    tgi_layout *layout = is_b ? &p->b : &p->a;
    const int64_t pitch = o->pitch_bytes / o->elem_bytes;
    const int64_t entry_stride = o->is_across ? 1 : pitch, k_stride = o->is_across ? pitch : 1;
    layout->row = is_b ? k_stride : entry_stride;
    layout->col = is_b ? entry_stride : k_stride;
    layout->batch = o->batch_count > 1 ? o->batch_bytes / o->elem_bytes : 0;
}

/* Limits a multiprocessor to one block if the blocks then still run at once. Blocks start while the
 * kernel ahead, for example a repack, still runs, and would otherwise gather on the multiprocessors
 * that it has left. */
static void spread_blocks(const tgi_gpu *gpu, tgi_cuda_kernel *multiply)
{
    const unsigned half = (unsigned)(gpu->shared_bytes_per_sm / 2);
    if ((int64_t)multiply->grid[0] * multiply->grid[1] <= gpu->sm_count &&
        multiply->shared_bytes < half)
        multiply->shared_bytes = half;
}

/* Prepares the copies of operands, from `offset` on in the workspace. */
static void prepare_repack(const tgi_machine *machine, const tgi_problem *p,
                           const tgi_mma_access operand[2], int64_t offset, mma_prepared *prepared)
{
    for (int i = 0; i < 2; i++) {
        if (!prepared->is_repacked[i])
            continue;
        tgi_repack_add(&operand[i].packed, &prepared->repack.args.job[i]);
        prepared->place[i] = offset;
        offset += tgi_operand_workspace_bytes(&operand[i].packed);
    }
    if (prepared->is_repacked[0] || prepared->is_repacked[1])
        tgi_repack_prepare(machine->gpu.sm_count, tgi_type_bytes(p->type), &prepared->repack);
}

/* Prepares the kernel for the rows of D that `p` has, by the proposal's decision. */
static void prepare_rows(const tgi_machine *machine, const tgi_problem *p,
                         const tgi_proposal *proposal, const tgi_mma_access operand[2],
                         const int is_repacked[2], tgi_tile_prepared *tile)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_gemm_args *args = &tile->args;
    tgi_tile_prepare(p, proposal, tile);
    if (is_repacked[0] && is_repacked[1]) {
        args->problem.k = operand[0].packed.copy_k;
        if (args->split_count == 1)
            args->split_elems = args->problem.k;
    }
    for (int i = 0; i < 2; i++)
        if (is_repacked[i])
            replace_layout(&operand[i].packed, i, &args->problem);
    tgi_cuda_kernel *multiply = &tile->multiply;
    const int64_t tile_count = tgi_gemm_count_tiles(kernel, p) * p->batch_count;
    const int64_t most =
        tgi_divide_up(machine->gpu.sm_count * proposal->resident_blocks, args->split_count);
    multiply->grid[0] = tgi_gemm_count_blocks(tile_count, most);
    multiply->grid[1] = (unsigned)args->split_count;
    multiply->grid[2] = 1;
    args->tile_rows_per_group =
        tgi_gemm_choose_group_rows(&machine->gpu, kernel, p, (double)most,
                                   (double)(args->split_elems * tgi_type_bytes(p->type)));
    spread_blocks(&machine->gpu, multiply);
    if (TGI_MMA_HAS_BODIES_APART(kernel->thread_cols))
        snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "%s_%c%c", kernel->name,
                 operand[0].is_along_k ? 'k' : 'm', operand[1].is_along_k ? 'k' : 'n');
}

static void prepare(const tgi_machine *machine, const tgi_problem *given,
                    const tgi_proposal *proposal, void *block)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    mma_prepared *prepared = block;
    tgi_mma_access operand[2];
    tgi_problem p = *given;
    tgi_proposal whole = *proposal;
    if (decision->is_transposed)
        tgi_problem_transpose(&p);
    for (int i = 0; i < 2; i++) {
        tgi_mma_describe(proposal->kernel, &p, i, &operand[i]);
        prepared->is_repacked[i] = decision->is_repacked[i];
    }
    if (prepared->is_repacked[0] && prepared->is_repacked[1])
        tgi_mma_pad(proposal->kernel, operand);
    prepared->repack.args.is_rounded = tgi_mma_is_rounded_ahead(proposal->kernel);
    prepared->whole_rows = decision->whole_rows;
    tgi_problem rest = p;
    rest.m -= decision->whole_rows;
    const int64_t split_bytes = tgi_gemm_split_bytes(&rest, decision->split_count);
    prepare_repack(machine, &p, operand, tgi_round_up(split_bytes, TGI_MMA_WORKSPACE_UNIT_BYTES),
                   prepared);
    if (prepared->whole_rows) {
        prepare_rows(machine, &rest, proposal, operand, prepared->is_repacked, &prepared->rest);
        whole.decision.tile.split_count = 1;
        whole.decision.tile.split_elems = p.k;
        p.m = prepared->whole_rows;
    }
    prepare_rows(machine, &p, &whole, operand, prepared->is_repacked, &prepared->tile);
    /* Lines of D are those of the problem, whichever side of a tile they lie along. */
    if (tgi_gemm_has_d_vectors(given))
        prepared->tile.args.d_vector_elems = prepared->rest.args.d_vector_elems =
            (int32_t)(TGI_GEMM_VECTOR_BYTES / tgi_type_bytes(given->d_type));
}

/* Multiplies rows of D. `call` has their operands, and `first` is the first of the rows. source[i]
 * is the copy of operand i, or NULL. */
static tg_status launch_rows(const tgi_cuda_queue *queue, const tgi_call *call, int64_t first,
                             const void *const source[2], tgi_tile_prepared *tile)
{
    tgi_gemm_args args = tile->args;
    const int64_t elem_bytes = tgi_type_bytes(args.problem.type);
    tgi_gemm_complete_args(call, tile->is_transposed, &args);
    if (source[0])
        args.a = (const char *)source[0] + first * args.problem.a.row * elem_bytes;
    if (source[1])
        args.b = source[1];
    /* A value above 1 tells the kernels that the lines are padded, as those of copies are. */
    const int32_t unit_elems = (int32_t)(TGI_GEMM_VECTOR_BYTES / elem_bytes);
    args.a_vector_elems = source[0] ? unit_elems : 1;
    args.b_vector_elems = source[1] ? unit_elems : 1;
    tg_status status = tgi_cuda_run(queue, &tile->multiply, &args, sizeof args);
    return status ? status : tgi_gemm_add_splits(queue, &args, &tile->add);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    mma_prepared *prepared = block;
    const int is_transposed = prepared->tile.is_transposed;
    const int64_t whole_rows = prepared->whole_rows;
    const void *source[2] = {NULL, NULL};
    tg_status status = TG_STATUS_OK;
    if (prepared->is_repacked[0] || prepared->is_repacked[1]) {
        char *workspace = call->workspace;
        const void *from[2] = {is_transposed ? call->b : call->a,
                               is_transposed ? call->a : call->b};
        void *target[2] = {workspace + prepared->place[0], workspace + prepared->place[1]};
        status = tgi_repack_launch(queue, &prepared->repack, from, target);
        for (int i = 0; i < 2; i++)
            source[i] = prepared->is_repacked[i] ? target[i] : NULL;
    }
    if (!status)
        status = launch_rows(queue, call, 0, source, &prepared->tile);
    if (status || whole_rows == 0)
        return status;
    const tgi_call rest = tgi_gemm_move_call(call, 0, whole_rows, 0);
    return launch_rows(queue, &rest, whole_rows, source, &prepared->rest);
}

const tgi_cuda_launcher tgi_cuda_launcher_mma = {count_prepared_bytes, prepare, launch};
