/* Launches the family simt. */
#include <stdio.h>
#include <string.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/runtime/image.h"

#define PAIR_BYTES 8
#define COL_TILES_MAX (1 << 24) /* keeps the tiles of a group within 32 bits */

/* The alignment of an operand's pointer decides the width of its copies. */
enum { ALIGNED_TO_ELEMENTS, ALIGNED_TO_PAIRS, ALIGNED_TO_VECTORS, ALIGNMENT_COUNT };

typedef struct simt_prepared {
    tgi_gemm_args args; /* without pointers, alpha and beta of a call */
    tgi_cuda_kernel multiply[ALIGNMENT_COUNT][ALIGNMENT_COUNT]; /* by A's and B's pointers */
    tgi_cuda_kernel add;
} simt_prepared;

/* Returns 1 if operands can be copied by 8 bytes. kernels/simt/simt.cu has such kernels for only
 * one instruction set. */
static int has_pairs(const tgi_machine *machine)
{
    const unsigned features = tgi_arch_find(machine->gpu.capability)->features;
    return tgi_kernels_isa_runs(TGI_ISA_sm90a, features) && tgi_cuda_has_code(TGI_ISA_sm90a);
}

/* Returns 1 if B's rows are contiguous and start at multiples of 8 bytes when B does. */
static int is_b_paired(const tgi_problem *p)
{
    return p->b.col == 1 && p->b.row % 2 == 0 && p->b.batch % 2 == 0 && p->n % 2 == 0;
}

/* Returns the letter of the copy (kernels/copy/stage_copy.cuh) of an operand with line_count lines
 * along m or n. A tile that is moved back from the edge starts at a multiple of 16 bytes only if
 * the lines end at one. */
static char choose_copy(int along_k, int has_vectors, int has_pairs_too, int64_t line_count)
{
    if (along_k)
        return 'k';
    return has_vectors && line_count % 4 == 0 ? 'v' : has_pairs_too ? 'p' : 's';
}

/* Names the row's kernel for these copies, as kernels/simt/simt.cu does. */
static void name_kernel(char symbol[TGI_CUDA_SYMBOL_BYTES], const tgi_kernel *kernel, char a_copy,
                        char b_copy)
{
    /* If both operands are copied across lines, both use the shorter copies. */
    if (a_copy != 'k' && b_copy != 'k' && a_copy != b_copy)
        a_copy = b_copy = 's';
    snprintf(symbol, TGI_CUDA_SYMBOL_BYTES, "%s_%c%c", kernel->name, a_copy, b_copy);
}

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(simt_prepared);
}

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t col_tiles = tgi_divide_up(p->n, kernel->tile_cols);
    const int b_paired = has_pairs(machine) && is_b_paired(p);
    simt_prepared *prepared = block;
    tgi_gemm_args *args = &prepared->args;
    tgi_gemm_prepare_args(p, args);
    args->split_elems = proposal->decision.tile.split_elems;
    args->split_count = (int32_t)proposal->decision.tile.split_count;
    if (col_tiles >= COL_TILES_MAX)
        args->tile_rows_per_group = 1;
    const tgi_cuda_kernel multiply = {
        .image = kernel->image,
        .grid = {(unsigned)(tgi_divide_up(p->m, kernel->tile_rows) * col_tiles * p->batch_count),
                 (unsigned)args->split_count, 1},
        .block = {(unsigned)kernel->thread_count, 1, 1},
        .shared_bytes = (unsigned)proposal->shared_bytes,
        .is_early = 1};
    for (int a = 0; a < ALIGNMENT_COUNT; a++) {
        const int a_vectors = a == ALIGNED_TO_VECTORS && args->a_vector_elems == 4;
        const char a_copy = choose_copy(args->a_along_k, a_vectors, 0, p->m);
        for (int b = 0; b < ALIGNMENT_COUNT; b++) {
            const int b_vectors = b == ALIGNED_TO_VECTORS && args->b_vector_elems == 4;
            const int b_pairs = b_paired && b != ALIGNED_TO_ELEMENTS;
            prepared->multiply[a][b] = multiply;
            name_kernel(prepared->multiply[a][b].symbol, kernel, a_copy,
                        choose_copy(args->b_along_k, b_vectors, b_pairs, p->n));
        }
    }
    tgi_gemm_prepare_add(args, &prepared->add);
}

static int find_alignment(const void *data)
{
    return (uintptr_t)data % TGI_GEMM_VECTOR_BYTES == 0 ? ALIGNED_TO_VECTORS
           : (uintptr_t)data % PAIR_BYTES == 0          ? ALIGNED_TO_PAIRS
                                                        : ALIGNED_TO_ELEMENTS;
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    simt_prepared *prepared = block;
    tgi_gemm_args args = prepared->args;
    tgi_gemm_complete_args(call, 0, &args);
    tgi_cuda_kernel *multiply =
        &prepared->multiply[find_alignment(call->a)][find_alignment(call->b)];
    tg_status status = tgi_cuda_run(queue, multiply, &args, sizeof args);
    return status ? status : tgi_gemm_add_splits(queue, &args, &prepared->add);
}

const tgi_cuda_launcher tgi_cuda_launcher_simt = {count_prepared_bytes, prepare, launch};
