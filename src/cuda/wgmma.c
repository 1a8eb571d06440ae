/*
 * Families wgmma, bf16x and fp16x: Hopper's matrix instructions. Legality, which operands are
 * repacked or cut into slices, which of D's sides the tiles' rows lie along, parts of k, tensor
 * maps, launch.
 */
#include <stdio.h>
#include <string.h>

#include "cuda/device.h"
#include "cuda/gemm.h"
#include "cuda/operand.h"
#include "cuda/slices.h"
#include "cuda/variants.h"
#include "kernels/tile_shape.h"
#include "kernels/wgmma/args.h"
#include "model/wgmma_model.h"

#define UNIT_BYTES 16 /* that addresses of the copy engine are multiples of */
#define TILE_ROWS_PER_GROUP 16
#define BOX_ROWS 64 /* of D */
#define BOX_BYTES 128
#define SLICED_K_LEAST 64 /* from which on sums by slices keep the bound of precision default */
#define SLICED_K_MAX ((int64_t)1 << 30)
#define SLICED_BYTES_LEAST ((int64_t)256 << 20) /* of workspace, that may be asked for */
#define SLICED_MEMORY_SHARE 16                  /* or this part of the GPU's memory */

typedef long long ll; /* for printf */

static int is_16bit(tg_type type)
{
    return type == TG_TYPE_BF16 || type == TG_TYPE_FP16;
}

static int is_sliced(const tgi_kernel *kernel)
{
    return kernel->family != TGI_FAMILY_cuda_wgmma;
}

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    const int line_bytes = !is_sliced(kernel)                        ? TGI_WGMMA_STEP_BYTES
                           : kernel->family == TGI_FAMILY_cuda_bf16x ? 3 * TGI_CHUNK_BYTES
                                                                     : 2 * TGI_CHUNK_BYTES;
    return TGI_WGMMA_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, line_bytes,
                                  kernel->stage_count, kernel->thread_count);
}

/* Blocks along D's rows and columns, whole clusters. */
static int64_t count_row_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return tgi_divide_up(p->m, (int64_t)kernel->tile_rows * kernel->thread_rows) *
           kernel->thread_rows;
}

static int64_t count_col_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return tgi_divide_up(p->n, (int64_t)kernel->tile_cols * kernel->thread_cols) *
           kernel->thread_cols;
}

static void describe(const tgi_problem *p, tgi_operand operand[2])
{
    const int is_rounded = p->type == TG_TYPE_FP32;
    tgi_operand_describe(p, 0, is_16bit(p->type), is_rounded, p->is_a_offset, &operand[0]);
    tgi_operand_describe(p, 1, is_16bit(p->type), is_rounded, p->is_b_offset, &operand[1]);
}

static int64_t count_sliced_bytes(const tgi_machine *machine, const tgi_problem *p)
{
    tgi_slice_job a, b;
    tgi_slices_describe(p, 0, machine->gpu.sm_count, &a);
    tgi_slices_describe(p, 1, machine->gpu.sm_count, &b);
    return tgi_slices_workspace_bytes(&a, p->precision) +
           tgi_slices_workspace_bytes(&b, p->precision);
}

/* The proposal for the problem as it stands; its parts of k come first in the workspace. */
static void propose_one(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_tile_work work = {.block_count = (double)count_row_tiles(kernel, p) *
                                               (double)count_col_tiles(kernel, p) *
                                               (double)p->batch_count,
                                .block_k = (double)p->k,
                                .part_count = 1.0,
                                .blocks_per_sm = 1,
                                .access = TGI_ACCESS_VECTORS};
    if (p->is_batch_invariant) {
        proposal->is_legal = 1;
        proposal->sum_order = TGI_SUM_ALONG_K;
        proposal->blocking.kc = p->k;
        proposal->blocking.k_parts = 1;
        proposal->predicted_s = tgi_model_wgmma_seconds(&machine->gpu, kernel, p, &work);
    } else {
        tgi_gemm_cut_k(machine, p, &work, tgi_model_wgmma_seconds, proposal);
    }
    proposal->workspace_bytes = tgi_divide_up(proposal->workspace_bytes, 256) * 256;
    if (is_sliced(kernel)) {
        proposal->workspace_bytes += count_sliced_bytes(machine, p);
        proposal->predicted_s += tgi_model_slice_seconds(&machine->gpu, p);
        return;
    }
    tgi_operand operand[2];
    describe(p, operand);
    const int64_t repacked_bytes =
        tgi_operand_workspace_bytes(&operand[0]) + tgi_operand_workspace_bytes(&operand[1]);
    proposal->workspace_bytes += repacked_bytes;
    proposal->predicted_s += tgi_model_repack_seconds(&machine->gpu, (double)repacked_bytes);
}

/* Refuses, with the reason, a precision that the kernel does not compute in. */
static int takes_precision(const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_family family = proposal->kernel->family;
    const tg_precision precision = p->precision;
    const char *names = p->type == TG_TYPE_FP32 ? "tf32" : "default";
    int takes = precision == (p->type == TG_TYPE_FP32 ? TG_PRECISION_TF32 : TG_PRECISION_DEFAULT);
    if (family == TGI_FAMILY_cuda_bf16x) {
        names = "default, bf16x3, bf16x6 or bf16x9";
        takes = precision == TG_PRECISION_DEFAULT ||
                (precision >= TG_PRECISION_BF16X3 && precision <= TG_PRECISION_BF16X9);
    } else if (family == TGI_FAMILY_cuda_fp16x) {
        names = "fp16x3";
        takes = precision == TG_PRECISION_FP16X3;
    }
    if (!takes)
        snprintf(proposal->reason, sizeof proposal->reason, "computes %s in precision %s alone",
                 tg_get_type_name(p->type), names);
    return takes;
}

/* The same for problems that slices do not serve. */
static int can_slice(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const int64_t bytes = count_sliced_bytes(machine, p);
    int64_t limit = machine->gpu.memory_bytes / SLICED_MEMORY_SHARE;
    limit = limit > SLICED_BYTES_LEAST ? limit : SLICED_BYTES_LEAST;
    if (p->precision == TG_PRECISION_DEFAULT && p->k < SLICED_K_LEAST)
        snprintf(proposal->reason, sizeof proposal->reason,
                 "keeps the bound of default from k = %d on, k is %lld", SLICED_K_LEAST, (ll)p->k);
    else if (p->is_batch_invariant)
        snprintf(proposal->reason, sizeof proposal->reason,
                 "its order of summation may depend on neighbouring rows");
    else if (bytes > limit || p->k > SLICED_K_MAX)
        snprintf(proposal->reason, sizeof proposal->reason,
                 "its slices need %lld bytes of workspace, more than %lld", (ll)bytes, (ll)limit);
    else
        return 1;
    return 0;
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t sizes[] = {p->m, p->n, p->k, p->batch_count};
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal))
        return;
    if (!takes_precision(p, proposal) || (is_sliced(kernel) && !can_slice(machine, p, proposal)))
        return;
    for (int i = 0; i < 4; i++) {
        if (sizes[i] > INT32_MAX) {
            snprintf(proposal->reason, sizeof proposal->reason,
                     "the copy engine counts to %d, a size is %lld", INT32_MAX, (ll)sizes[i]);
            return;
        }
    }
    const double tiles = (double)count_row_tiles(kernel, p) * (double)count_col_tiles(kernel, p);
    if (tiles * (double)p->batch_count * 1024.0 > INT32_MAX) {
        snprintf(proposal->reason, sizeof proposal->reason,
                 "D has %.0f tiles of %d x %d, too many for this one", tiles, kernel->tile_rows,
                 kernel->tile_cols);
        return;
    }
    proposal->needs_alignment = !is_sliced(kernel);
    propose_one(machine, p, proposal);
    /* The transposed problem: tiles whose rows lie along D's columns. */
    tgi_problem transposed = *p;
    tgi_gemm_transpose(&transposed);
    tgi_proposal other = *proposal;
    other.is_legal = 0;
    propose_one(machine, &transposed, &other);
    if (p->type == p->b_type && p->m < p->n && other.predicted_s < proposal->predicted_s) {
        *proposal = other;
        proposal->blocking.is_along_rows = 1;
    }
}

/* Maps of A and B, in the workspace from `memory` on where they are repacked. */
static tg_status map_operands(const tgi_cuda_queue *queue, const tgi_call *call, char *memory,
                              const tgi_operand operand[2], tgi_wgmma_args *args)
{
    const tgi_kernel *kernel = call->kernel;
    const tgi_gemm_args *gemm = &args->gemm;
    tgi_repack_args repack = {.is_rounded = gemm->problem.type == TG_TYPE_FP32};
    int is_repacked = 0;
    for (int i = 0; i < 2; i++) {
        const tgi_operand *o = &operand[i];
        const void *data = i ? gemm->b : gemm->a;
        if (o->is_repacked) {
            tgi_operand_set_job(o, data, memory, &repack.job[i]);
            data = memory;
            memory += tgi_operand_workspace_bytes(o);
            is_repacked = 1;
        }
        const int lines =
            i ? kernel->tile_cols / kernel->thread_rows : kernel->tile_rows / kernel->thread_cols;
        const int step = (int)(TGI_WGMMA_STEP_BYTES / o->elem_bytes);
        const int64_t count[3] = {o->is_across ? o->line_count : o->k,
                                  o->is_across ? o->k : o->line_count, o->batch_count};
        const int64_t stride_bytes[2] = {o->pitch_bytes, o->batch_bytes};
        const int box[2] = {step, o->is_across ? step : lines};
        tgi_wgmma_operand *mapped = i ? &args->b : &args->a;
        mapped->has_batch = o->batch_count > 1;
        tg_status status = tgi_operand_encode(queue, &mapped->map, data, o->elem_bytes, count,
                                              stride_bytes, box, 1);
        if (status)
            return status;
    }
    return is_repacked ? tgi_operand_repack(queue, call->machine->gpu.sm_count, &repack,
                                            operand[0].elem_bytes)
                       : TG_STATUS_OK;
}

/* The same of slices, which are made in the workspace. */
static tg_status map_slices(const tgi_cuda_queue *queue, const tgi_call *call, char *memory,
                            tgi_wgmma_args *args)
{
    const tgi_kernel *kernel = call->kernel;
    const tgi_problem *p = &args->gemm.problem;
    const int sm_count = call->machine->gpu.sm_count;
    tgi_slice_args slices;
    memset(&slices, 0, sizeof slices);
    args->slice_count = tgi_slices_count(p->precision);
    args->first_product = TGI_SLICE_PRODUCTS - tgi_slices_count_products(p->precision);
    for (int i = 0; i < 2; i++) {
        tgi_slice_job *job = &slices.job[i];
        tgi_slices_describe(p, i, sm_count, job);
        tgi_slices_place(p->precision, i ? args->gemm.b : args->gemm.a, memory, job);
        memory += tgi_slices_workspace_bytes(job, p->precision);
        tgi_wgmma_operand *mapped = i ? &args->b : &args->a;
        mapped->has_batch = job->batch_count > 1;
        *(i ? &args->b_slices : &args->a_slices) =
            (tgi_wgmma_slices){.ranges = job->ranges,
                               .line_scale = job->line_scale,
                               .line_count = (int32_t)job->line_count,
                               .block_count = job->block_count,
                               .segment_count = job->segment_count};
        const int lines =
            i ? kernel->tile_cols / kernel->thread_rows : kernel->tile_rows / kernel->thread_cols;
        tg_status status = tgi_slices_encode(queue, job, args->slice_count, lines, &mapped->map);
        if (status)
            return status;
    }
    return tgi_slices_make(queue, sm_count, p->precision, &slices);
}

/* The map of D or of the parts of k, where boxes can be written: rows of whole units, since the
 * copy engine clips what it writes to those. */
static tg_status map_result(const tgi_cuda_queue *queue, const tgi_kernel *kernel,
                            tgi_wgmma_args *args)
{
    const tgi_gemm_args *gemm = &args->gemm;
    const tgi_problem *p = &gemm->problem;
    const int is_part = gemm->k_part_count > 1;
    const int64_t elem_bytes = is_part ? 4 : tgi_type_bytes(p->d_type);
    const int64_t count[3] = {p->n, p->m,
                              is_part ? p->batch_count * gemm->k_part_count : p->batch_count};
    const int64_t row = is_part ? p->n : p->m == 1 ? tgi_divide_up(p->n, 8) * 8 : p->d.row;
    const int64_t batch = is_part ? p->m * p->n : p->batch_count == 1 ? p->m * row : p->d.batch;
    const int64_t stride_bytes[2] = {row * elem_bytes, batch * elem_bytes};
    const int box_cols = (int)(BOX_BYTES / elem_bytes);
    const int box[2] = {box_cols < kernel->tile_cols ? box_cols : kernel->tile_cols, BOX_ROWS};
    const void *data = is_part ? gemm->workspace : gemm->d;
    args->is_d_boxed = (is_part || (args->is_sum_alone && p->d.col == 1 && row >= p->n)) &&
                       elem_bytes > 1 && p->n * elem_bytes % UNIT_BYTES == 0 &&
                       stride_bytes[0] % UNIT_BYTES == 0 && stride_bytes[1] % UNIT_BYTES == 0 &&
                       batch > 0 && (uintptr_t)data % UNIT_BYTES == 0;
    return args->is_d_boxed
               ? tgi_operand_encode(queue, &args->d, data, elem_bytes, count, stride_bytes, box, 1)
               : TG_STATUS_OK;
}

static const char *find_suffix(const tgi_problem *p, const tgi_operand operand[2])
{
    static const char *const names[] = {"kk", "kn", "mk", "mn"};
    if (tgi_type_is_fp8(p->type))
        return p->b_type == TG_TYPE_FP8_E4M3 ? "e4m3" : "e5m2";
    return names[2 * operand[0].is_across + operand[1].is_across];
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call)
{
    const tgi_kernel *kernel = call->kernel;
    tgi_wgmma_args args;
    memset(&args, 0, sizeof args);
    if (call->blocking->is_along_rows)
        tgi_gemm_set_transposed_args(call, &args.gemm);
    else
        tgi_gemm_set_args(call, &args.gemm);
    tgi_gemm_set_parts(call, &args.gemm);
    const tgi_problem *p = &args.gemm.problem;
    const int cluster = kernel->thread_rows * kernel->thread_cols;
    args.gemm.tile_rows_per_group = TILE_ROWS_PER_GROUP / kernel->thread_rows;
    args.is_sum_alone = p->alpha == 1.0 && p->beta == 0.0 && p->bias == TG_BIAS_NONE &&
                        p->activation == TG_ACTIVATION_NONE && !tgi_problem_has_scale(p);
    args.row_tile_count = (int32_t)count_row_tiles(kernel, p);
    args.col_tile_count = (int32_t)count_col_tiles(kernel, p);
    args.unit_count = (int32_t)((int64_t)args.row_tile_count * args.col_tile_count / cluster *
                                args.gemm.k_part_count * p->batch_count);
    args.step_count = (int32_t)tgi_divide_up(p->k, kernel->tile_depth);
    args.steps_per_part = (int32_t)tgi_divide_up(args.gemm.k_part_elems, kernel->tile_depth);
    char *memory = call->workspace;
    memory += tgi_divide_up(tgi_gemm_part_bytes(p, args.gemm.k_part_count), 256) * 256;
    tgi_operand operand[2];
    describe(p, operand);
    tg_status status = is_sliced(kernel) ? map_slices(queue, call, memory, &args)
                                         : map_operands(queue, call, memory, operand, &args);
    if (!status)
        status = map_result(queue, kernel, &args);
    if (status)
        return status;
    const int slots = call->machine->gpu.sm_count / cluster;
    const tgi_cuda_launch shape = {
        .grid = {(unsigned)(cluster * (args.unit_count < slots ? args.unit_count : slots)), 1, 1},
        .block = {(unsigned)kernel->thread_count, 1, 1},
        .shared_bytes = (unsigned)count_shared_bytes(kernel)};
    void *arguments[] = {&args};
    const char *symbol =
        is_sliced(kernel) ? kernel->name : tgi_cuda_find_variant(kernel, find_suffix(p, operand));
    status = tgi_cuda_run(queue, kernel->image, symbol, &shape, arguments);
    return status ? status : tgi_gemm_add_parts(queue, &args.gemm);
}

const tgi_cuda_family tgi_cuda_wgmma = {propose, launch};
