#include <stdlib.h>

#include "dist.h"

int64_t tgi_dist_local_bytes(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    const tgi_dist_axis rows = tgi_dist_rows(layout, grid), cols = tgi_dist_cols(layout, grid);
    return tgi_dist_count_local(&rows, grid->my_row) * tgi_dist_count_local(&cols, grid->my_col) *
           tg_get_type_bytes(layout->type);
}

/* Returns the bytes from this rank's first element of a layout to the last one. */
static int64_t find_extent_bytes(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    const tgi_dist_axis rows = tgi_dist_rows(layout, grid), cols = tgi_dist_cols(layout, grid);
    const int64_t row_count = tgi_dist_count_local(&rows, grid->my_row);
    const int64_t col_count = tgi_dist_count_local(&cols, grid->my_col);
    if (row_count == 0 || col_count == 0)
        return 0;
    const int64_t elements = (row_count - 1) * tgi_dist_row_stride(layout, grid) +
                             (col_count - 1) * tgi_dist_col_stride(layout, grid) + 1;
    return elements * tg_get_type_bytes(layout->type);
}

/* Allocates the local matrices of a conversion in ordinary memory, *source if that of the operand
 * is in a GPU's memory. */
static tg_status allocate_ends(const tgi_dist_product *work, const tg_dist_layout *from,
                               const tg_dist_layout *to, void **source, void **target)
{
    const int64_t bytes = tgi_dist_local_bytes(to, work->grid);
    const int64_t source_bytes = tgi_dist_is_on_gpu(work) ? find_extent_bytes(from, work->grid) : 0;
    *target = malloc((size_t)bytes + 1);
    if (source_bytes)
        *source = malloc((size_t)source_bytes);
    if (!*target || (source_bytes && !*source))
        return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                             "%lld bytes for an operand in a layout that fits D's are not there; "
                             "pass one that fits, or use more ranks",
                             (long long)(bytes + source_bytes));
    return TG_STATUS_OK;
}

static tg_status convert(tgi_dist_product *work, tg_operation op, const tg_dist_layout *from,
                         const void *source, const tg_dist_layout *to, void *target)
{
    const tgi_dist_side from_side = tgi_dist_describe_side(from, work->grid, 0);
    const tgi_dist_side to_side =
        tgi_dist_describe_side(to, work->grid, op == TG_OPERATION_TRANSPOSE);
    return tgi_dist_move(work->grid, from->type, 0, &from_side, source, &to_side, target,
                         &work->counts);
}

/* Converts an operand in a GPU's memory by way of ordinary memory. */
static tg_status convert_staged(tgi_dist_product *work, const tg_dist_layout *from, tg_operation op,
                                const tg_dist_layout *to, const void *data, void *source,
                                void *target, void **made)
{
    const int64_t source_bytes = find_extent_bytes(from, work->grid);
    const int64_t bytes = tgi_dist_local_bytes(to, work->grid);
    tg_status status = TG_STATUS_OK;
    if (source_bytes)
        status =
            tgi_dist_take_detail(tg_copy_from_device(work->context, source, data, source_bytes));
    if (!status)
        status = tgi_dist_take_detail(tg_allocate_memory(work->context, bytes + 1, made));
    status = tgi_dist_agree(work->grid, status);
    if (!status)
        status = convert(work, op, from, source, to, target);
    if (!status && bytes)
        status = tgi_dist_take_detail(tg_copy_to_device(work->context, *made, target, bytes));
    return tgi_dist_agree(work->grid, status);
}

/* Converts an operand if is_needed. *made is the memory of the converted local matrix; *data is set
 * to it. */
static tg_status fit_operand(tgi_dist_product *work, int is_needed, const tg_dist_layout *from,
                             tg_operation op, const tg_dist_layout *to, void **made,
                             const void **data)
{
    if (!is_needed)
        return TG_STATUS_OK;
    void *source = NULL, *target = NULL;
    tg_status status = tgi_dist_agree(work->grid, allocate_ends(work, from, to, &source, &target));
    if (!tgi_dist_is_on_gpu(work)) {
        *made = target;
        if (!status)
            status = convert(work, op, from, *data, to, target);
    } else {
        if (!status)
            status = convert_staged(work, from, op, to, *data, source, target, made);
        free(target);
    }
    free(source);
    *data = *made;
    return status;
}

void tgi_dist_describe_supplies(tgi_dist_product *work, const void *a, const void *b)
{
    const tg_dist_grid *grid = work->grid;
    const tg_dist_layout *fit_a = &work->form.a, *fit_b = &work->form.b;
    work->a = (tgi_dist_supply){.data = a,
                                .type = fit_a->type,
                                .line_count = work->rows,
                                .line_stride = tgi_dist_row_stride(fit_a, grid),
                                .k_stride = tgi_dist_col_stride(fit_a, grid),
                                .is_along_k = fit_a->is_row_major,
                                .k_axis = tgi_dist_cols(fit_a, grid),
                                .comm = grid->row,
                                .portion = grid->my_col,
                                .element = MPI_DATATYPE_NULL};
    work->b = (tgi_dist_supply){.data = b,
                                .type = fit_b->type,
                                .line_count = work->cols,
                                .line_stride = tgi_dist_col_stride(fit_b, grid),
                                .k_stride = tgi_dist_row_stride(fit_b, grid),
                                .is_along_k = !fit_b->is_row_major,
                                .k_axis = tgi_dist_rows(fit_b, grid),
                                .comm = grid->col,
                                .portion = grid->my_row,
                                .element = MPI_DATATYPE_NULL};
}

tg_status tgi_dist_fit_operands(tgi_dist_product *work, const void *a, const void *b)
{
    const tg_dist_problem *problem = work->problem;
    tg_status status = fit_operand(work, work->form.converts_a, problem->a, problem->op_a,
                                   &work->form.a, &work->made_a, &a);
    if (!status)
        status = fit_operand(work, work->form.converts_b, problem->b, problem->op_b, &work->form.b,
                             &work->made_b, &b);
    if (!status)
        tgi_dist_describe_supplies(work, a, b);
    return status;
}

void tgi_dist_release_operands(tgi_dist_product *work)
{
    void *made[2] = {work->made_a, work->made_b};
    for (int i = 0; i < 2; i++) {
        if (tgi_dist_is_on_gpu(work))
            tg_release_memory(work->context, made[i]);
        else
            free(made[i]);
    }
}
