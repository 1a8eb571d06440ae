/*
 * Families wgmma, loose, bf16x, bf16r and fp16x: Hopper's matrix instructions. Legality, which
 * operands are repacked or cut into slices, which of D's sides the tiles' rows lie along, parts of
 * k, tensor maps, launch.
 */
#include <stdio.h>
#include <string.h>

#include "cuda/families/gemm.h"
#include "cuda/families/loose.h"
#include "cuda/families/operand.h"
#include "cuda/families/slice_panels.h"
#include "cuda/families/slices.h"
#include "cuda/families/wgmma_cut.h"
#include "kernels/tile_shape.h"
#include "kernels/wgmma/wgmma_args.h"
#include "model/wgmma_model.h"

#define UNIT_BYTES 16 /* that addresses of the copy engine are multiples of */
#define BOX_ROWS 64   /* of D */
#define BOX_BYTES 128
#define PIECE_THREADS 128
/* Of elements along a side and of tiles: the kernel adds a tile, or the number of blocks, to either
 * in 32 bits. */
#define COUNT_MAX (INT32_MAX - 1023)

static int is_16bit(tg_type type)
{
    return type == TG_TYPE_BF16 || type == TG_TYPE_FP16;
}

/* is_across: 1 where B's lines lie across k. */
static int64_t count_shared_bytes(const tgi_kernel *kernel, int is_across)
{
    const int line_bytes = tgi_wgmma_line_bytes(kernel);
    const int row_bytes = tgi_slices_are_held(kernel) ? TGI_WGMMA_STEP_BYTES : line_bytes;
    return TGI_WGMMA_SHARED_BYTES(kernel->tile_rows, row_bytes, kernel->tile_cols, line_bytes,
                                  kernel->stage_count, kernel->thread_count, is_across) +
           (tgi_loose_is(kernel) ? TGI_LOOSE_SHARED_BYTES : 0);
}

/* Of the layout that needs most. */
static int64_t count_most_shared_bytes(const tgi_kernel *kernel)
{
    const int64_t along = count_shared_bytes(kernel, 0);
    const int64_t across = is_16bit(kernel->type) ? count_shared_bytes(kernel, 1) : 0;
    return across > along ? across : along;
}

/* Of D, over all batch entries. Cut into parts of k, whose sums are in the workspace, it has far
 * fewer. */
static double count_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return (double)(tgi_wgmma_row_clusters(kernel, p, kernel->thread_rows) * kernel->thread_rows) *
           (double)tgi_wgmma_col_tiles(kernel, p) * (double)p->batch_count;
}

static int is_tf32(const tgi_kernel *kernel)
{
    return kernel->type == TG_TYPE_FP32 && !tgi_wgmma_is_sliced(kernel);
}

static void describe(const tgi_kernel *kernel, const tgi_problem *p, tgi_operand operand[2])
{
    const int is_wide = is_16bit(p->type);
    tgi_operand_describe(p, 0, is_wide || is_tf32(kernel), p->is_a_offset, &operand[0]);
    tgi_operand_describe(p, 1, is_wide, p->is_b_offset, &operand[1]);
    if (tgi_loose_is(kernel))
        tgi_loose_describe(&operand[0]);
}

/* The proposal for the problem as it stands; sums of cut tiles come first in the workspace. */
static void propose_one(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    tgi_operand operand[2];
    if (tgi_wgmma_is_sliced(proposal->kernel) && !tgi_slices_can_serve(p, proposal))
        return;
    describe(proposal->kernel, p, operand);
    if (tgi_loose_is(proposal->kernel) && !operand[0].is_loose) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_ALREADY_ALIGNED,
                   "neither operand has 8 lines or more of contiguous elements that begin between "
                   "multiples of 16 bytes, alike in all batch entries: family wgmma takes it");
        return;
    }
    proposal->resident_blocks = 1;
    tgi_wgmma_choose_cut(machine, p, operand, proposal);
    proposal->workspace_bytes = tgi_divide_up(proposal->workspace_bytes, 256) * 256;
    if (tgi_wgmma_is_sliced(proposal->kernel)) {
        proposal->workspace_bytes +=
            tgi_slices_workspace_bytes(machine, proposal->kernel, p, proposal->blocking.k_parts);
        proposal->predicted_s += tgi_model_slice_seconds(&machine->gpu, proposal->kernel, p);
        return;
    }
    const int64_t repacked_bytes =
        tgi_operand_workspace_bytes(&operand[0]) + tgi_operand_workspace_bytes(&operand[1]);
    proposal->workspace_bytes += repacked_bytes;
    proposal->predicted_s += tgi_model_repack_seconds(&machine->gpu, (double)repacked_bytes);
}

/* Refuses, with the reason, a precision that the kernel does not compute in. */
static int takes_precision(const tgi_problem *p, tgi_proposal *proposal)
{
    const char *name = p->type == TG_TYPE_FP32 ? "tf32" : "default";
    if (tgi_wgmma_is_sliced(proposal->kernel))
        return tgi_slices_take_precision(p, proposal);
    if (p->precision == (p->type == TG_TYPE_FP32 ? TG_PRECISION_TF32 : TG_PRECISION_DEFAULT))
        return 1;
    tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION, "computes %s in precision %s alone",
               tg_get_type_name(p->type), name);
    return 0;
}

void tgi_cuda_propose_wgmma(const tgi_machine *machine, const tgi_problem *given,
                            tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_problem *p = given;
    tgi_problem panel;
    double panel_count = 1.0;
    if (!tgi_gemm_fits(machine, count_most_shared_bytes(kernel), proposal))
        return;
    if (!takes_precision(p, proposal))
        return;
    if (tgi_wgmma_is_sliced(kernel)) {
        panel_count = tgi_panels_choose(machine, given, proposal, &panel);
        p = &panel;
        if (panel_count == 0.0)
            return;
    }
    const int64_t sizes[] = {p->m, p->n, p->k, p->batch_count};
    for (int i = 0; i < 4; i++) {
        if (sizes[i] > COUNT_MAX) {
            tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                       "the copy engine counts to %d, a size is %lld", COUNT_MAX,
                       (long long)sizes[i]);
            return;
        }
    }
    if (count_tiles(kernel, p) > COUNT_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "D has %.0f tiles of %d x %d; %d is the limit: take a larger tile",
                   count_tiles(kernel, p), kernel->tile_rows, kernel->tile_cols, COUNT_MAX);
        return;
    }
    proposal->needs_aligned[0] = proposal->needs_aligned[1] =
        !tgi_wgmma_is_sliced(kernel) || tgi_slices_are_held(kernel);
    propose_one(machine, p, proposal);
    /* The transposed problem: tiles whose rows lie along D's columns. */
    tgi_problem transposed = *p;
    tgi_problem_transpose(&transposed);
    tgi_proposal other = *proposal;
    other.is_legal = 0;
    propose_one(machine, &transposed, &other);
    const int may_turn =
        p->type == p->b_type && !(tgi_wgmma_is_sliced(kernel) && p->is_batch_invariant);
    if (may_turn && other.is_legal && count_tiles(kernel, &transposed) <= COUNT_MAX &&
        (!proposal->is_legal || other.predicted_s < proposal->predicted_s)) {
        *proposal = other;
        proposal->blocking.is_along_rows = 1;
    }
    if (tgi_loose_is(kernel)) /* whose maps are of the pointer that comes */
        proposal->needs_aligned[proposal->blocking.is_along_rows] = 0;
    proposal->predicted_s *= panel_count;
}

/* Maps of A and B, in the workspace from `memory` on where they are repacked. */
static tg_status map_operands(const tgi_cuda_queue *queue, const tgi_call *call, char *memory,
                              const tgi_operand operand[2], tgi_wgmma_args *args,
                              tgi_wgmma_loose *loose)
{
    const tgi_gemm_args *gemm = &args->gemm;
    tgi_repack_args repack = {.job[0].piece_count = 0};
    int is_repacked = 0;
    for (int i = 0; i < 2; i++) {
        const tgi_operand *o = &operand[i];
        const void *data = i ? gemm->b : gemm->a;
        tgi_wgmma_operand *mapped = i ? &args->b : &args->a;
        mapped->has_batch = o->batch_count > 1;
        if (o->is_loose) {
            tg_status status = tgi_loose_map(queue, o, data, loose);
            if (status)
                return status;
            continue;
        }
        if (o->is_repacked) {
            tgi_operand_set_job(o, data, memory, &repack.job[i]);
            data = memory;
            memory += tgi_operand_workspace_bytes(o);
            is_repacked = 1;
        }
        const int step = (int)(TGI_WGMMA_STEP_BYTES / o->elem_bytes);
        const tgi_tensor tensor = {.data = data,
                                   .elem_bytes = o->elem_bytes,
                                   .count = {o->is_across ? o->line_count : o->k,
                                             o->is_across ? o->k : o->line_count, o->batch_count},
                                   .stride_bytes = {o->pitch_bytes, o->batch_bytes},
                                   .is_swizzled = 1,
                                   .is_rounded = gemm->problem.type == TG_TYPE_FP32};
        tg_status status = tgi_tensor_encode_operand(queue, &tensor, step, 1, mapped);
        if (status)
            return status;
    }
    return is_repacked ? tgi_operand_repack(queue, call->machine->gpu.sm_count, &repack,
                                            operand[0].elem_bytes)
                       : TG_STATUS_OK;
}

/* The map of D, where it takes boxes. */
static tg_status map_result(const tgi_cuda_queue *queue, const tgi_kernel *kernel,
                            tgi_wgmma_args *args)
{
    const tgi_gemm_args *gemm = &args->gemm;
    const tgi_problem *p = &gemm->problem;
    const int64_t elem_bytes = tgi_type_bytes(p->d_type);
    const int is_turned = tgi_wgmma_is_turned(kernel, p);
    const int64_t elems = is_turned ? p->m : p->n, lines = is_turned ? p->n : p->m;
    const int64_t step = is_turned ? p->d.col : p->d.row; /* from line to line */
    const int64_t pitch = lines == 1 ? tgi_divide_up(elems, 8) * 8 : step;
    const int64_t batch = p->batch_count == 1 ? lines * pitch : p->d.batch;
    const tgi_tensor tensor = {.data = gemm->d,
                               .elem_bytes = elem_bytes,
                               .count = {elems, lines, p->batch_count},
                               .stride_bytes = {pitch * elem_bytes, batch * elem_bytes},
                               .is_swizzled = 1};
    const int box_elems = (int)(BOX_BYTES / elem_bytes);
    const int part_cols = TGI_WGMMA_PART_COLS(kernel->tile_cols);
    args->is_d_boxed = tgi_wgmma_is_d_boxed(kernel, p) && (uintptr_t)gemm->d % UNIT_BYTES == 0;
    args->is_d_lined = is_turned ? elem_bytes > 1 : p->d.col == 1;
    args->is_d_turned = args->is_d_lined && is_turned;
    return args->is_d_boxed
               ? tgi_tensor_encode(queue, &tensor,
                                   is_turned || box_elems < part_cols ? box_elems : part_cols,
                                   is_turned ? part_cols : BOX_ROWS, &args->d)
               : TG_STATUS_OK;
}

static const char *find_suffix(const tgi_problem *p, const tgi_operand operand[2])
{
    static const char *const names[] = {"_kk", "_kn", "_mk", "_mn"};
    if (tgi_type_is_fp8(p->type))
        return p->b_type == TG_TYPE_FP8_E4M3 ? "_e4m3" : "_e5m2";
    return names[2 * operand[0].is_across + operand[1].is_across];
}

/* rows: of clusters, of a group. */
static tgi_wgmma_order make_order(int64_t row_clusters, int64_t col_tiles, int64_t rows)
{
    const int64_t last_group = (row_clusters - 1) / rows;
    return (tgi_wgmma_order){.entry = tgi_make_divisor((int32_t)(row_clusters * col_tiles)),
                             .group = tgi_make_divisor((int32_t)(rows * col_tiles)),
                             .rows = tgi_make_divisor((int32_t)rows),
                             .last_rows =
                                 tgi_make_divisor((int32_t)(row_clusters - last_group * rows)),
                             .last_group = (int32_t)last_group};
}

/* How the tiles are shared out, and their lines. */
static void set_tiles(const tgi_call *call, const tgi_operand operand[2], tgi_wgmma_args *args)
{
    const tgi_kernel *kernel = call->kernel;
    const tgi_problem *p = &args->gemm.problem;
    const int cluster_rows = call->blocking->cluster_rows;
    const int64_t row_clusters = tgi_wgmma_row_clusters(kernel, p, cluster_rows);
    tgi_gemm_set_parts(call, &args->gemm);
    args->order = make_order(row_clusters, tgi_wgmma_col_tiles(kernel, p),
                             tgi_wgmma_group_rows(kernel, p, cluster_rows));
    args->tile_rows = kernel->tile_rows;
    args->tile_cols = kernel->tile_cols;
    args->cluster_rows = cluster_rows;
    args->cluster_parts = call->blocking->cluster_parts;
    const int64_t units = args->order.entry.value * p->batch_count;
    const int64_t whole =
        args->gemm.k_part_count > 1 ? call->blocking->whole_tiles / cluster_rows : units;
    args->whole_count = (int32_t)whole;
    args->cut = tgi_make_divisor(units > whole ? (int32_t)(units - whole) : 1);
    args->unit_count = (int32_t)(whole + (units - whole) * args->gemm.k_part_count);
    args->step_count = (int32_t)tgi_divide_up(p->k, kernel->tile_depth);
    const int64_t last_elems = p->k - (args->step_count - 1) * (int64_t)kernel->tile_depth;
    args->last_products =
        (int32_t)tgi_divide_up(last_elems * tgi_type_bytes(p->type), TGI_WGMMA_PRODUCT_BYTES);
    args->steps_per_part = (int32_t)tgi_divide_up(args->gemm.k_part_elems, kernel->tile_depth);
    args->a.line_count = (int32_t)p->m;
    args->b.line_count = (int32_t)p->n;
    args->a.edge_lines =
        operand[0].is_loose
            ? 0
            : tgi_wgmma_edge_lines(kernel, p, 0, operand[0].is_across, cluster_rows);
    args->b.edge_lines = tgi_wgmma_edge_lines(kernel, p, 1, operand[1].is_across, cluster_rows);
    args->a.box_lines = tgi_wgmma_box_lines(kernel, p, 0, operand[0].is_across, cluster_rows);
    args->b.box_lines = tgi_wgmma_box_lines(kernel, p, 1, operand[1].is_across, cluster_rows);
}

/* Adds the parts of the tiles that are cut. */
static tg_status add_pieces(const tgi_cuda_queue *queue, tgi_wgmma_args *args)
{
    if (args->unit_count == args->whole_count)
        return TG_STATUS_OK;
    const int cols = TGI_WGMMA_PART_COLS(args->tile_cols);
    const int64_t pieces = (int64_t)args->cut.value * args->cluster_rows * (args->tile_rows / 64) *
                           (args->tile_cols / cols);
    const tgi_cuda_launch launch = {.grid = {(unsigned)pieces, 1, 1},
                                    .block = {PIECE_THREADS, 1, 1},
                                    .shared_bytes = 1024 + TGI_WGMMA_PART_BYTES,
                                    .is_early = 1};
    const char *symbol = cols == 64   ? "tgi_wgmma_add_64"
                         : cols == 32 ? "tgi_wgmma_add_32"
                                      : "tgi_wgmma_add_16";
    void *arguments[] = {args};
    return tgi_cuda_run(queue, "wgmma_add", symbol, &launch, arguments);
}

static tg_status launch_one(const tgi_cuda_queue *queue, const tgi_call *call)
{
    const tgi_kernel *kernel = call->kernel;
    tgi_loose_args all; /* of which the other families take the first part alone */
    memset(&all, 0, sizeof all);
    tgi_wgmma_args *args = &all.wgmma;
    if (call->blocking->is_along_rows)
        tgi_gemm_set_transposed_args(call, &args->gemm);
    else
        tgi_gemm_set_args(call, &args->gemm);
    const tgi_problem *p = &args->gemm.problem;
    tgi_operand operand[2];
    describe(kernel, p, operand);
    set_tiles(call, operand, args);
    char *memory = call->workspace;
    memory += tgi_divide_up(tgi_wgmma_piece_bytes(kernel, p, call->blocking), 256) * 256;
    tg_status status = tgi_wgmma_is_sliced(kernel)
                           ? tgi_slices_map(queue, call, memory, args)
                           : map_operands(queue, call, memory, operand, args, &all.loose);
    if (!status)
        status = map_result(queue, kernel, args);
    if (status)
        return status;
    /* Parts of k in clusters: as many clusters as tiles, which need not run at once. */
    const int cluster = args->cluster_rows * args->cluster_parts;
    const int64_t slots = call->machine->gpu.sm_count / cluster;
    const int64_t clusters =
        args->cluster_parts > 1 || args->unit_count < slots ? args->unit_count : slots;
    const tgi_cuda_launch shape = {.grid = {(unsigned)(cluster * clusters), 1, 1},
                                   .cluster = (unsigned)cluster,
                                   .block = {(unsigned)kernel->thread_count, 1, 1},
                                   .shared_bytes =
                                       (unsigned)count_shared_bytes(kernel, operand[1].is_across),
                                   .is_early = 1};
    void *arguments[] = {&all};
    char symbol[TGI_CUDA_SYMBOL_BYTES];
    snprintf(symbol, sizeof symbol, "%s%s", kernel->name,
             tgi_wgmma_is_sliced(kernel) ? "" : find_suffix(p, operand));
    status = tgi_cuda_run(queue, kernel->image, symbol, &shape, arguments);
    return status ? status : add_pieces(queue, args);
}

tg_status tgi_cuda_launch_wgmma(const tgi_cuda_queue *queue, const tgi_call *call)
{
    return tgi_panels_launch(queue, call, launch_one);
}
