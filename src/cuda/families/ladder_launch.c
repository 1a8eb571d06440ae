/* Launches the ladder's rungs on a GPU. */
#include <stdio.h>

#include "core/checked.h"
#include "cuda/families/family.h"
#include "cuda/runtime/launch.h"
#include "model/ladder_model.h"

typedef struct ladder_prepared {
    int m, n, k;
    tgi_cuda_kernel multiply;
} ladder_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(ladder_prepared);
}

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    const unsigned rows = (unsigned)tgi_divide_up(p->m, kernel->tile_rows);
    const unsigned cols = (unsigned)tgi_divide_up(p->n, kernel->tile_cols);
    const int is_on_side = tgi_model_ladder_is_on_side(kernel);
    ladder_prepared *prepared = block;
    (void)machine;
    prepared->m = (int)p->m;
    prepared->n = (int)p->n;
    prepared->k = (int)p->k;
    prepared->multiply =
        (tgi_cuda_kernel){.image = kernel->image,
                          .grid = {is_on_side ? rows : cols, is_on_side ? cols : rows, 1},
                          .block = {(unsigned)(kernel->tile_cols / kernel->thread_cols),
                                    (unsigned)(kernel->tile_rows / kernel->thread_rows), 1}};
    snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", kernel->name);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    ladder_prepared *prepared = block;
    const void *a = call->a, *b = call->b;
    void *d = call->d;
    void *arguments[] = {&a, &b, &d, &prepared->m, &prepared->n, &prepared->k};
    return tgi_cuda_run(queue, &prepared->multiply, arguments);
}

const tgi_cuda_launcher tgi_cuda_launcher_ladder = {count_prepared_bytes, prepare, launch};
