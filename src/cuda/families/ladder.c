/* The ladder's rungs on a GPU: which products each takes, its grid, its launch. */
#include "cuda/families/gemm.h"
#include "model/ladder_model.h"
#include "model/ladder_problem.h"

void tgi_cuda_propose_ladder(const tgi_machine *machine, const tgi_problem *p,
                             tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    if (tgi_model_ladder_takes_problem(p, &proposal->refusal) &&
        tgi_model_ladder_takes_sizes(kernel, p->m, p->n, p->k, &proposal->refusal)) {
        proposal->is_legal = 1;
        proposal->shared_bytes = tgi_model_ladder_shared_bytes(kernel);
        proposal->predicted_s = tgi_model_ladder_seconds(&machine->gpu, kernel, p->m, p->n, p->k);
    }
}

tg_status tgi_cuda_launch_ladder(const tgi_cuda_queue *queue, const tgi_call *call)
{
    const tgi_kernel *kernel = call->kernel;
    const tgi_problem *p = call->problem;
    const unsigned rows = (unsigned)tgi_divide_up(p->m, kernel->tile_rows);
    const unsigned cols = (unsigned)tgi_divide_up(p->n, kernel->tile_cols);
    const int is_on_side = tgi_model_ladder_is_on_side(kernel);
    const tgi_cuda_launch launch = {.grid = {is_on_side ? rows : cols, is_on_side ? cols : rows, 1},
                                    .block = {(unsigned)(kernel->tile_cols / kernel->thread_cols),
                                              (unsigned)(kernel->tile_rows / kernel->thread_rows),
                                              1}};
    int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    const void *a = call->a, *b = call->b;
    void *d = call->d;
    void *arguments[] = {&a, &b, &d, &m, &n, &k};
    return tgi_cuda_run(queue, kernel->image, kernel->name, &launch, arguments);
}
