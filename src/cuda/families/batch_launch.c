/* Launches the family batch. */
#include <stdio.h>

#include "cuda/families/batch.h"
#include "cuda/families/gemm_launch.h"

#define UNIT TGI_BATCH_UNIT_BYTES

/* The next kernel starts early if there are at most 1.5 blocks a multiprocessor, or 3 with at most
 * EARLY_BYTES_MAX of shared memory. Among more blocks, its own would be spread unevenly. */
#define EARLY_BYTES_MAX (8 << 10)

typedef struct batch_prepared {
    tgi_batch_args args; /* without pointers, alpha and beta of a call */
    tgi_cuda_kernel multiply;
} batch_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(batch_prepared);
}

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_batch_decision *decision = &proposal->decision.batch;
    const int64_t sm_count = machine->gpu.sm_count;
    batch_prepared *prepared = block;
    tgi_batch_describe(kernel, p, decision, &prepared->args);
    prepared->args.starts_next =
        2 * decision->block_count <= 3 * sm_count ||
        (decision->block_count <= 3 * sm_count && prepared->args.shared_bytes <= EARLY_BYTES_MAX);
    tgi_gemm_prepare_args(p, &prepared->args.gemm);
    prepared->multiply = (tgi_cuda_kernel){.image = kernel->image,
                                           .grid = {(unsigned)decision->block_count, 1, 1},
                                           .block = {(unsigned)decision->thread_count, 1, 1},
                                           .shared_bytes = (unsigned)proposal->shared_bytes,
                                           .is_early = 1};
    snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", kernel->name);
}

/* Returns 1 if an address and distances in elements are multiples of two elements. */
static int are_pairs(const void *data, int64_t elem_bytes, int64_t line_elems, int64_t batch_elems)
{
    return (uintptr_t)data % (uintptr_t)(2 * elem_bytes) == 0 && line_elems % 2 == 0 &&
           batch_elems % 2 == 0;
}

/* Completes a copy whose lines run along k if is_along_k is 1, of an operand whose lines begin at
 * units if is_aligned is 1. */
static void complete_copy(int thread_count, int is_along_k, int is_aligned, int has_words,
                          tgi_entry_copy *copy)
{
    const int32_t before = is_aligned ? 0 : UNIT - 1; /* bytes of the first unit before the line */
    const int32_t units = (copy->line_length + before + UNIT - 1) / UNIT;
    const int32_t lines = copy->lines.value, all_lines = thread_count / units;
    copy->units = tgi_make_divisor(units);
    copy->access = is_aligned               ? is_along_k ? TGI_ENTRY_ALONG : TGI_ENTRY_ACROSS
                   : is_along_k & has_words ? TGI_ENTRY_WORDS
                                            : TGI_ENTRY_ELEMENTS;
    copy->is_whole = is_aligned && copy->line_length % UNIT == 0;
    copy->advance_units = thread_count % units;
    copy->advance_lines = all_lines % lines;
    copy->advance =
        (tgi_entry_advance){all_lines / lines * copy->batch_bytes +
                                copy->advance_lines * copy->line_bytes + copy->advance_units * UNIT,
                            all_lines / lines * copy->entry_pitch +
                                copy->advance_lines * copy->pitch + copy->advance_units * UNIT};
    copy->line_end =
        (tgi_entry_advance){copy->line_bytes - units * UNIT, copy->pitch - units * UNIT};
    copy->entry_end = (tgi_entry_advance){copy->batch_bytes - lines * copy->line_bytes,
                                          copy->entry_pitch - lines * copy->pitch};
}

void tgi_batch_complete(int thread_count, tgi_batch_args *args)
{
    const tgi_gemm_args *gemm = &args->gemm;
    const tgi_problem *p = &gemm->problem;
    const int64_t bytes = tgi_type_bytes(p->type);
    complete_copy(thread_count, gemm->a_along_k, gemm->a_vector_elems > 1,
                  bytes == 2 && are_pairs(gemm->a, bytes, p->a.row, p->a.batch), &args->a);
    complete_copy(thread_count, gemm->b_along_k, gemm->b_vector_elems > 1,
                  bytes == 2 && are_pairs(gemm->b, bytes, p->b.col, p->b.batch), &args->b);
    args->are_d_pairs = p->d.col == 1 && p->n % 2 == 0 &&
                        are_pairs(gemm->d, tgi_type_bytes(p->d_type), p->d.row, p->d.batch);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    batch_prepared *prepared = block;
    tgi_batch_args args = prepared->args;
    tgi_gemm_complete_args(call, 0, &args.gemm);
    tgi_batch_complete((int)prepared->multiply.block[0], &args);
    return tgi_cuda_run(queue, &prepared->multiply, &args, sizeof args);
}

const tgi_cuda_launcher tgi_cuda_launcher_batch = {count_prepared_bytes, prepare, launch};
