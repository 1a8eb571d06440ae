#include "dist.h"

enum { BLOCK_MADE = 256 }; /* values of k of a layout that a conversion makes */

/* Returns INVALID_ARGUMENT if the sizes of A, B and D do not make a product. */
static tg_status check_sizes(const tg_dist_problem *problem, tgi_dist_form *form)
{
    const tg_dist_layout *a = problem->a, *b = problem->b, *d = problem->d;
    const int is_a_transposed = problem->op_a == TG_OPERATION_TRANSPOSE;
    const int is_b_transposed = problem->op_b == TG_OPERATION_TRANSPOSE;
    form->m = d->row_count;
    form->n = d->col_count;
    form->k = is_a_transposed ? a->row_count : a->col_count;
    const int64_t a_rows = is_a_transposed ? a->col_count : a->row_count;
    const int64_t b_rows = is_b_transposed ? b->col_count : b->row_count;
    const int64_t b_cols = is_b_transposed ? b->row_count : b->col_count;
    if (a_rows == form->m && b_rows == form->k && b_cols == form->n)
        return TG_STATUS_OK;
    return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                         "op(a) is %lld x %lld, op(b) %lld x %lld and d %lld x %lld; pass "
                         "m x k, k x n and m x n",
                         (long long)a_rows, (long long)form->k, (long long)b_rows,
                         (long long)b_cols, (long long)form->m, (long long)form->n);
}

/* Lets tilegemm judge types, alpha and beta, by a product of one element. */
static tg_status check_types(const tg_dist_problem *problem)
{
    static const char data[1];
    tg_problem probe = tg_make_problem(tg_make_matrix(problem->a->type, data, 1, 1),
                                       tg_make_matrix(problem->b->type, data, 1, 1),
                                       tg_make_matrix(problem->d->type, data, 1, 1));
    tg_plan *plan = NULL;
    probe.alpha = problem->alpha;
    probe.beta = problem->beta;
    const tg_status status = tgi_dist_take_detail(tg_create_plan(NULL, &probe, NULL, &plan));
    tg_destroy_plan(plan);
    return status;
}

/* Sets *fitting to the layout of op(operand) that fits D's. `lines` of the operand are rows of
 * op(A) or columns of op(B). Returns 1 if the operand must be converted. */
static int fit_layout(const tg_dist_grid *grid, const tg_dist_layout *operand, tg_operation op,
                      const tg_dist_layout *d, int is_a, int64_t k, tg_dist_layout *fitting)
{
    const tgi_dist_axis d_axis = is_a ? tgi_dist_rows(d, grid) : tgi_dist_cols(d, grid);
    const tgi_dist_axis rows = tgi_dist_rows(operand, grid), cols = tgi_dist_cols(operand, grid);
    const tgi_dist_axis *lines = is_a ? &rows : &cols, *k_axis = is_a ? &cols : &rows;
    *fitting = *operand;
    if (op == TG_OPERATION_NONE && tgi_dist_is_same_axis(lines, &d_axis) &&
        (k_axis->portion_count == 1 || k_axis->block >= TGI_DIST_BLOCK_MIN || k_axis->block >= k))
        return 0;
    /* Its lines lie as D's do, and the local matrix has no others before them. */
    *fitting = (tg_dist_layout){.struct_bytes = sizeof *fitting,
                                .type = operand->type,
                                .row_count = is_a ? d->row_count : k,
                                .col_count = is_a ? k : d->col_count,
                                .row_block = is_a ? d->row_block : BLOCK_MADE,
                                .col_block = is_a ? BLOCK_MADE : d->col_block};
    if (is_a) {
        const int64_t line_count = tgi_dist_count_local(&d_axis, grid->my_row);
        fitting->row_source = d_axis.source;
        fitting->row_start = d_axis.start;
        fitting->local_leading_dimension = line_count > 0 ? line_count : 1;
    } else {
        fitting->col_source = d_axis.source;
        fitting->col_start = d_axis.start;
    }
    return 1;
}

tg_status tgi_dist_find_form(const tg_dist_grid *grid, const tg_dist_problem *problem,
                             tgi_dist_form *form)
{
    tg_status status = tgi_dist_check_struct(problem, sizeof *problem, "problem");
    if (!status)
        status = tgi_dist_check_layout(problem->a, "a", grid);
    if (!status)
        status = tgi_dist_check_layout(problem->b, "b", grid);
    if (!status)
        status = tgi_dist_check_layout(problem->d, "d", grid);
    if (status)
        return status;
    if ((unsigned)problem->op_a > 1 || (unsigned)problem->op_b > 1)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "op_a is %d and op_b %d; pass values of tg_operation",
                             (int)problem->op_a, (int)problem->op_b);
    if (problem->layer_memory_bytes < 0)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "layer_memory_bytes is %lld; pass a number >= 0",
                             (long long)problem->layer_memory_bytes);
    status = check_sizes(problem, form);
    if (!status)
        status = check_types(problem);
    if (status)
        return status;
    form->converts_a =
        fit_layout(grid, problem->a, problem->op_a, problem->d, 1, form->k, &form->a);
    form->converts_b =
        fit_layout(grid, problem->b, problem->op_b, problem->d, 0, form->k, &form->b);
    tgi_dist_choose_layers(grid, problem, form);
    return TG_STATUS_OK;
}

/* Adds the bytes that a rank sends and receives in a conversion of a matrix from one layout to
 * another. Elements that stay on the rank are not counted. */
static void count_conversion(const tg_dist_grid *grid, const tg_dist_layout *from, tg_operation op,
                             const tg_dist_layout *to, int rank, tg_dist_counts *counts)
{
    const tgi_dist_side from_side = tgi_dist_describe_side(from, grid, 0);
    const tgi_dist_side to_side = tgi_dist_describe_side(to, grid, op == TG_OPERATION_TRANSPOSE);
    tgi_dist_count_move(&from_side, &to_side, tg_get_type_bytes(from->type), 1, rank, counts);
}

void tgi_dist_count_slabs(const tgi_dist_axis *lines, int line_portion, const tgi_dist_axis *k_axis,
                          int k_portion, tg_type type, tg_dist_counts *counts)
{
    const int64_t line_bytes = tgi_dist_count_local(lines, line_portion) * tg_get_type_bytes(type);
    const int64_t k_count = tgi_dist_count_local(k_axis, k_portion);
    counts->bytes_sent += line_bytes * k_count * (k_axis->portion_count - 1);
    counts->bytes_received += line_bytes * (k_axis->count - k_count);
}

void tgi_dist_count_flat(const tg_dist_grid *grid, const tg_dist_problem *problem,
                         const tgi_dist_form *form, int rank, tg_dist_counts *counts)
{
    const int row = rank / grid->col_count, col = rank % grid->col_count;
    const tgi_dist_axis a_rows = tgi_dist_rows(&form->a, grid), a_k = tgi_dist_cols(&form->a, grid);
    const tgi_dist_axis b_cols = tgi_dist_cols(&form->b, grid), b_k = tgi_dist_rows(&form->b, grid);
    if (form->converts_a)
        count_conversion(grid, problem->a, problem->op_a, &form->a, rank, counts);
    if (form->converts_b)
        count_conversion(grid, problem->b, problem->op_b, &form->b, rank, counts);
    tgi_dist_count_slabs(&a_rows, row, &a_k, col, form->a.type, counts);
    tgi_dist_count_slabs(&b_cols, col, &b_k, row, form->b.type, counts);
}

tg_status tg_dist_predict_counts(const tg_dist_grid *grid, const tg_dist_problem *problem,
                                 int grid_row, int grid_col, tg_dist_counts *counts)
{
    if (!grid)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "grid is NULL; pass one");
    if (grid_row < 0 || grid_row >= grid->row_count || grid_col < 0 || grid_col >= grid->col_count)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "grid_row = %d and grid_col = %d; pass a place in a grid of %d x %d",
                             grid_row, grid_col, grid->row_count, grid->col_count);
    tgi_dist_form form;
    tg_status status = tgi_dist_check_struct(counts, sizeof *counts, "counts");
    if (!status)
        status = tgi_dist_find_form(grid, problem, &form);
    if (status)
        return status;
    counts->bytes_sent = counts->bytes_received = 0;
    if (problem->alpha == 0)
        return TG_STATUS_OK;
    const int rank = grid_row * grid->col_count + grid_col;
    if (form.layers.count > 1)
        tgi_dist_count_layers(grid, problem, &form, rank, counts);
    else
        tgi_dist_count_flat(grid, problem, &form, rank, counts);
    return TG_STATUS_OK;
}
