/* Plans the family mma: tiles by warp-level matrix instructions, of any size and layout. */
#include "cuda/families/mma.h"

#include "cuda/families/gemm.h"
#include "cuda/families/mma_limits.h"
#include "cuda/families/slice_panels.h"
#include "kernels/mma/mma_shape.h"

/* The kernel counts the elements along a side, and those of a tile beside it, in 32 bits. */
#define COUNT_MAX (INT32_MAX - 1023)

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    return TGI_MMA_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                tgi_type_bytes(kernel->type), kernel->stage_count,
                                kernel->thread_count);
}

/* Returns the number of sums that a thread holds. It is twice the thread's own if FP8 instructions
 * have separate sums for each stage (kernels/mma/mma_math.cuh). */
static int count_held_sums(const tgi_kernel *kernel)
{
    const int is_promoted =
        tgi_type_is_fp8(kernel->type) && tgi_kernels_uses(kernel, TGI_FEATURE_FP8_MMA);
    return kernel->thread_rows * kernel->thread_cols * (1 + is_promoted);
}

static double count_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return (double)tgi_gemm_count_tiles(kernel, p) * (double)p->batch_count;
}

/* Returns the bytes of the widest accesses that the operand's strides allow if its pointer is a
 * multiple of 16. */
static int find_copy_bytes(const tgi_problem *p, int is_b, int is_along_k)
{
    const tgi_layout *layout = is_b ? &p->b : &p->a;
    const int64_t k_stride = is_b ? layout->row : layout->col;
    const int64_t entry_stride = is_b ? layout->col : layout->row;
    const int64_t line_count = is_along_k ? (is_b ? p->n : p->m) : p->k;
    const int64_t line_stride = is_along_k ? entry_stride : k_stride;
    const int64_t strides = (line_count > 1 ? line_stride : 0) | layout->batch;
    const int64_t places = strides * tgi_type_bytes(p->type) | TGI_GEMM_VECTOR_BYTES;
    if ((is_along_k ? k_stride : entry_stride) != 1)
        return (int)tgi_type_bytes(p->type);
    return (int)(places & -places);
}

/* Returns 1 if every stage has an edge of the operand: its lines run across k, a tile has all of
 * them, and they end within a unit, of which single elements are copied. */
static int has_edges(const tgi_kernel *kernel, const tgi_problem *p, int is_b, int is_along_k)
{
    const int64_t entries = is_b ? p->n : p->m;
    return !is_along_k && entries < (is_b ? kernel->tile_cols : kernel->tile_rows) &&
           entries * tgi_type_bytes(p->type) % TGI_GEMM_VECTOR_BYTES != 0;
}

int tgi_mma_is_rounded_ahead(const tgi_kernel *kernel)
{
    return TGI_MMA_IS_ROUNDED_AHEAD(tgi_type_bytes(kernel->type), kernel->tile_cols);
}

void tgi_mma_describe(const tgi_kernel *kernel, const tgi_problem *p, int is_b,
                      tgi_mma_access *operand)
{
    /* An operand that is rounded ahead is repacked, as one that lies at any address. */
    const int is_rounded = tgi_mma_is_rounded_ahead(kernel);
    const int is_offset = is_rounded || (is_b ? p->is_b_offset : p->is_a_offset);
    /* Kernels of FP8 read A only in lines along k. */
    const int can_be_across = !is_rounded && (is_b || !tgi_type_is_fp8(p->type));
    operand->is_along_k =
        !can_be_across || (is_b ? tgi_gemm_is_b_along_k(p) : tgi_gemm_is_a_along_k(p));
    operand->copy_bytes = is_offset || has_edges(kernel, p, is_b, operand->is_along_k)
                              ? (int)tgi_type_bytes(p->type)
                              : find_copy_bytes(p, is_b, operand->is_along_k);
    tgi_operand_describe(p, is_b, can_be_across, is_offset, &operand->packed);
    operand->can_repack = operand->copy_bytes < TGI_GEMM_VECTOR_BYTES &&
                          operand->packed.is_repacked &&
                          operand->packed.is_across == !operand->is_along_k;
}

void tgi_mma_pad(const tgi_kernel *kernel, tgi_mma_access operand[2])
{
    tgi_operand_pad(&operand[0].packed, kernel->tile_depth);
    tgi_operand_pad(&operand[1].packed, kernel->tile_depth);
}

/* Returns the number of rows at the top of D whose tiles fill whole rounds of the multiprocessors.
 * Returns 0 if no rows do or all do, and for batches and batch-invariant problems, which have one
 * launch. */
static int64_t find_whole_rows(const tgi_machine *machine, const tgi_kernel *kernel,
                               const tgi_problem *p, int blocks_per_sm)
{
    const int64_t slots = (int64_t)machine->gpu.sm_count * blocks_per_sm;
    const int64_t cols = tgi_divide_up(p->n, kernel->tile_cols);
    const int64_t rows = tgi_divide_up(p->m, kernel->tile_rows);
    const int64_t whole = rows * cols / slots * slots / cols;
    return p->batch_count == 1 && !p->is_batch_invariant && whole < rows ? whole * kernel->tile_rows
                                                                         : 0;
}

/* Proposes to split k of the last rows of D, whose tiles would leave multiprocessors idle in the
 * last round, if that is faster. `work` describes all of D. */
static void split_rest(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_work *work,
                       tgi_proposal *proposal)
{
    const int64_t whole_rows =
        find_whole_rows(machine, proposal->kernel, p, (int)work->blocks_per_sm);
    tgi_problem some = *p;
    tgi_tile_work some_work = *work;
    tgi_proposal whole = *proposal, rest = *proposal;
    if (whole_rows == 0)
        return;
    whole.is_legal = rest.is_legal = 0;
    some.m = whole_rows;
    some_work.block_count = count_tiles(proposal->kernel, &some);
    tgi_gemm_try_splits(machine, &some, &some_work, tgi_model_mma_seconds, 1, &whole);
    some.m = p->m - whole_rows;
    some_work.block_count = count_tiles(proposal->kernel, &some);
    tgi_gemm_split_k(machine, &some, &some_work, tgi_model_mma_seconds, &rest);
    rest.predicted_s += whole.predicted_s;
    rest.decision.tile.whole_rows = whole_rows;
    if (rest.predicted_s < proposal->predicted_s)
        *proposal = rest;
}

/* Proposes the problem with operands that are read where they lie or, if is_packed is 1, with
 * repacked copies of those that allow no accesses of 16 bytes. */
static void propose_one(const tgi_machine *machine, const tgi_problem *p,
                        const tgi_mma_access operand[2], int is_packed, int is_transposed,
                        tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int by_registers = TGI_MMA_BLOCKS_PER_SM(count_held_sums(kernel), kernel->thread_count);
    tgi_tile_work work = {
        .block_count = count_tiles(kernel, p),
        .blocks_per_sm = tgi_gemm_count_resident(&machine->gpu, kernel, by_registers,
                                                 count_shared_bytes(kernel)),
        .copy_bytes = TGI_GEMM_VECTOR_BYTES,
        .is_rounding = kernel->math == TGI_MATH_tf32 && !tgi_mma_is_rounded_ahead(kernel)};
    int64_t packed_bytes = 0;
    double packed_lines = 0.0;
    int is_repacked[2];
    for (int i = 0; i < 2; i++) {
        is_repacked[i] = is_packed && operand[i].can_repack;
        if (is_repacked[i]) {
            packed_bytes =
                tgi_checked_add(packed_bytes, tgi_operand_workspace_bytes(&operand[i].packed));
            packed_lines += tgi_operand_count_repacked(&operand[i].packed);
        } else if (operand[i].copy_bytes < work.copy_bytes) {
            work.copy_bytes = operand[i].copy_bytes;
        }
    }
    proposal->resident_blocks = work.blocks_per_sm;
    if (is_transposed) {
        tgi_gemm_try_splits(machine, p, &work, tgi_model_mma_seconds, 1, proposal);
    } else {
        tgi_gemm_split_k(machine, p, &work, tgi_model_mma_seconds, proposal);
        split_rest(machine, p, &work, proposal);
    }
    proposal->decision.tile.is_transposed = is_transposed;
    proposal->needs_aligned[0] = proposal->needs_aligned[1] =
        work.copy_bytes == TGI_GEMM_VECTOR_BYTES;
    proposal->decision.tile.is_repacked[0] = is_repacked[0];
    proposal->decision.tile.is_repacked[1] = is_repacked[1];
    proposal->workspace_bytes = tgi_checked_add(
        tgi_round_up(proposal->workspace_bytes, TGI_MMA_WORKSPACE_UNIT_BYTES), packed_bytes);
    proposal->predicted_s +=
        tgi_model_repack_seconds(&machine->gpu, (double)packed_bytes, packed_lines);
}

/* Proposes the faster of both ways to read the operands. */
static void propose_side(const tgi_machine *machine, const tgi_problem *p, int is_transposed,
                         tgi_proposal *proposal)
{
    tgi_mma_access operand[2];
    tgi_mma_describe(proposal->kernel, p, 0, &operand[0]);
    tgi_mma_describe(proposal->kernel, p, 1, &operand[1]);
    tgi_proposal packed = *proposal;
    const int64_t limit = tgi_panels_find_limit(machine);
    if (!tgi_mma_is_rounded_ahead(proposal->kernel))
        propose_one(machine, p, operand, 0, is_transposed, proposal);
    if (!operand[0].can_repack && !operand[1].can_repack)
        return;
    if (operand[0].can_repack && operand[1].can_repack)
        tgi_mma_pad(proposal->kernel, operand);
    propose_one(machine, p, operand, 1, is_transposed, &packed);
    if (tgi_mma_is_rounded_ahead(proposal->kernel) && packed.workspace_bytes > limit) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_WORKSPACE,
                   "rounded copies of the operands take %lld bytes of workspace; %lld is the limit",
                   (long long)packed.workspace_bytes, (long long)limit);
        return;
    }
    if (!proposal->is_legal || packed.predicted_s < proposal->predicted_s)
        *proposal = packed;
}

/* Returns 1 if the kernels may form D^T = B^T A^T. Its tiles are high where those of D are wide, so
 * one of both may leave fewer multiprocessors idle in the last round. The kernels can store D^T
 * only if its sums become 16-bit elements without an epilogue (kernels/mma/mma_store.cuh). The
 * faster way depends on m, which must not change the order of the sums of a batch-invariant
 * problem. */
static int may_transpose(const tgi_problem *p)
{
    return tgi_type_bytes(p->type) == 2 && p->d_type == p->type && p->b_type == p->type &&
           p->d.col == 1 && p->d.row != 1 && tgi_epilogue_is_sum_alone(&p->epilogue) &&
           !p->is_batch_invariant;
}

/* Refuses, with the reason, a precision that the kernel does not compute in. */
static int takes_precision(const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_math math = proposal->kernel->math;
    const tg_precision precision = math == TGI_MATH_tf32 ? TG_PRECISION_TF32 : TG_PRECISION_DEFAULT;
    if (p->precision == precision ||
        (math == TGI_MATH_fma && p->precision == TG_PRECISION_IEEE_FP32))
        return 1;
    tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION, "computes %s only in precision %s",
               tg_get_type_name(p->type), tg_get_precision_name(precision));
    return 0;
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal))
        return;
    if (!takes_precision(p, proposal))
        return;
    const int64_t sizes[] = {p->m, p->n, p->k, p->batch_count};
    for (int i = 0; i < 4; i++) {
        if (sizes[i] > COUNT_MAX) {
            tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                       "the kernel counts to %d; a size is %lld", COUNT_MAX, (long long)sizes[i]);
            return;
        }
    }
    if (count_tiles(kernel, p) > INT32_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "D has %.0f tiles of %d x %d; %d is the limit: take a larger tile",
                   count_tiles(kernel, p), kernel->tile_rows, kernel->tile_cols, INT32_MAX);
        return;
    }
    tgi_proposal found = *proposal;
    propose_side(machine, p, 0, &found);
    if (may_transpose(p)) {
        tgi_problem transposed = *p;
        tgi_proposal other = *proposal;
        tgi_problem_transpose(&transposed);
        propose_side(machine, &transposed, 1, &other);
        if (other.predicted_s < found.predicted_s)
            found = other;
    }
    *proposal = found;
}

static void describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    tgi_gemm_describe_tiling(proposal, tiling);
    tiling->is_transposed = decision->is_transposed;
    tiling->whole_rows = decision->whole_rows;
}

const tgi_cuda_planner tgi_cuda_planner_mma = {.propose = propose,
                                               .describe_tiling = describe_tiling};
