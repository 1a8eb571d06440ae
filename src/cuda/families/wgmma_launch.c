/*
 * Launches the families wgmma, `loose`, bf16x, bf16r and fp16x. A plan keeps the kernels and their
 * arguments for each size of panel of D. A launch fills in pointers and addresses of tensor maps.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/families/repack_launch.h"
#include "cuda/families/slice_panels_launch.h"
#include "cuda/families/slices_launch.h"
#include "cuda/families/wgmma.h"
#include "cuda/families/wgmma_terms.h"
#include "cuda/families/wgmma_tiles.h"
#include "cuda/families/wgmma_tiling.h"
#include "kernels/wgmma/wgmma_args.h"
#include "kernels/wgmma/wgmma_shape.h"
#include "model/wgmma_work.h"

#define TMA_BOX_ROWS 64   /* rows of a TMA box of D, most lines of one of C */
#define TMA_BOX_BYTES 128 /* bytes of such a row */
#define ADD_THREADS 128
#define WORKSPACE_UNIT_BYTES 256
#define SECTOR_BYTES 32 /* bytes that L2 reads together */

enum { BASE_A, BASE_B, BASE_C, BASE_D, BASE_COUNT, SLOT_COUNT = BASE_COUNT + TGI_UNALIGNED_KINDS };

/* The launches of one panel of D, or of all of D. */
typedef struct wgmma_panel {
    tgi_unaligned_args args; /* other families than `loose` take only the first member */
    size_t args_bytes;
    int is_transposed, is_sliced, is_a_unaligned;
    tgi_tensor_slots slots;
    tgi_tensor_slot slot[SLOT_COUNT];
    int is_repacked[2];
    int64_t place[2]; /* offsets of repacked operands in the workspace */
    tgi_repack_prepared repack;
    tgi_slices_prepared slices;
    tgi_cuda_kernel multiply, add;
} wgmma_panel;

typedef struct wgmma_prepared {
    tgi_slice_panel size; /* 0 rows: one panel of all batch entries */
    wgmma_panel panel[];  /* by kind (slice_panels_launch.h) */
} wgmma_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    const int64_t kinds = tgi_slice_panels_count_kinds(&proposal->decision.wgmma.panel);
    (void)p;
    return (int64_t)sizeof(wgmma_prepared) + kinds * (int64_t)sizeof(wgmma_panel);
}

static void add_slot(wgmma_panel *panel, int operand, const tgi_tensor *tensor, size_t offset)
{
    panel->slot[panel->slots.count++] = (tgi_tensor_slot){
        .tensor = *tensor, .operand = operand, .argument_offset = (int64_t)offset};
}

/* Adds the tensor map of A, or of B if i is 1, and the map of its edge. A run of the tensor is
 * group_lines lines of the operand. */
static void add_operand_maps(wgmma_panel *panel, int i, const tgi_tensor *tensor, int group_lines)
{
    const tgi_tma_operand *operand = i ? &panel->args.wgmma.b : &panel->args.wgmma.a;
    const size_t offset =
        i ? offsetof(tgi_unaligned_args, wgmma.b) : offsetof(tgi_unaligned_args, wgmma.a);
    tgi_tensor map_tensor = *tensor;
    map_tensor.tma_box_runs = operand->tma_box_lines / group_lines;
    add_slot(panel, i, &map_tensor, offset + offsetof(tgi_tma_operand, map));
    map_tensor.tma_box_runs = operand->edge_lines / group_lines;
    if (operand->edge_lines)
        add_slot(panel, i, &map_tensor, offset + offsetof(tgi_tma_operand, edge_map));
}

/* Adds the maps of an unaligned A. Every eighth line has the same offset from a multiple of 16
 * bytes, and those lines share a map. */
static void add_unaligned_maps(wgmma_panel *panel, const tgi_operand *o)
{
    const tgi_runs runs = tgi_operand_runs(o);
    for (int i = 0; i < TGI_UNALIGNED_KINDS; i++) {
        const tgi_tensor tensor = {
            .elem_bytes = o->elem_bytes,
            .count = {runs.length, tgi_divide_up(runs.count - i, TGI_UNALIGNED_KINDS),
                      o->batch_count},
            .stride_bytes = {o->pitch_bytes * TGI_UNALIGNED_KINDS, o->batch_bytes},
            .tma_box_elems = (int)(TGI_UNALIGNED_LINE_BYTES / o->elem_bytes),
            .tma_box_runs = TGI_UNALIGNED_LINES / TGI_UNALIGNED_KINDS};
        tgi_tensor_slot *slot = &panel->slot[panel->slots.count];
        add_slot(panel, BASE_A, &tensor,
                 offsetof(tgi_unaligned_args, a_lines.map[0]) + (size_t)i * sizeof(tgi_tensor_map));
        slot->operand_offset = i * o->pitch_bytes;
        slot->is_shifted = 1;
    }
}

/* Returns the elements of a line of a TMA box: those of a step or, in lines across k, at most the
 * rows of a tile, or the columns of B in whole sectors. */
static int count_box_elems(const tgi_wgmma_args *args, const tgi_operand *operand, int is_b)
{
    const int elems = (int)(TGI_WGMMA_STEP_BYTES / operand->elem_bytes);
    const int64_t most =
        is_b ? tgi_round_up(operand->line_count, SECTOR_BYTES / operand->elem_bytes) : args->d_rows;
    return operand->is_across && most < elems ? (int)most : elems;
}

/* Prepares A and B that are read where they lie or repacked. Copies lie in the workspace from
 * `offset` on. */
static void prepare_operands(const tgi_machine *machine, const tgi_operand operand[2],
                             int64_t offset, wgmma_panel *panel)
{
    tgi_wgmma_args *args = &panel->args.wgmma;
    for (int i = 0; i < 2; i++) {
        const tgi_operand *o = &operand[i];
        tgi_tma_operand *mapped = i ? &args->b : &args->a;
        mapped->has_batch = o->batch_count > 1;
        if (o->is_unaligned) {
            add_unaligned_maps(panel, o);
            panel->is_a_unaligned = 1;
            continue;
        }
        if (o->is_repacked) {
            tgi_repack_add(o, &panel->repack.args.job[i]);
            panel->is_repacked[i] = 1;
            panel->place[i] = offset;
            offset += tgi_operand_workspace_bytes(o);
        }
        const tgi_tensor tensor = {.elem_bytes = o->elem_bytes,
                                   .count = {o->is_across ? o->line_count : o->k,
                                             o->is_across ? o->k : o->line_count, o->batch_count},
                                   .stride_bytes = {o->pitch_bytes, o->batch_bytes},
                                   .tma_box_elems = count_box_elems(args, o, i),
                                   .is_swizzled = 1,
                                   .is_rounded = args->gemm.problem.type == TG_TYPE_FP32};
        *(i ? &args->b_line_bytes : &args->a_line_bytes) =
            (int32_t)(tensor.tma_box_elems * o->elem_bytes);
        add_operand_maps(panel, i, &tensor, 1);
    }
    if (panel->is_repacked[0] || panel->is_repacked[1])
        tgi_repack_prepare(machine->gpu.sm_count, operand[0].elem_bytes, &panel->repack);
}

static void take_facts(const tgi_slice_facts *facts, tgi_wgmma_args *args)
{
    args->a.has_batch = facts->has_batch[0];
    args->b.has_batch = facts->has_batch[1];
    args->a_slices = facts->ranges[0];
    args->b_slices = facts->ranges[1];
    args->slice_count = facts->slice_count;
    args->first_product = facts->first_product;
    args->run_sums = facts->run_sums;
}

/* Prepares the slices of A and B, in the workspace from `offset` on. */
static void prepare_slices(const tgi_machine *machine, const tgi_kernel *kernel, int64_t offset,
                           wgmma_panel *panel)
{
    tgi_tensor tensor[2];
    tgi_wgmma_args *args = &panel->args.wgmma;
    tgi_slices_prepare(machine, kernel, &args->gemm.problem, args->gemm.split_count, offset, tensor,
                       &panel->slices);
    take_facts(&panel->slices.facts, args);
    for (int i = 0; i < 2; i++) {
        const int is_a_in_registers = i == 0 && panel->slices.is_a_in_registers;
        add_operand_maps(panel, i, &tensor[i], is_a_in_registers ? 1 : TGI_GROUP_LINES);
    }
}

/* Returns the tensor of C or D with boxes of 128 bytes and 64 lines. Its lines are columns if
 * is_transposed is 1, else rows. */
static tgi_tensor describe_lines(const tgi_problem *p, const tgi_layout *layout, int is_transposed)
{
    const int64_t elem_bytes = tgi_type_bytes(p->d_type);
    const int64_t elems = is_transposed ? p->m : p->n, lines = is_transposed ? p->n : p->m;
    const int64_t stride = is_transposed ? layout->col : layout->row; /* from line to line */
    const int64_t pitch = lines == 1 ? tgi_round_up(elems, 8) : stride;
    const int64_t batch = p->batch_count == 1 ? pitch : layout->batch;
    return (tgi_tensor){.elem_bytes = elem_bytes,
                        .count = {elems, lines, p->batch_count},
                        .stride_bytes = {pitch * elem_bytes, batch * elem_bytes},
                        .tma_box_elems = (int)(TMA_BOX_BYTES / elem_bytes),
                        .tma_box_runs = TMA_BOX_ROWS,
                        .is_swizzled = 1};
}

/* Prepares the tensor map of what comes through stages behind the products: C, or a bias. A box has
 * at most as many lines as C, rounded up to a multiple of eight, and at most as many columns as a
 * tile. */
static void prepare_terms(const tgi_kernel *kernel, wgmma_panel *panel)
{
    tgi_wgmma_args *args = &panel->args.wgmma;
    const tgi_problem *p = &args->gemm.problem;
    args->c.is_summed = tgi_wgmma_is_c_summed(kernel, p);
    if (args->c.is_summed || args->work.cluster_splits == 1)
        args->c.source = tgi_wgmma_find_c_source(kernel, p);
    const int is_split = args->work.cluster_splits > 1 || args->gemm.split_count > 1;
    args->c.bias = tgi_wgmma_is_bias_staged(kernel, p, is_split) ? p->epilogue.bias : TG_BIAS_NONE;
    args->c.is_transposed = tgi_wgmma_is_c_transposed(p);
    tgi_tensor tensor = describe_lines(p, &p->c, args->c.is_transposed);
    if (args->c.bias != TG_BIAS_NONE) {
        tensor.count[0] = args->c.bias == TG_BIAS_ROW ? p->m : p->n;
        tensor.count[1] = tensor.count[2] = 1;
        tensor.stride_bytes[0] = tensor.stride_bytes[1] = tgi_round_up(tensor.count[0], 8) * 2;
        tensor.tma_box_runs = 8;
    }
    const int64_t lines = tgi_round_up(tensor.count[1], 8);
    const int is_staged = args->c.source == TGI_C_STAGED;
    if (is_staged && args->c.is_transposed && kernel->tile_cols < TMA_BOX_ROWS)
        tensor.tma_box_runs = kernel->tile_cols;
    if (lines < tensor.tma_box_runs)
        tensor.tma_box_runs = (int)lines;
    args->c.box_lines = tensor.tma_box_runs;
    if (is_staged || args->c.bias != TG_BIAS_NONE)
        add_slot(panel, BASE_C, &tensor, offsetof(tgi_unaligned_args, wgmma.c_map));
}

/* Prepares the store of D, with a tensor map if TMA stores it. */
static void prepare_result(const tgi_kernel *kernel, wgmma_panel *panel)
{
    tgi_wgmma_args *args = &panel->args.wgmma;
    const tgi_problem *p = &args->gemm.problem;
    const int64_t elem_bytes = tgi_type_bytes(p->d_type);
    const int is_transposed = tgi_wgmma_is_d_transposed(kernel, p);
    const int box_cols = args->work.cluster_splits > 1 ? tgi_wgmma_sent_cols(kernel)
                                                       : TGI_FRAGMENT_COLS(kernel->tile_cols);
    tgi_tensor tensor = describe_lines(p, &p->d, is_transposed);
    int *row_elems = is_transposed ? &tensor.tma_box_elems : &tensor.tma_box_runs;
    int *col_elems = is_transposed ? &tensor.tma_box_runs : &tensor.tma_box_elems;
    if (*row_elems > args->d_rows)
        *row_elems = args->d_rows;
    if (*col_elems > box_cols)
        *col_elems = box_cols;
    args->d.is_tma_stored = tgi_wgmma_is_d_tma_stored(kernel, p);
    args->d.is_lined = is_transposed ? elem_bytes > 1 : p->d.col == 1;
    args->d.is_transposed = args->d.is_lined && is_transposed;
    args->d.is_relu = tgi_wgmma_is_relu_stored(kernel, p);
    if (args->d.is_relu)
        args->gemm.problem.epilogue.activation = TG_ACTIVATION_NONE;
    tgi_wgmma_describe_epilogue(args);
    if (args->d.is_tma_stored)
        add_slot(panel, BASE_D, &tensor, offsetof(tgi_unaligned_args, wgmma.d_map));
}

/* Prepares the kernel that adds partial tiles, if any tile is split. */
static void prepare_add(const tgi_wgmma_args *args, tgi_cuda_kernel *add)
{
    if (args->work.unit_count == args->work.whole_count)
        return;
    const int has_slices = args->slice_count > 0;
    const int cols = has_slices ? 32 : 16;
    const int64_t fragments = (int64_t)args->work.split_clusters.value * args->work.cluster_rows *
                              (args->work.tile_rows / args->d_rows) * (args->work.tile_cols / cols);
    *add = (tgi_cuda_kernel){.image = "wgmma_add",
                             .grid = {(unsigned)fragments, 1, 1},
                             .block = {ADD_THREADS, 1, 1},
                             .shared_bytes = has_slices ? 1024 + TGI_FRAGMENT_BYTES : 0,
                             .is_early = 1};
    snprintf(add->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_wgmma_add_%s",
             has_slices ? "slices" : "parts");
}

static void prepare_multiply(const tgi_machine *machine, const tgi_kernel *kernel,
                             const tgi_operand operand[2], int sm_blocks, wgmma_panel *panel)
{
    const tgi_wgmma_args *args = &panel->args.wgmma;
    /* Splits over clusters need one cluster a tile. The clusters need not run at once. */
    const int cluster = args->work.cluster_rows * args->work.cluster_splits;
    const int64_t slots = (int64_t)machine->gpu.sm_count / cluster * sm_blocks;
    const int64_t clusters = args->work.cluster_splits > 1 || args->work.unit_count < slots
                                 ? args->work.unit_count
                                 : slots;
    panel->multiply = (tgi_cuda_kernel){
        .image = kernel->image,
        .grid = {(unsigned)(cluster * clusters), 1, 1},
        .cluster = (unsigned)cluster,
        .block = {(unsigned)kernel->thread_count, 1, 1},
        .shared_bytes = (unsigned)tgi_wgmma_launch_bytes(kernel, &args->work, operand[1].is_across),
        .is_early = 1};
    snprintf(panel->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s%s", kernel->name,
             tgi_wgmma_find_suffix(&args->gemm.problem, operand));
}

static void prepare_panel(const tgi_machine *machine, const tgi_kernel *kernel,
                          const tgi_problem *given, const tgi_wgmma_decision *decision,
                          wgmma_panel *panel)
{
    tgi_wgmma_args *args = &panel->args.wgmma;
    tgi_problem p = *given;
    tgi_operand operand[2];
    if (decision->is_transposed)
        tgi_problem_transpose(&p);
    panel->is_transposed = decision->is_transposed;
    panel->is_sliced = tgi_kernels_has_slices(kernel);
    panel->slots.slot = panel->slot;
    panel->args_bytes =
        tgi_wgmma_reads_unaligned(kernel) ? sizeof panel->args : sizeof panel->args.wgmma;
    tgi_gemm_prepare_args(&p, &args->gemm);
    tgi_wgmma_describe(kernel, &p, operand);
    tgi_wgmma_prepare_tiles(kernel, decision, operand, args);
    args->is_next_early =
        tgi_wgmma_is_next_early(machine, kernel, &p, operand, decision->cluster_rows);
    const int64_t offset =
        tgi_round_up(tgi_wgmma_partial_tile_bytes(kernel, &p, decision), WORKSPACE_UNIT_BYTES);
    if (panel->is_sliced)
        prepare_slices(machine, kernel, offset, panel);
    else
        prepare_operands(machine, operand, offset, panel);
    prepare_terms(kernel, panel);
    prepare_result(kernel, panel);
    prepare_multiply(machine, kernel, operand, decision->sm_blocks, panel);
    prepare_add(args, &panel->add);
}

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    const tgi_wgmma_decision *decision = &proposal->decision.wgmma;
    wgmma_prepared *prepared = block;
    prepared->size = decision->panel;
    for (int i = 0; i < tgi_slice_panels_count_kinds(&decision->panel); i++) {
        tgi_problem panel;
        tgi_wgmma_decision panel_decision = *decision;
        if (i > 0) { /* the tiling was chosen for panels of full size */
            panel_decision.split_elems = p->k;
            panel_decision.split_count = panel_decision.cluster_splits = 1;
        }
        if (tgi_slice_panels_describe(p, &decision->panel, i, &panel))
            prepare_panel(machine, proposal->kernel, &panel, &panel_decision, &prepared->panel[i]);
    }
}

/* Puts the kernels that slice or repack operands into the queue. base[i] is the operand's address
 * on entry, and the address of its tensor map on return. */
static tg_status launch_before(const tgi_cuda_queue *queue, wgmma_panel *panel, char *workspace,
                               const void *base[2])
{
    const void *source[2] = {base[0], base[1]};
    void *target[2] = {NULL, NULL};
    if (panel->is_sliced)
        return tgi_slices_launch(queue, &panel->slices, source[0], source[1], workspace, base);
    for (int i = 0; i < 2; i++) {
        if (panel->is_repacked[i])
            base[i] = target[i] = workspace + panel->place[i];
        else
            source[i] = NULL;
    }
    return panel->repack.kernel.image ? tgi_repack_launch(queue, &panel->repack, source, target)
                                      : TG_STATUS_OK;
}

/* Fills the arguments of a call whose maps begin at base[0..]. */
static tg_status fill_args(const tgi_cuda_queue *queue, const tgi_call *call,
                           const void *const base[], wgmma_panel *panel, tgi_unaligned_args *args)
{
    tgi_wgmma_args *wgmma = &args->wgmma;
    tg_status status =
        tgi_tensor_fill(queue->device, &panel->slots, base, &panel->args, args, panel->args_bytes);
    if (status)
        return status;
    tgi_gemm_complete_args(call, panel->is_transposed, &wgmma->gemm);
    wgmma->d.is_tma_stored = wgmma->d.is_tma_stored && base[BASE_D];
    if (wgmma->c.source != TGI_C_LATE || wgmma->c.bias != TG_BIAS_NONE)
        tgi_wgmma_place_terms(base[BASE_C] != NULL, wgmma);
    if (panel->is_sliced) {
        const tgi_slice_facts facts = tgi_slices_find_facts(&panel->slices, call->workspace);
        take_facts(&facts, wgmma);
    }
    for (int i = 0; panel->is_a_unaligned && i < TGI_UNALIGNED_KINDS; i++)
        args->a_lines.shifts |=
            tgi_tensor_shift((const char *)base[BASE_A] + panel->slot[i].operand_offset) << 4 * i;
    return TG_STATUS_OK;
}

static tg_status launch_panel(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    wgmma_panel *panel = block;
    const int is_transposed = panel->is_transposed;
    const void *terms = panel->args.wgmma.c.bias != TG_BIAS_NONE ? call->bias : call->c;
    const void *base[BASE_COUNT] = {
        is_transposed ? call->b : call->a, is_transposed ? call->a : call->b,
        tgi_tensor_shift(terms) ? NULL : terms, tgi_tensor_shift(call->d) ? NULL : call->d};
    tgi_unaligned_args args;
    tg_status status = launch_before(queue, panel, call->workspace, base);
    if (!status)
        status = fill_args(queue, call, base, panel, &args);
    if (!status)
        status = tgi_cuda_run(queue, &panel->multiply, &args, panel->args_bytes);
    return status || !panel->add.image ? status
                                       : tgi_cuda_run(queue, &panel->add, &args, panel->args_bytes);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    wgmma_prepared *prepared = block;
    return tgi_slice_panels_launch(queue, call, &prepared->size, launch_panel, prepared->panel,
                                   sizeof prepared->panel[0]);
}

const tgi_cuda_launcher tgi_cuda_launcher_wgmma = {count_prepared_bytes, prepare, launch};
