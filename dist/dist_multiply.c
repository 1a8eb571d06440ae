#include <string.h>

#include "dist_wire.h"

int tgi_dist_is_on_gpu(const tgi_dist_product *work)
{
    return work->device.compute_capability != 0;
}

/* Finds the device, whose memory the local matrices are in. */
static tg_status find_device(tgi_dist_product *work)
{
    tg_device_info *info = &work->device;
    tg_status status = tgi_dist_take_detail(tg_get_device_info(work->context, info, sizeof *info));
    if (status || strcmp(info->device, "cpu") == 0)
        return status;
    if (strncmp(info->device, "cuda", 4) == 0)
        return tgi_dist_check_wire(work->grid, info);
    return tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                         "device of the context is %s; pass a context of the CPU or of a GPU",
                         info->device);
}

static tg_status check_arguments(tgi_dist_product *work, const void *const pointers[4],
                                 const tg_dist_counts *counts)
{
    const tg_dist_grid *grid = work->grid;
    const tg_dist_problem *problem = work->problem;
    tg_status status = find_device(work);
    if (!status)
        status = tgi_dist_find_form(grid, problem, &work->form);
    if (!status && counts)
        status = tgi_dist_check_struct(counts, sizeof *counts, "counts");
    if (!status && problem->layer_memory_bytes && tgi_dist_is_on_gpu(work))
        status = tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                               "layer_memory_bytes is %lld, and GPUs do not multiply in layers; "
                               "pass 0",
                               (long long)problem->layer_memory_bytes);
    if (status)
        return status;
    const tg_dist_layout *layouts[4] = {problem->a, problem->b, problem->d, problem->d};
    const int is_used[4] = {problem->alpha != 0, problem->alpha != 0, problem->beta != 0, 1};
    for (int i = 0; i < 4; i++)
        if (is_used[i] && !pointers[i] && tgi_dist_local_bytes(layouts[i], grid))
            return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                                 "%c is NULL; pass the local matrix of this rank", "abcd"[i]);
    return TG_STATUS_OK;
}

/* Describes this rank's portion of a product that has passed the checks. */
static tg_status prepare(tgi_dist_product *work, const void *a, const void *b)
{
    const tgi_dist_axis rows = tgi_dist_rows(work->problem->d, work->grid);
    const tgi_dist_axis cols = tgi_dist_cols(work->problem->d, work->grid);
    work->rows = tgi_dist_count_local(&rows, work->grid->my_row);
    work->cols = tgi_dist_count_local(&cols, work->grid->my_col);
    tgi_dist_describe_supplies(work, a, b);
    if (!tgi_dist_is_on_gpu(work) || work->problem->alpha == 0 || work->form.k == 0)
        return TG_STATUS_OK;
    return tgi_dist_choose_pieces(work);
}

/* Agrees on the problem, on the status of all ranks, and on what their GPUs gather at once. */
static tg_status agree_problem(tgi_dist_product *work, tg_status status)
{
    enum { VALUE_COUNT = 3 * TGI_DIST_LAYOUT_VALUES + 6 };
    const tg_dist_problem *problem = work->problem;
    tgi_dist_value values[VALUE_COUNT];
    if (!status) {
        int64_t alpha_bits, beta_bits;
        memcpy(&alpha_bits, &problem->alpha, sizeof alpha_bits);
        memcpy(&beta_bits, &problem->beta, sizeof beta_bits);
        tgi_dist_list_values(problem->a, values);
        tgi_dist_list_values(problem->b, values + TGI_DIST_LAYOUT_VALUES);
        tgi_dist_list_values(problem->d, values + 2 * TGI_DIST_LAYOUT_VALUES);
        tgi_dist_value *rest = values + 3 * TGI_DIST_LAYOUT_VALUES;
        rest[0] = (tgi_dist_value){"op_a", problem->op_a};
        rest[1] = (tgi_dist_value){"op_b", problem->op_b};
        rest[2] = (tgi_dist_value){"alpha", alpha_bits};
        rest[3] = (tgi_dist_value){"beta", beta_bits};
        rest[5] = (tgi_dist_value){"layer_memory_bytes", problem->layer_memory_bytes};
        rest[4] = (tgi_dist_value){"the kind of the context's device", tgi_dist_is_on_gpu(work)};
    }
    return tgi_dist_agree_values(work->grid, status, values, VALUE_COUNT, &work->piece_count);
}

tg_matrix tgi_dist_view_d(const tgi_dist_product *work, const void *data)
{
    const tg_dist_layout *layout = work->problem->d;
    tg_matrix view = tg_make_matrix(layout->type, data, work->rows, work->cols);
    view.row_stride = tgi_dist_row_stride(layout, work->grid);
    view.col_stride = tgi_dist_col_stride(layout, work->grid);
    return view;
}

/* alpha = 0 or k = 0: D = beta C. */
static tg_status scale_alone(tgi_dist_product *work, const void *c, void *d)
{
    tg_problem problem = tg_make_problem(
        tg_make_matrix(work->problem->a->type, NULL, work->rows, 0),
        tg_make_matrix(work->problem->b->type, NULL, 0, work->cols), tgi_dist_view_d(work, d));
    problem.c = tgi_dist_view_d(work, c);
    problem.beta = work->problem->beta;
    if (work->rows == 0 || work->cols == 0)
        return TG_STATUS_OK;
    const tg_status status = tg_multiply(work->context, &problem);
    return tgi_dist_take_detail(status ? status : tg_synchronize(work->context, NULL));
}

static tg_status run_product(tgi_dist_product *work, const void *a, const void *b, const void *c,
                             void *d)
{
    if (work->form.layers.count > 1)
        return tgi_dist_run_layers(work, a, b, c, d);
    const tg_status status = tgi_dist_fit_operands(work, a, b);
    if (status)
        return status;
    return tgi_dist_is_on_gpu(work) ? tgi_dist_run_gather(work, c, d)
                                    : tgi_dist_run_summa(work, c, d);
}

tg_status tg_dist_multiply(const tg_dist_grid *grid, tg_context *context,
                           const tg_dist_problem *problem, const void *a, const void *b,
                           const void *c, void *d, tg_dist_counts *counts)
{
    tgi_dist_product work = {.grid = grid, .context = context, .problem = problem};
    const void *const pointers[4] = {a, b, c, d};
    if (!grid)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "grid is NULL; pass one");
    tg_status status = check_arguments(&work, pointers, counts);
    if (!status) {
        a = tgi_dist_find_origin(problem->a, grid, a);
        b = tgi_dist_find_origin(problem->b, grid, b);
        c = tgi_dist_find_origin(problem->d, grid, c);
        d = tgi_dist_find_origin(problem->d, grid, d);
        status = prepare(&work, a, b);
    }
    status = agree_problem(&work, status);
    if (status)
        return status;
    if (problem->alpha == 0 || work.form.k == 0)
        status = tgi_dist_agree(grid, scale_alone(&work, c, d));
    else
        status = run_product(&work, a, b, c, d);
    tgi_dist_release_operands(&work);
    if (!status && counts) {
        counts->bytes_sent = work.counts.bytes_sent;
        counts->bytes_received = work.counts.bytes_received;
    }
    return status;
}
