/* Family small: little tiles of D, k shared out among the warps of a block. */

#include "cuda/families/gemm.h"
#include "kernels/tile_shape.h"

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    return TGI_SMALL_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                  kernel->stage_count, (int)tgi_type_bytes(kernel->type));
}

void tgi_cuda_propose_small(const tgi_machine *machine, const tgi_problem *p,
                            tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t row_blocks = tgi_divide_up(p->m, kernel->tile_rows);
    const int64_t col_blocks = tgi_divide_up(p->n, kernel->tile_cols);
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal))
        return;
    if (row_blocks > TGI_GRID_HEIGHT_MAX || col_blocks > INT32_MAX ||
        p->batch_count > INT32_MAX / 1024) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "the grid would be %lld x %lld tiles of %lld products; %d x %d and %d are the "
                   "limits: take larger tiles",
                   (long long)row_blocks, (long long)col_blocks, (long long)p->batch_count,
                   TGI_GRID_HEIGHT_MAX, INT32_MAX, INT32_MAX / 1024);
        return;
    }
    const int sums = kernel->thread_rows * kernel->thread_cols;
    const int by_registers =
        machine->gpu.registers_per_sm / (kernel->thread_count * (sums >= 64 ? 256 : 128));
    const int resident = tgi_gemm_count_resident(machine, by_registers, count_shared_bytes(kernel));
    const tgi_tile_work work = {.block_count = (double)row_blocks * (double)col_blocks *
                                               (double)p->batch_count,
                                .blocks_per_sm = resident,
                                .access = tgi_gemm_find_access(p)};
    tgi_gemm_cut_k(machine, p, &work, tgi_model_small_seconds, proposal);
}

tg_status tgi_cuda_launch_small(const tgi_cuda_queue *queue, const tgi_call *call)
{
    const tgi_kernel *kernel = call->kernel;
    const tgi_problem *p = call->problem;
    tgi_gemm_args args;
    tgi_gemm_set_args(call, &args);
    tgi_gemm_set_parts(call, &args);
    const int64_t entries = p->batch_count * args.k_part_count;
    const tgi_cuda_launch launch = {
        .grid = {(unsigned)tgi_divide_up(p->n, kernel->tile_cols),
                 (unsigned)tgi_divide_up(p->m, kernel->tile_rows),
                 (unsigned)(entries < TGI_GRID_HEIGHT_MAX ? entries : TGI_GRID_HEIGHT_MAX)},
        .block = {(unsigned)kernel->thread_count, 1, 1},
        .shared_bytes = (unsigned)count_shared_bytes(kernel),
        .is_early = 1};
    void *arguments[] = {&args};
    tg_status status = tgi_cuda_run(queue, kernel->image, kernel->name, &launch, arguments);
    return status ? status : tgi_gemm_add_parts(queue, &args);
}
