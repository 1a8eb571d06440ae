/* Launches the family batch. */
#include <stdio.h>

#include "cuda/families/batch.h"
#include "cuda/families/gemm_launch.h"

typedef struct batch_prepared {
    tgi_first_call first;
    tgi_batch_args first_args, args; /* arguments of the first call; without what a call gives */
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
    batch_prepared *prepared = block;
    (void)machine;
    tgi_batch_describe(kernel, p, decision, &prepared->args);
    tgi_gemm_prepare_args(p, &prepared->args.gemm);
    prepared->multiply = (tgi_cuda_kernel){.image = kernel->image,
                                           .grid = {(unsigned)decision->block_count, 1, 1},
                                           .block = {(unsigned)decision->thread_count, 1, 1},
                                           .shared_bytes = (unsigned)proposal->shared_bytes,
                                           .is_early = 1};
    snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", kernel->name);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    batch_prepared *prepared = block;
    tgi_batch_args args;
    void *arguments[] = {&prepared->first_args};
    if (!tgi_first_call_is(&prepared->first, call)) {
        args = prepared->args;
        tgi_gemm_complete_args(call, 0, &args.gemm);
        tgi_batch_count_units(&args.a, args.gemm.a_vector_elems > 1);
        tgi_batch_count_units(&args.b, args.gemm.b_vector_elems > 1);
        tgi_first_call_keep(&prepared->first, call, &args, &prepared->first_args, sizeof args);
        arguments[0] = &args;
    }
    return tgi_cuda_run(queue, &prepared->multiply, arguments);
}

const tgi_cuda_launcher tgi_cuda_launcher_batch = {count_prepared_bytes, prepare, launch};
