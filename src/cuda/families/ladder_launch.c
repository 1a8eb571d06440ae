/* Launches the ladder's rungs on a GPU. */
#include <stddef.h>
#include <stdio.h>

#include "core/checked.h"
#include "cuda/families/family.h"
#include "cuda/runtime/tensor_map.h"
#include "model/ladder_model.h"

/* A block that asks for more shared memory than this gets it from its launch. */
#define DECLARED_BYTES_MAX (48 << 10)

/* The tensor maps of A and B, the first arguments of a rung that TMA feeds. */
typedef struct ladder_maps {
    tgi_tensor_map map[2];
} ladder_maps;

typedef struct ladder_prepared {
    int m, n, k;
    ladder_maps maps;
    tgi_tensor_slots slots; /* none if the rung takes pointers */
    tgi_tensor_slot slot[2];
    tgi_cuda_kernel multiply;
} ladder_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(ladder_prepared);
}

/* Describes operand i, row_count x col_count elements without gaps, in boxes of box_rows rows. */
static void add_map(const tgi_kernel *kernel, int i, int64_t row_count, int64_t col_count,
                    int box_rows, ladder_prepared *prepared)
{
    const int64_t elem_bytes = tgi_type_bytes(kernel->type), row_bytes = col_count * elem_bytes;
    prepared->slot[i] =
        (tgi_tensor_slot){.tensor = {.elem_bytes = elem_bytes,
                                     .count = {col_count, row_count, 1},
                                     .stride_bytes = {row_bytes, row_count * row_bytes},
                                     .tma_box_elems = TGI_LADDER_BOX_BYTES / (int)elem_bytes,
                                     .tma_box_runs = box_rows,
                                     .is_swizzled = 1},
                          .operand = i,
                          .argument_offset = (int64_t)(i * sizeof(tgi_tensor_map))};
    prepared->slots = (tgi_tensor_slots){.slot = prepared->slot, .count = i + 1};
}

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    const unsigned rows = (unsigned)tgi_divide_up(p->m, kernel->tile_rows);
    const unsigned cols = (unsigned)tgi_divide_up(p->n, kernel->tile_cols);
    const int is_on_side = tgi_model_ladder_is_on_side(kernel);
    const int64_t shared_bytes = proposal->shared_bytes;
    ladder_prepared *prepared = block;
    (void)machine;
    prepared->m = (int)p->m;
    prepared->n = (int)p->n;
    prepared->k = (int)p->k;
    if (tgi_model_ladder_is_fed_by_tma(kernel)) {
        add_map(kernel, 0, p->m, p->k, kernel->tile_rows, prepared);
        add_map(kernel, 1, p->k, p->n, kernel->tile_depth, prepared);
    }
    prepared->multiply = (tgi_cuda_kernel){
        .image = kernel->image,
        .grid = {is_on_side ? rows : cols, is_on_side ? cols : rows, 1},
        .block = {(unsigned)(kernel->tile_cols / kernel->thread_cols),
                  (unsigned)(kernel->tile_rows / kernel->thread_rows), 1},
        .shared_bytes = shared_bytes > DECLARED_BYTES_MAX ? (unsigned)shared_bytes : 0};
    snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", kernel->name);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    ladder_prepared *prepared = block;
    const void *base[] = {call->a, call->b};
    void *d = call->d;
    ladder_maps maps;
    void *arguments[] = {&base[0], &base[1], &d, &prepared->m, &prepared->n, &prepared->k};
    if (prepared->slots.count) {
        const tg_status status = tgi_tensor_fill(queue->device, &prepared->slots, base,
                                                 &prepared->maps, &maps, sizeof maps);
        if (status)
            return status;
        arguments[0] = &maps.map[0];
        arguments[1] = &maps.map[1];
    }
    return tgi_cuda_run_with(queue, &prepared->multiply, arguments);
}

const tgi_cuda_launcher tgi_cuda_launcher_ladder = {count_prepared_bytes, prepare, launch};
