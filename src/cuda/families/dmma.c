/* Plans the family dmma: FP64 tiles by matrix instructions. */

#include "cuda/families/gemm.h"
#include "kernels/dmma/dmma_shape.h"

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    return TGI_DMMA_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                 kernel->stage_count);
}

/* Returns the lines of a tile that threads copy by single elements, as they are not aligned. */
static double count_copies(const tgi_kernel *kernel, const tgi_problem *p)
{
    const int a_units = tgi_gemm_has_a_vectors(p, tgi_gemm_is_a_along_k(p));
    const int b_units = tgi_gemm_has_b_vectors(p, tgi_gemm_is_b_along_k(p));
    return (a_units ? 0.0 : kernel->tile_rows) + (b_units ? 0.0 : kernel->tile_cols);
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t tile_count = tgi_gemm_count_tiles(kernel, p);
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal))
        return;
    if (tile_count > INT32_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "D has %lld tiles of %d x %d; %d is the limit: take a larger tile",
                   (long long)tile_count, kernel->tile_rows, kernel->tile_cols, INT32_MAX);
        return;
    }
    const int by_registers = TGI_DMMA_BLOCKS_PER_SM(kernel->thread_rows, kernel->thread_cols);
    const int resident =
        tgi_gemm_count_resident(&machine->gpu, kernel, by_registers, count_shared_bytes(kernel));
    const tgi_tile_work work = {.block_count = (double)tile_count * (double)p->batch_count,
                                .blocks_per_sm = resident,
                                .k_copies = count_copies(kernel, p)};
    tgi_gemm_split_k(machine, p, &work, tgi_model_dmma_seconds, proposal);
}

const tgi_cuda_planner tgi_cuda_planner_dmma = {
    .propose = propose, .describe_tiling = tgi_gemm_describe_tiling, .has_last_round = 1};
