/* Launches the family dmma_tma. */
#include <stddef.h>
#include <stdio.h>

#include "cuda/families/dmma_tma.h"
#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/runtime/tensor_map.h"
#include "kernels/dmma/dmma_tma_args.h"

#define GROUP_LINES 8 /* lines of a box along k are a multiple of them */

typedef struct dmma_tma_prepared {
    tgi_tile_prepared tile;
    int is_copied;          /* 1: threads copy A and B; the rest of the block is unused */
    tgi_dmma_tma_args args; /* its member gemm is tile.args */
    tgi_tensor_slots slots;
    tgi_tensor_slot slot[4]; /* A and B have two each, one for the edge */
} dmma_tma_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(dmma_tma_prepared);
}

static void add_map(dmma_tma_prepared *prepared, int i, const tgi_operand *o, int lines,
                    size_t member)
{
    const size_t offset = i ? offsetof(tgi_dmma_tma_args, b) : offsetof(tgi_dmma_tma_args, a);
    prepared->slot[prepared->slots.count++] =
        (tgi_tensor_slot){.tensor = {.elem_bytes = o->elem_bytes,
                                     .count = {o->is_across ? o->line_count : o->k,
                                               o->is_across ? o->k : o->line_count, o->batch_count},
                                     .stride_bytes = {o->pitch_bytes, o->batch_bytes},
                                     .tma_box_elems = TGI_DMMA_TMA_ELEMS,
                                     .tma_box_runs = lines,
                                     .is_swizzled = 1},
                          .operand = i,
                          .argument_offset = (int64_t)(offset + member)};
}

/* Prepares A, or B if i is 1, of which a tile has tile_lines rows or columns. The last tile's box
 * along k is short, because TMA takes longer to fill lines with zeros than to copy them. */
static void prepare_operand(dmma_tma_prepared *prepared, int i, const tgi_operand *o,
                            int tile_lines)
{
    tgi_tma_operand *mapped = i ? &prepared->args.b : &prepared->args.a;
    const int64_t edge = tgi_round_up(o->line_count % tile_lines, GROUP_LINES);
    mapped->has_batch = o->batch_count > 1;
    mapped->line_count = (int32_t)o->line_count;
    mapped->tma_box_lines = o->is_across ? TGI_DMMA_TMA_ELEMS : tile_lines;
    mapped->edge_lines = o->is_across || edge == tile_lines ? 0 : (int32_t)edge;
    add_map(prepared, i, o, mapped->tma_box_lines, offsetof(tgi_tma_operand, map));
    if (mapped->edge_lines)
        add_map(prepared, i, o, mapped->edge_lines, offsetof(tgi_tma_operand, edge_map));
}

static void prepare(const tgi_machine *machine, const tgi_problem *given,
                    const tgi_proposal *proposal, void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    dmma_tma_prepared *prepared = block;
    tgi_gemm_args *args = &prepared->tile.args;
    tgi_problem p = *given;
    tgi_operand operand[2];
    (void)machine;
    if (proposal->decision.tile.is_transposed)
        tgi_problem_transpose(&p);
    tgi_tile_prepare(&p, proposal, &prepared->tile);
    tgi_tile_set_entry_grid(kernel, &prepared->tile);
    prepared->is_copied = proposal->decision.tile.is_copied;
    if (prepared->is_copied) {
        snprintf(prepared->tile.multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s_copied", kernel->name);
        return;
    }
    tgi_dmma_tma_describe(&p, operand);
    args->a_along_k = !operand[0].is_across;
    args->b_along_k = !operand[1].is_across;
    prepared->args.gemm = *args;
    prepared->slots.slot = prepared->slot;
    prepare_operand(prepared, 0, &operand[0], kernel->tile_rows);
    prepare_operand(prepared, 1, &operand[1], kernel->tile_cols);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    dmma_tma_prepared *prepared = block;
    const int is_transposed = prepared->tile.is_transposed;
    const void *const base[2] = {is_transposed ? call->b : call->a,
                                 is_transposed ? call->a : call->b};
    tgi_dmma_tma_args args;
    if (prepared->is_copied)
        return tgi_tile_launch(queue, call, &prepared->tile);
    tg_status status =
        tgi_tensor_fill(queue->device, &prepared->slots, base, &prepared->args, &args, sizeof args);
    if (status)
        return status;
    tgi_gemm_complete_args(call, is_transposed, &args.gemm);
    status = tgi_cuda_run(queue, &prepared->tile.multiply, &args, sizeof args);
    return status ? status : tgi_gemm_add_splits(queue, &args.gemm, &prepared->tile.add);
}

const tgi_cuda_launcher tgi_cuda_launcher_dmma_tma = {count_prepared_bytes, prepare, launch};
