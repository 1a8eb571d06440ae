/* Family simt: FP32 tiles on CUDA cores, of any size and layout. */
#include <stdio.h>
#include <string.h>

#include "cuda/families/gemm.h"
#include "kernels/tile_shape.h"

#define PARTS_MAX 512
#define ROUNDS_MAX 4

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    return TGI_SIMT_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                 kernel->thread_rows, kernel->thread_cols, kernel->stage_count,
                                 kernel->thread_count);
}

/* Tries k whole, then, unless the order of sums is to depend on k alone, cut so that no block is
 * left over: one on each multiprocessor, or full rounds of all that run at once. */
static void choose_parts(const tgi_machine *machine, const tgi_problem *p,
                         const tgi_tile_work *whole, tgi_proposal *proposal)
{
    const double slots = (double)machine->gpu.sm_count * whole->blocks_per_sm;
    proposal->resident_blocks = whole->blocks_per_sm;
    tgi_gemm_try_parts(machine, p, whole, tgi_model_simt_seconds, 1, proposal);
    for (int rounds = 0; !p->is_batch_invariant && rounds <= ROUNDS_MAX; rounds++) {
        double blocks = rounds == 0 ? (double)machine->gpu.sm_count : rounds * slots;
        double wanted = blocks / whole->block_count;
        if (wanted >= 2.0)
            tgi_gemm_try_parts(machine, p, whole, tgi_model_simt_seconds,
                               wanted < PARTS_MAX ? (int64_t)wanted : PARTS_MAX, proposal);
    }
}

void tgi_cuda_propose_simt(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const double tiles = (double)tgi_divide_up(p->m, kernel->tile_rows) *
                         (double)tgi_divide_up(p->n, kernel->tile_cols) * (double)p->batch_count;
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal))
        return;
    if (tiles > (double)INT32_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "the grid would be %.0f blocks; %d is the limit: take a larger tile", tiles,
                   INT32_MAX);
        return;
    }
    const int by_registers =
        TGI_SIMT_BLOCKS_PER_SM(kernel->thread_rows * kernel->thread_cols, kernel->thread_count);
    const int resident = tgi_gemm_count_resident(machine, by_registers, count_shared_bytes(kernel));
    const tgi_tile_work work = {.block_count = tiles, .blocks_per_sm = resident};
    choose_parts(machine, p, &work, proposal);
}

/* Can copies run by 8 bytes? On Hopper alone are there kernels for it (kernels/simt/simt.cu). */
static int has_pairs(const tgi_machine *machine)
{
    return machine->gpu.capability == 90 && strstr(tgi_cuda_architectures(), "sm_90a");
}

/* 1 if lines of contiguous elements, `across` apart, start at multiples of 8 bytes. */
static int is_paired(const void *data, int64_t along, int64_t across, int64_t batch,
                     int64_t line_count)
{
    return along == 1 && across % 2 == 0 && batch % 2 == 0 && line_count % 2 == 0 &&
           (uintptr_t)data % 8 == 0;
}

/* How an operand's line_count lines, along m or n, are copied (kernels/simt/copy.cuh). Tiles moved
 * back from the edge start at multiples of 16 bytes only where the lines end at one. */
static char choose_copy(int along_k, int vector_elems, int is_pair, int64_t line_count)
{
    if (along_k)
        return 'k';
    return vector_elems == 4 && line_count % 4 == 0 ? 'v' : is_pair ? 'p' : 's';
}

/* The row's kernel for these copies, as kernels/simt/simt.cu names it. */
static void name_kernel(char symbol[TGI_CUDA_SYMBOL_BYTES], const tgi_kernel *kernel, char a_copy,
                        char b_copy)
{
    /* Across lines, the shorter copies serve both operands. */
    if (a_copy != 'k' && b_copy != 'k' && a_copy != b_copy)
        a_copy = b_copy = 's';
    snprintf(symbol, TGI_CUDA_SYMBOL_BYTES, "%s_%c%c", kernel->name, a_copy, b_copy);
}

tg_status tgi_cuda_launch_simt(const tgi_cuda_queue *queue, const tgi_call *call)
{
    const tgi_kernel *kernel = call->kernel;
    const tgi_problem *p = call->problem;
    const int64_t col_tiles = tgi_divide_up(p->n, kernel->tile_cols);
    tgi_gemm_args args;
    tgi_gemm_set_args(call, &args);
    tgi_gemm_set_parts(call, &args);
    /* The group's tiles are counted in 32 bits. */
    if (col_tiles >= 1 << 24)
        args.tile_rows_per_group = 1;
    const tgi_cuda_launch launch = {
        .grid = {(unsigned)(tgi_divide_up(p->m, kernel->tile_rows) * col_tiles * p->batch_count),
                 (unsigned)args.k_part_count, 1},
        .block = {(unsigned)kernel->thread_count, 1, 1},
        .shared_bytes = (unsigned)count_shared_bytes(kernel),
        .is_early = 1};
    void *arguments[] = {&args};
    const int pairs = has_pairs(call->machine);
    const int b_pair = pairs && is_paired(args.b, p->b.col, p->b.row, p->b.batch, p->n);
    char symbol[TGI_CUDA_SYMBOL_BYTES];
    name_kernel(symbol, kernel, choose_copy(args.a_along_k, args.a_vector_elems, 0, p->m),
                choose_copy(args.b_along_k, args.b_vector_elems, b_pair, p->n));
    tg_status status = tgi_cuda_run(queue, kernel->image, symbol, &launch, arguments);
    return status ? status : tgi_gemm_add_parts(queue, &args);
}
