#include "cuda/families/gemm_launch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/operand_view.h"
#include "cuda/families/gemm.h"
#include "kernels/add_args.h"

#define GROUP_TILE_ROWS 8
#define L2_SHARE 0.5 /* share of L2 for lines that stay while others stream */

static int32_t count_elems(tg_type type, int is_vector)
{
    return is_vector ? (int32_t)(TGI_GEMM_VECTOR_BYTES / tgi_type_bytes(type)) : 1;
}

void tgi_gemm_prepare_args(const tgi_problem *p, tgi_gemm_args *args)
{
    memset(args, 0, sizeof *args);
    args->problem = *p;
    args->a_along_k = tgi_gemm_is_a_along_k(p);
    args->b_along_k = tgi_gemm_is_b_along_k(p);
    args->a_vector_elems = count_elems(p->type, tgi_gemm_has_a_vectors(p, args->a_along_k));
    args->b_vector_elems = count_elems(p->type, tgi_gemm_has_b_vectors(p, args->b_along_k));
    args->d_vector_elems = count_elems(p->d_type, tgi_gemm_has_d_vectors(p));
    args->is_sum_alone = tgi_epilogue_is_sum_alone(&p->epilogue);
    args->is_plain = args->is_sum_alone && tgi_type_bytes(p->d_type) == tgi_type_sum_bytes(p->type);
    args->split_elems = p->k;
    args->split_count = 1;
    args->tile_rows_per_group = GROUP_TILE_ROWS;
}

int32_t tgi_gemm_choose_group_rows(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                   const tgi_problem *p, double block_count, double line_bytes)
{
    const double kept_bytes = L2_SHARE * (double)gpu->l2_bytes;
    /* A round of blocks reads the fewest lines if its tiles are a square of D. */
    const double square = sqrt(block_count * kernel->tile_cols / kernel->tile_rows);
    const double fitting = kept_bytes / (line_bytes * kernel->tile_rows);
    const double wanted = line_bytes * (double)p->n <= kept_bytes ? square : fmax(square, fitting);
    const int64_t tile_rows = tgi_divide_up(p->m, kernel->tile_rows);
    const int64_t most = wanted < 1.0                 ? 1
                         : wanted < (double)tile_rows ? (int64_t)wanted
                                                      : tile_rows;
    return (int32_t)tgi_divide_up(tile_rows, tgi_divide_up(tile_rows, most));
}

static void check_vectors(const void *data, tg_type type, int32_t *vector_elems)
{
    if (*vector_elems > 1 && (uintptr_t)data % (uintptr_t)(*vector_elems * tgi_type_bytes(type)))
        *vector_elems = 1;
}

unsigned tgi_gemm_count_blocks(int64_t tile_count, int64_t most)
{
    return (unsigned)tgi_divide_up(tile_count, tgi_divide_up(tile_count, most));
}

void tgi_gemm_complete_args(const tgi_call *call, int is_transposed, tgi_gemm_args *args)
{
#define TGI_FACTOR(name, value) args->problem.epilogue.name = call->problem->epilogue.name;
#include "core/operands.def"
#undef TGI_FACTOR
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, ...)                       \
    args->name = is_transposed ? call->partner : call->name;
#include "core/operands.def"
#undef TGI_OPERAND
    args->workspace = call->workspace;
    const tg_type type = args->problem.type, d_type = args->problem.d_type;
    check_vectors(args->a, type, &args->a_vector_elems);
    check_vectors(args->b, type, &args->b_vector_elems);
    check_vectors(args->d, d_type, &args->d_vector_elems);
}

tgi_call tgi_gemm_move_call(const tgi_call *call, int64_t batch, int64_t row, int64_t col)
{
    tgi_call moved = *call;
#define TGI_OPERAND(name, ...)                                                                     \
    moved.name =                                                                                   \
        tgi_problem_find_element(call->problem, TGI_OPERAND_##name, call->name, batch, row, col);
#include "core/operands.def"
#undef TGI_OPERAND
    return moved;
}

/* The functions that add splits: `splits` has every epilogue, the others count in 32 bits. */
enum { ADD_SPLITS, ADD_SUMS, ADD_TERMS };

/* Returns which of them the product takes. */
static int choose_add(const tgi_gemm_args *args)
{
    const tgi_problem *p = &args->problem;
    const int64_t most = INT32_MAX / 2;
    if (p->m >= most / p->n || p->batch_count > TGI_GRID_HEIGHT_MAX)
        return ADD_SPLITS;
    if (args->is_sum_alone)
        return tgi_type_bytes(p->d_type) > 1 ? ADD_SUMS : ADD_SPLITS;
    return p->type == TG_TYPE_FP64 && tgi_gemm_has_terms(p, 0) ? ADD_TERMS : ADD_SPLITS;
}

void tgi_gemm_prepare_add(const tgi_gemm_args *args, tgi_cuda_kernel *add)
{
    static const char *const names[] = {"splits", "sums", "terms"};
    const tgi_problem *p = &args->problem;
    if (args->split_count == 1)
        return;
    const int64_t block_elems = TGI_ADD_COLS * TGI_GEMM_VECTOR_BYTES / tgi_type_sum_bytes(p->type);
    const int64_t batches =
        p->batch_count < TGI_GRID_HEIGHT_MAX ? p->batch_count : TGI_GRID_HEIGHT_MAX;
    *add = (tgi_cuda_kernel){
        .image = "splits",
        .grid = {(unsigned)tgi_divide_up(p->m * p->n, block_elems), (unsigned)batches, 1},
        .block = {TGI_ADD_COLS, tgi_gemm_count_add_rows(p, args->split_count), 1},
        .is_early = 1};
    snprintf(add->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_add_%s_%s", names[choose_add(args)],
             p->type == TG_TYPE_FP64 ? "fp64" : "fp32");
}

tg_status tgi_gemm_add_splits(const tgi_cuda_queue *queue, const tgi_gemm_args *args,
                              tgi_cuda_kernel *add)
{
    const tgi_problem *p = &args->problem;
    const tgi_epilogue *e = &p->epilogue;
    const tgi_add_args sums = {.sums = args->workspace,
                               .d = args->d,
                               .d_row = p->d.row,
                               .d_col = p->d.col,
                               .d_batch = p->d.batch,
                               .n = (int32_t)p->n,
                               .total = (int32_t)(p->m * p->n),
                               .split_count = args->split_count,
                               .d_type = p->d_type};
    tgi_gemm_args all = *args;
    tgi_add_terms_args terms = {sums,
                                {.c = args->c,
                                 .bias = e->bias == TG_BIAS_NONE ? NULL : args->bias,
                                 .alpha = e->alpha,
                                 .beta = e->beta,
                                 .c_row = p->c.row,
                                 .c_col = p->c.col,
                                 .c_batch = p->c.batch,
                                 .bias_row = e->bias == TG_BIAS_ROW,
                                 .bias_col = e->bias == TG_BIAS_COL,
                                 .activation = e->activation}};
    if (args->split_count == 1)
        return TG_STATUS_OK;
    switch (choose_add(args)) {
    case ADD_SUMS:
        return tgi_cuda_run(queue, add, &terms.sums, sizeof terms.sums);
    case ADD_TERMS:
        return tgi_cuda_run(queue, add, &terms, sizeof terms);
    default:
        return tgi_cuda_run(queue, add, &all, sizeof all);
    }
}

int64_t tgi_tile_count_prepared_bytes(const tgi_problem *problem, const tgi_proposal *proposal)
{
    (void)problem;
    (void)proposal;
    return sizeof(tgi_tile_prepared);
}

void tgi_tile_prepare(const tgi_problem *problem, const tgi_proposal *proposal,
                      tgi_tile_prepared *prepared)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_gemm_args *args = &prepared->args;
    tgi_gemm_prepare_args(problem, args);
    args->split_elems = proposal->decision.tile.split_elems;
    args->split_count = (int32_t)proposal->decision.tile.split_count;
    prepared->is_transposed = proposal->decision.tile.is_transposed;
    prepared->short_cols = proposal->decision.tile.short_cols;
    prepared->piece_cols = proposal->decision.tile.piece_cols;
    prepared->strip_cols = proposal->decision.tile.strip_cols;
    prepared->strip_rows = proposal->decision.tile.strip_rows;
    prepared->outer_across = proposal->decision.tile.outer_across;
    prepared->relay_cols = proposal->decision.tile.relay_cols;
    prepared->relay_bits = proposal->decision.tile.relay_bits;
    prepared->relay_teams = proposal->decision.tile.relay_teams;
    prepared->relay_warps = proposal->decision.tile.relay_warps;
    prepared->relay_cluster = proposal->decision.tile.relay_cluster;
    prepared->multiply = (tgi_cuda_kernel){.image = kernel->image,
                                           .block = {(unsigned)kernel->thread_count, 1, 1},
                                           .shared_bytes = (unsigned)proposal->shared_bytes,
                                           .is_early = 1};
    snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", kernel->name);
    tgi_gemm_prepare_add(args, &prepared->add);
}

void tgi_tile_set_entry_grid(const tgi_kernel *kernel, tgi_tile_prepared *prepared)
{
    const tgi_problem *p = &prepared->args.problem;
    unsigned *grid = prepared->multiply.grid;
    grid[0] = (unsigned)tgi_gemm_count_tiles(kernel, p);
    grid[1] = (unsigned)prepared->args.split_count;
    grid[2] =
        (unsigned)(p->batch_count < TGI_GRID_HEIGHT_MAX ? p->batch_count : TGI_GRID_HEIGHT_MAX);
}

tg_status tgi_tile_launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    tgi_tile_prepared *prepared = block;
    tgi_gemm_args args = prepared->args;
    tgi_gemm_complete_args(call, prepared->is_transposed, &args);
    tg_status status = tgi_cuda_run(queue, &prepared->multiply, &args, sizeof args);
    return status ? status : tgi_gemm_add_splits(queue, &args, &prepared->add);
}
