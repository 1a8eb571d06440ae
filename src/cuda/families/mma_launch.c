/* Family mma: its launch. */
#include "cuda/families/mma.h"

#include <stdio.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/families/repack_launch.h"

typedef struct mma_prepared {
    tgi_tile_prepared tile;
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

/* Has the kernel read the operand's copy in the workspace. */
static void replace_layout(const tgi_operand *o, int is_b, tgi_problem *p)
{
    tgi_layout *layout = is_b ? &p->b : &p->a;
    const int64_t pitch = o->pitch_bytes / o->elem_bytes;
    const int64_t entry_stride = o->is_across ? 1 : pitch, k_stride = o->is_across ? pitch : 1;
    layout->row = is_b ? k_stride : entry_stride;
    layout->col = is_b ? entry_stride : k_stride;
    layout->batch = o->batch_count > 1 ? o->batch_bytes / o->elem_bytes : 0;
}

/* Has a multiprocessor hold one block alone where no second one is needed. Blocks start while the
 * kernel ahead still runs, a repack for example, and would else gather where it has ended. */
static void spread_blocks(const tgi_gpu *gpu, tgi_cuda_kernel *multiply)
{
    const unsigned half = (unsigned)(gpu->shared_bytes_per_sm / 2);
    if ((int64_t)multiply->grid[0] * multiply->grid[1] <= gpu->sm_count &&
        multiply->shared_bytes < half)
        multiply->shared_bytes = half;
}

/* Prepares the copies of operands, and has the kernel read them. */
static void prepare_repack(const tgi_machine *machine, const tgi_kernel *kernel,
                           const tgi_problem *p, tgi_mma_access operand[2], mma_prepared *prepared)
{
    tgi_gemm_args *args = &prepared->tile.args;
    int64_t offset =
        tgi_round_up(tgi_gemm_part_bytes(p, args->k_part_count), TGI_MMA_WORKSPACE_UNIT_BYTES);
    if (prepared->is_repacked[0] && prepared->is_repacked[1]) {
        tgi_mma_pad(kernel, operand);
        args->problem.k = operand[0].packed.copy_k;
        if (args->k_part_count == 1)
            args->k_part_elems = args->problem.k;
    }
    for (int i = 0; i < 2; i++) {
        if (!prepared->is_repacked[i])
            continue;
        tgi_repack_add(&operand[i].packed, &prepared->repack.args.job[i]);
        replace_layout(&operand[i].packed, i, &args->problem);
        prepared->place[i] = offset;
        offset += tgi_operand_workspace_bytes(&operand[i].packed);
    }
    if (prepared->is_repacked[0] || prepared->is_repacked[1])
        tgi_repack_prepare(machine->gpu.sm_count, tgi_type_bytes(p->type), &prepared->repack);
}

static void prepare(const tgi_machine *machine, const tgi_problem *given,
                    const tgi_proposal *proposal, void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    mma_prepared *prepared = block;
    tgi_gemm_args *args = &prepared->tile.args;
    tgi_mma_access operand[2];
    tgi_problem transposed = *given;
    if (proposal->decision.tile.is_transposed)
        tgi_problem_transpose(&transposed);
    const tgi_problem *p = &transposed;
    tgi_tile_prepare(p, proposal, &prepared->tile);
    /* Lines of D are those of the problem, whichever side of a tile they lie along. */
    if (tgi_gemm_has_d_vectors(given))
        args->d_vector_elems = (int32_t)(TGI_GEMM_VECTOR_BYTES / tgi_type_bytes(p->d_type));
    for (int i = 0; i < 2; i++) {
        tgi_mma_describe(p, i, &operand[i]);
        prepared->is_repacked[i] = proposal->decision.tile.is_repacked[i];
    }
    prepare_repack(machine, kernel, p, operand, prepared);
    tgi_cuda_kernel *multiply = &prepared->tile.multiply;
    /* Blocks beyond those that run at once would wait for others to end. */
    const int64_t tile_count = tgi_divide_up(p->m, kernel->tile_rows) *
                               tgi_divide_up(p->n, kernel->tile_cols) * p->batch_count;
    const int64_t most =
        tgi_divide_up(machine->gpu.sm_count * proposal->resident_blocks, args->k_part_count);
    multiply->grid[0] = (unsigned)(tile_count < most ? tile_count : most);
    multiply->grid[1] = (unsigned)args->k_part_count;
    multiply->grid[2] = 1;
    spread_blocks(&machine->gpu, multiply);
    /* Code of earlier chips does not wait for the kernel ahead. */
    multiply->is_early = !tgi_mma_has_earlier_code(kernel);
    if (tgi_mma_has_bodies_apart(kernel))
        snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "%s_%c%c", kernel->name,
                 operand[0].is_along_k ? 'k' : 'm', operand[1].is_along_k ? 'k' : 'n');
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    mma_prepared *prepared = block;
    tgi_gemm_args args = prepared->tile.args;
    void *arguments[] = {&args};
    tgi_gemm_complete_args(call, prepared->tile.is_transposed, &args);
    if (prepared->is_repacked[0] || prepared->is_repacked[1]) {
        char *workspace = call->workspace;
        const void *source[2] = {args.a, args.b};
        void *target[2] = {workspace + prepared->place[0], workspace + prepared->place[1]};
        tg_status status = tgi_repack_launch(queue, &prepared->repack, source, target);
        if (status)
            return status;
        args.a = prepared->is_repacked[0] ? target[0] : args.a;
        args.b = prepared->is_repacked[1] ? target[1] : args.b;
    }
    /* More than 1 tells the kernels that lines are padded, as those of copies are. */
    const int32_t unit_elems = (int32_t)(TGI_GEMM_VECTOR_BYTES / tgi_type_bytes(args.problem.type));
    args.a_vector_elems = prepared->is_repacked[0] ? unit_elems : 1;
    args.b_vector_elems = prepared->is_repacked[1] ? unit_elems : 1;
    tg_status status = tgi_cuda_run(queue, &prepared->tile.multiply, arguments);
    return status || args.k_part_count == 1 ? status
                                            : tgi_cuda_run(queue, &prepared->tile.add, arguments);
}

const tgi_cuda_launcher tgi_cuda_launcher_mma = {count_prepared_bytes, prepare, launch};
