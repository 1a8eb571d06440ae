/* Launches the family small. */
#include <stdio.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/families/small.h"
#include "kernels/small/small_relay_args.h"
#include "kernels/small/small_shape.h"

/* Prepares the launch of the function without stages. */
static void prepare_direct(const tgi_problem *p, const tgi_proposal *proposal,
                           tgi_cuda_kernel *multiply)
{
    const int lanes = proposal->decision.tile.direct_lanes;
    const int cluster = proposal->decision.tile.direct_cluster;
    const int64_t cols = TGI_SMALL_DIRECT_THREADS / lanes;
    const int64_t units = tgi_divide_up(p->m, TGI_SMALL_DIRECT_ROWS) * p->n;
    const int is_along = proposal->decision.tile.is_direct_along;
    multiply->block[0] = (unsigned)(is_along ? lanes : cols);
    multiply->block[1] = (unsigned)(is_along ? cols : lanes);
    multiply->grid[0] = (unsigned)tgi_divide_up(units, cols);
    multiply->grid[1] =
        (unsigned)(p->batch_count < TGI_GRID_HEIGHT_MAX ? p->batch_count : TGI_GRID_HEIGHT_MAX);
    multiply->grid[2] = multiply->cluster = (unsigned)cluster;
    multiply->cluster_along = 2;
    multiply->shared_bytes = (unsigned)proposal->shared_bytes;
    snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_direct_%s%s",
             cluster > 1 ? "cluster_" : "", tg_get_type_name(p->type));
}

/* Prepares the launch of the short function. That of FP64 is another one for terms. */
static void prepare_short(const tgi_problem *p, const tgi_proposal *proposal, int has_terms,
                          tgi_cuda_kernel *multiply)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    const int lanes = decision->direct_lanes, cols = decision->short_cols;
    const int rows = TGI_SMALL_DIRECT_THREADS / lanes / cols;
    const int is_along = decision->is_direct_along;
    multiply->block[0] = (unsigned)(is_along ? lanes : cols);
    multiply->block[1] = (unsigned)(is_along ? cols : rows);
    multiply->block[2] = (unsigned)(is_along ? rows : lanes);
    multiply->grid[0] = (unsigned)tgi_divide_up(p->n, cols);
    multiply->grid[1] = (unsigned)tgi_divide_up(p->m, rows);
    multiply->grid[2] = (unsigned)p->batch_count;
    multiply->shared_bytes = 0;
    snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_short_%s%s_%s",
             has_terms && p->type == TG_TYPE_FP64 ? "terms_" : "", is_along ? "along" : "across",
             tg_get_type_name(p->type));
}

/* Prepares the launch of pieces. */
static void prepare_pieces(const tgi_problem *p, const tgi_proposal *proposal, int has_terms,
                           tgi_cuda_kernel *multiply)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    const int across = decision->piece_cols, has_units = decision->has_piece_units;
    multiply->block[0] = (unsigned)across;
    multiply->block[1] = (unsigned)(TGI_SMALL_PIECE_THREADS / across);
    multiply->grid[0] = (unsigned)tgi_divide_up(tgi_small_count_pieces(p, has_units), across);
    multiply->grid[1] = (unsigned)tgi_divide_up(
        p->m, multiply->block[1] * TGI_SMALL_PIECE_ROWS((int)tgi_type_bytes(p->type)));
    multiply->grid[2] = (unsigned)p->batch_count;
    multiply->shared_bytes = 0;
    snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_piece_%s_%s",
             has_terms   ? "terms"
             : has_units ? "units"
                         : "elements",
             tg_get_type_name(p->type));
}

/* Prepares the launch of outer products. Where rows of D begin within units, they have parts of one
 * unit more. */
static void prepare_outer(const tgi_problem *p, const tgi_proposal *proposal,
                          tgi_cuda_kernel *multiply)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    const int64_t cols = (int64_t)TGI_SMALL_OUTER_COLS * decision->outer_across;
    multiply->block[0] = TGI_SMALL_OUTER_THREADS;
    multiply->grid[0] = (unsigned)tgi_divide_up(p->n + TGI_SMALL_OUTER_COLS - 1, cols);
    multiply->grid[1] = (unsigned)tgi_divide_up(p->m, TGI_SMALL_OUTER_ROWS);
    multiply->grid[2] = (unsigned)p->batch_count;
    multiply->shared_bytes = 0;
    snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_outer_fp32");
}

/* Prepares the launch of strips. */
static void prepare_strips(const tgi_problem *p, const tgi_proposal *proposal,
                           tgi_cuda_kernel *multiply)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    const int across = TGI_SMALL_STRIP_THREADS / 32 / decision->strip_rows;
    multiply->block[0] = TGI_SMALL_STRIP_THREADS;
    multiply->grid[0] = (unsigned)tgi_divide_up(tgi_divide_up(p->n, decision->strip_cols), across);
    multiply->grid[1] = (unsigned)tgi_divide_up(p->m, TGI_SMALL_STRIP_ROWS * decision->strip_rows);
    multiply->grid[2] = (unsigned)p->batch_count;
    multiply->shared_bytes = 0;
    const int is_short = p->k <= TGI_SMALL_STRIP_K_SHORT && tgi_type_bytes(p->type) == 2;
    snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_strip_%d_%s",
             is_short ? TGI_SMALL_STRIP_K_SHORT : TGI_SMALL_STRIP_K_MAX,
             tgi_type_bytes(p->type) == 1 ? "fp8" : tg_get_type_name(p->type));
}

/* Prepares the launch of relays. */
static void prepare_relay(const tgi_problem *p, const tgi_proposal *proposal,
                          tgi_tile_prepared *prepared)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    const int is_short = decision->is_relay_short, is_mma = p->type != TG_TYPE_FP32;
    tgi_cuda_kernel *multiply = &prepared->multiply;
    const int is_long = is_mma && p->k > TGI_SMALL_RELAY_SHORT_K;
    const int may_have_terms =
        !prepared->args.is_sum_alone || (is_long && tgi_type_bytes(p->type) == 8);
    const int has_chains = decision->is_relay_copied && tgi_type_bytes(p->type) > 2;
    const int warps = decision->is_relay_copied ? decision->relay_warps
                                                : decision->relay_groups << decision->relay_bits;
    const int rows =
        decision->is_relay_copied ? 1 << decision->relay_bits
        : is_mma                  ? 16
                 : (TGI_SMALL_RELAY_SHORT_THREADS >> decision->relay_bits) / decision->relay_cols;
    multiply->block[0] = is_short ? TGI_SMALL_RELAY_SHORT_THREADS : 32u * (unsigned)warps;
    multiply->grid[0] =
        (unsigned)(tgi_divide_up(p->n, decision->relay_cols) * decision->relay_cluster);
    multiply->grid[1] = (unsigned)tgi_divide_up(p->m, rows);
    multiply->grid[2] = (unsigned)p->batch_count;
    multiply->cluster = (unsigned)decision->relay_cluster;
    prepared->add = (tgi_cuda_kernel){0};
    snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_relay_%s%s",
             has_chains                            ? "chains_"
             : decision->is_relay_copied           ? "lines_"
             : is_short && may_have_terms          ? "terms_"
             : is_short && is_long                 ? "piece_"
             : is_short                            ? "short_"
             : is_mma && decision->relay_teams > 1 ? "teams_"
                                                   : "",
             tg_get_type_name(p->type));
}

static void prepare(const tgi_machine *machine, const tgi_problem *given,
                    const tgi_proposal *proposal, void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_tile_prepared *prepared = block;
    unsigned *grid = prepared->multiply.grid;
    tgi_problem p = *given;
    if (proposal->decision.tile.is_transposed)
        tgi_problem_transpose(&p);
    tgi_tile_prepare(&p, proposal, prepared);
    const int has_terms = !prepared->args.is_sum_alone;
    if (proposal->decision.tile.short_cols) {
        prepare_short(&p, proposal, has_terms, &prepared->multiply);
        return;
    }
    if (proposal->decision.tile.piece_cols) {
        prepare_pieces(&p, proposal, has_terms, &prepared->multiply);
        return;
    }
    if (proposal->decision.tile.outer_across) {
        prepare_outer(&p, proposal, &prepared->multiply);
        return;
    }
    if (proposal->decision.tile.relay_cols) {
        prepare_relay(&p, proposal, prepared);
        return;
    }
    if (proposal->decision.tile.strip_cols) {
        prepare_strips(&p, proposal, &prepared->multiply);
        return;
    }
    if (proposal->decision.tile.direct_lanes) {
        /* The function takes the order of its threads from this. */
        prepared->args.b_along_k = proposal->decision.tile.is_direct_along;
        prepare_direct(&p, proposal, &prepared->multiply);
        return;
    }
    const int has_a = tgi_small_loads_pairs(machine, kernel, &p, 0);
    const int has_b = tgi_small_loads_pairs(machine, kernel, &p, 1);
    if (has_a || has_b) {
        prepared->args.a_vector_elems = has_a ? 2 : prepared->args.a_vector_elems;
        prepared->args.b_vector_elems = has_b ? 2 : prepared->args.b_vector_elems;
        snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s_pairs", kernel->name);
    }
    const int64_t entries = p.batch_count * prepared->args.split_count;
    grid[0] = (unsigned)tgi_divide_up(p.n, kernel->tile_cols);
    grid[1] = (unsigned)tgi_divide_up(p.m, kernel->tile_rows);
    grid[2] = (unsigned)(entries < TGI_GRID_HEIGHT_MAX ? entries : TGI_GRID_HEIGHT_MAX);
}

/* Returns how strips load an operand. has_vectors is 1 if its lines begin at multiples of 16 bytes
 * along the shorter stride. */
static tgi_strip_order find_order(const tgi_problem *p, int has_vectors, int64_t k_stride,
                                  int64_t line_stride)
{
    const int unit = p->k <= TGI_SMALL_STRIP_K_SHORT ? 4 : 8;
    if (k_stride == 1)
        return has_vectors && p->k % unit == 0 ? TGI_STRIP_UNITS : TGI_STRIP_ALONG;
    return has_vectors && line_stride == 1 && p->n % 8 == 0 ? TGI_STRIP_PIECES : TGI_STRIP_ACROSS;
}

static tg_status launch_strips(const tgi_cuda_queue *queue, const tgi_call *call,
                               tgi_tile_prepared *prepared, const tgi_sums_args *sums)
{
    const tgi_problem *p = &prepared->args.problem;
    tgi_gemm_args all = prepared->args;
    tgi_gemm_complete_args(call, prepared->is_transposed, &all);
    tgi_strip_args args = {.sums = *sums,
                           .a_order = find_order(p, all.a_vector_elems > 1, p->a.col, 0),
                           .b_order = find_order(p, all.b_vector_elems > 1, p->b.row, p->b.col),
                           .is_moved = all.d_vector_elems == 1,
                           .strip_cols = prepared->strip_cols,
                           .warp_rows = prepared->strip_rows,
                           .a_type = p->type,
                           .b_type = p->b_type};
    return tgi_cuda_run(queue, &prepared->multiply, &args, sizeof args);
}

static int32_t count_bits(int power)
{
    int32_t bits = 0;
    while (power > 1 << bits)
        bits++;
    return bits;
}

static tg_status launch_relay(const tgi_cuda_queue *queue, const tgi_call *call,
                              tgi_tile_prepared *prepared, const tgi_sums_args *sums)
{
    const tgi_problem *p = &prepared->args.problem;
    tgi_gemm_args all = prepared->args;
    tgi_gemm_complete_args(call, prepared->is_transposed, &all);
    tgi_relay_short_args args = {
        .relay = {.sums = *sums,
                  .relay_bits = prepared->relay_bits,
                  .team_bits = count_bits(prepared->relay_teams),
                  .col_bits = count_bits(prepared->relay_cols),
                  .warp_bits = count_bits(prepared->relay_warps),
                  .cluster_bits = count_bits(prepared->relay_cluster),
                  .is_across = !tgi_gemm_is_b_along_k(p),
                  .split_elems = (int32_t)prepared->args.split_elems,
                  .split_count = prepared->args.split_count,
                  .add_rows = (int32_t)tgi_gemm_count_add_rows(p, prepared->args.split_count),
                  .block_splits =
                      (int32_t)tgi_divide_up(prepared->args.split_count, prepared->relay_cluster),
                  .has_a_pairs = tgi_small_has_pairs(p, 0) && (uintptr_t)sums->a % 4 == 0,
                  .has_b_pairs = tgi_small_has_pairs(p, 1) && (uintptr_t)sums->b % 4 == 0},
        .epilogue = all.problem.epilogue,
        .c = all.c,
        .bias = all.bias,
        .c_row = p->c.row,
        .c_col = p->c.col,
        .c_batch = p->c.batch};
    if (!all.is_sum_alone)
        args.relay.sums.d_type |= TGI_SHORT_TERMS;
    return tgi_cuda_run(queue, &prepared->multiply, &args, sizeof args);
}

/* Launches the short function, or pieces with terms. */
static tg_status launch_short(const tgi_cuda_queue *queue, const tgi_call *call,
                              tgi_tile_prepared *prepared, const tgi_sums_args *sums)
{
    const tgi_layout *c = &prepared->args.problem.c;
    tgi_gemm_args all = prepared->args;
    tgi_gemm_complete_args(call, prepared->is_transposed, &all);
    tgi_short_args args = {.sums = *sums,
                           .epilogue = all.problem.epilogue,
                           .c = all.c,
                           .bias = all.bias,
                           .c_row = c->row,
                           .c_col = c->col,
                           .c_batch = c->batch};
    if (!all.is_sum_alone)
        args.sums.d_type |= TGI_SHORT_TERMS;
    if (prepared->args.problem.is_batch_invariant)
        args.sums.d_type |= TGI_SHORT_PAIRS;
    return tgi_cuda_run(queue, &prepared->multiply, &args, sizeof args);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    tgi_tile_prepared *prepared = block;
    if (!prepared->strip_cols && !prepared->relay_cols && !prepared->outer_across &&
        !prepared->short_cols && !prepared->piece_cols)
        return tgi_tile_launch(queue, call, block);
    const tgi_problem *p = &prepared->args.problem;
    const int is_transposed = prepared->is_transposed;
    tgi_sums_args args = {.a = is_transposed ? call->b : call->a,
                          .b = is_transposed ? call->a : call->b,
                          .d = call->d,
                          .a_row = p->a.row,
                          .a_k = p->a.col,
                          .b_col = p->b.col,
                          .b_k = p->b.row,
                          .d_row = p->d.row,
                          .d_col = p->d.col,
                          .a_batch = p->a.batch,
                          .b_batch = p->b.batch,
                          .d_batch = p->d.batch,
                          .m = (int32_t)p->m,
                          .n = (int32_t)p->n,
                          .k = (int32_t)p->k,
                          .d_type = (int32_t)p->d_type};
    if (prepared->short_cols || (prepared->piece_cols && !prepared->args.is_sum_alone))
        return launch_short(queue, call, prepared, &args);
    if (prepared->strip_cols)
        return launch_strips(queue, call, prepared, &args);
    if (prepared->relay_cols)
        return launch_relay(queue, call, prepared, &args);
    if (prepared->outer_across) {
        tgi_outer_args outer = {args, prepared->outer_across};
        return tgi_cuda_run(queue, &prepared->multiply, &outer, sizeof outer);
    }
    return tgi_cuda_run(queue, &prepared->multiply, &args, sizeof args);
}

const tgi_cuda_launcher tgi_cuda_launcher_small = {tgi_tile_count_prepared_bytes, prepare, launch};
