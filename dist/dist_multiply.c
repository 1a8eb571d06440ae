#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "dist.h"

enum {
    STEP_MAX = 512,   /* steps of k of a panel */
    STRIPE_COLS = 512 /* columns of D between two looks at MPI */
};

/* What one product works with on this rank. */
typedef struct multiply_work {
    const tg_dist_grid *grid;
    tg_context *context;
    const tg_dist_problem *problem;
    tgi_dist_form form;
    void *made_a, *made_b; /* converted operands */
    float *sums;           /* of my part of D if D's type is narrower than FP32; else NULL */
    int64_t rows, cols;    /* of my part of D */
    tgi_dist_feed a, b;
    tg_dist_counts counts;
} multiply_work;

static int64_t local_bytes(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    const tgi_dist_axis rows = tgi_dist_rows(layout, grid), cols = tgi_dist_cols(layout, grid);
    return tgi_dist_count_local(&rows, grid->my_row) * tgi_dist_count_local(&cols, grid->my_col) *
           tg_get_type_bytes(layout->type);
}

/* Local matrices are in the memory of the host. */
static tg_status check_device(const tg_context *context)
{
    tg_device_info info;
    const tg_status status = tgi_dist_take_detail(tg_get_device_info(context, &info, sizeof info));
    if (status || strcmp(info.device, "cpu") == 0)
        return status;
    return tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                         "device of the context is %s; pass a context of the CPU", info.device);
}

static tg_status check_arguments(const multiply_work *work, const void *const pointers[4],
                                 const tg_dist_counts *counts, tgi_dist_form *form)
{
    const tg_dist_grid *grid = work->grid;
    const tg_dist_problem *problem = work->problem;
    tg_status status = check_device(work->context);
    if (!status)
        status = tgi_dist_find_form(grid, problem, form);
    if (!status && counts)
        status = tgi_dist_check_struct(counts, sizeof *counts, "counts");
    if (status)
        return status;
    const tg_dist_layout *layouts[4] = {problem->a, problem->b, problem->d, problem->d};
    const int is_used[4] = {problem->alpha != 0, problem->alpha != 0, problem->beta != 0, 1};
    for (int i = 0; i < 4; i++)
        if (is_used[i] && !pointers[i] && local_bytes(layouts[i], grid))
            return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                                 "%c is NULL; pass the local matrix of this rank", "abcd"[i]);
    return TG_STATUS_OK;
}

static tg_status agree_problem(const tg_dist_grid *grid, const tg_dist_problem *problem)
{
    tgi_dist_value values[3 * TGI_DIST_LAYOUT_VALUES + 4];
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
    return tgi_dist_agree_values(grid, values, 3 * TGI_DIST_LAYOUT_VALUES + 4);
}

/* Converts an operand if is_needed. *made is the memory of the converted local matrix; *data is set
 * to it. */
static tg_status fit_operand(multiply_work *work, int is_needed, const tg_dist_layout *from,
                             tg_operation op, const tg_dist_layout *to, void **made,
                             const void **data)
{
    if (!is_needed)
        return TG_STATUS_OK;
    const int64_t bytes = local_bytes(to, work->grid);
    *made = malloc((size_t)bytes + 1);
    tg_status status = TG_STATUS_OK;
    if (!*made)
        status = tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                               "%lld bytes for an operand in a layout that fits D's are not there; "
                               "pass one that fits, or use more ranks",
                               (long long)bytes);
    status = tgi_dist_agree(work->grid, status);
    if (!status)
        status = tgi_dist_convert(work->grid, op, from, *data, to, *made, &work->counts);
    *data = *made;
    return status;
}

static void describe_feeds(multiply_work *work, const void *a, const void *b)
{
    const tg_dist_grid *grid = work->grid;
    const tg_dist_layout *fit_a = &work->form.a, *fit_b = &work->form.b;
    work->a = (tgi_dist_feed){.data = a,
                              .type = fit_a->type,
                              .line_count = work->rows,
                              .line_stride = tgi_dist_row_stride(fit_a, grid),
                              .k_stride = tgi_dist_col_stride(fit_a, grid),
                              .is_along_k = fit_a->is_row_major,
                              .k_axis = tgi_dist_cols(fit_a, grid),
                              .comm = grid->row,
                              .part = grid->my_col,
                              .element = MPI_DATATYPE_NULL};
    work->b = (tgi_dist_feed){.data = b,
                              .type = fit_b->type,
                              .line_count = work->cols,
                              .line_stride = tgi_dist_col_stride(fit_b, grid),
                              .k_stride = tgi_dist_row_stride(fit_b, grid),
                              .is_along_k = !fit_b->is_row_major,
                              .k_axis = tgi_dist_rows(fit_b, grid),
                              .comm = grid->col,
                              .part = grid->my_row,
                              .element = MPI_DATATYPE_NULL};
}

/* Returns the end of the panel that starts at step k. All steps of a panel have one owner of op(A)
 * in each row of the grid and one of op(B) in each column. */
static int64_t find_panel_end(const multiply_work *work, int64_t k)
{
    int64_t width = work->form.k - k;
    const tgi_dist_axis *axes[2] = {&work->a.k_axis, &work->b.k_axis};
    for (int i = 0; i < 2; i++) {
        const int64_t rest = axes[i]->block - k % axes[i]->block;
        if (axes[i]->part_count > 1 && rest < width)
            width = rest;
    }
    return k + (width < STEP_MAX ? width : STEP_MAX);
}

/* Multiplies one panel: D = alpha A B + beta C, by stripes, between which MPI goes on. */
static tg_status multiply_panel(multiply_work *work, const tg_problem *whole)
{
    tg_status status = TG_STATUS_OK;
    for (int64_t col = 0; col < work->cols && !status; col += STRIPE_COLS) {
        const int64_t rest = work->cols - col;
        tg_problem stripe = *whole;
        tg_matrix *matrices[3] = {&stripe.b, &stripe.c, &stripe.d};
        for (int i = 0; i < 3; i++) {
            matrices[i]->col_count = rest < STRIPE_COLS ? rest : STRIPE_COLS;
            if (matrices[i]->data)
                matrices[i]->data =
                    (char *)matrices[i]->data +
                    col * matrices[i]->col_stride * tg_get_type_bytes(matrices[i]->type);
        }
        status = tgi_dist_take_detail(tg_multiply(work->context, &stripe));
        tgi_dist_progress(&work->a);
        tgi_dist_progress(&work->b);
    }
    return status;
}

static tg_matrix view_d(const multiply_work *work, const void *data)
{
    const tg_dist_layout *layout = work->problem->d;
    tg_matrix view = tg_make_matrix(layout->type, data, work->rows, work->cols);
    view.row_stride = tgi_dist_row_stride(layout, work->grid);
    view.col_stride = tgi_dist_col_stride(layout, work->grid);
    return view;
}

static tg_matrix view_sums(const multiply_work *work)
{
    tg_matrix view = tg_make_matrix(TG_TYPE_FP32, work->sums, work->rows, work->cols);
    view.row_stride = 1;
    view.col_stride = work->rows > 0 ? work->rows : 1;
    return view;
}

/* Multiplies all panels in turn. *failed keeps the first failure of a product. The ranks go on with
 * their messages after one, so that none waits for a rank that has stopped. */
static tg_status multiply_panels(multiply_work *work, const void *c, void *d, tg_status *failed)
{
    tg_matrix target = work->sums ? view_sums(work) : view_d(work, d), addend = view_d(work, c);
    double beta = work->sums ? 0 : work->problem->beta;
    int64_t number = 0, end;
    tg_status status = TG_STATUS_OK;
    for (int64_t k = 0, next = find_panel_end(work, 0); k < work->form.k && !status; k = end) {
        const int64_t width = next - k;
        end = next;
        if (k == 0)
            status = tgi_dist_start_panel(&work->a, 0, 0, width, &work->counts);
        if (k == 0 && !status)
            status = tgi_dist_start_panel(&work->b, 0, 0, width, &work->counts);
        if (end < work->form.k) {
            next = find_panel_end(work, end);
            if (!status)
                status = tgi_dist_start_panel(&work->a, number + 1, end, next - end, &work->counts);
            if (!status)
                status = tgi_dist_start_panel(&work->b, number + 1, end, next - end, &work->counts);
        }
        const void *a, *b;
        tg_problem panel =
            tg_make_problem(tg_make_matrix(work->a.type, NULL, work->rows, width),
                            tg_make_matrix(work->b.type, NULL, width, work->cols), target);
        if (!status)
            status = tgi_dist_await_panel(&work->a, number, k, width, &a, &panel.a.row_stride,
                                          &panel.a.col_stride);
        if (!status)
            status = tgi_dist_await_panel(&work->b, number, k, width, &b, &panel.b.col_stride,
                                          &panel.b.row_stride);
        if (status)
            break;
        panel.a.data = (void *)a;
        panel.b.data = (void *)b;
        panel.alpha = work->problem->alpha;
        panel.beta = number == 0 ? beta : 1;
        panel.c = number == 0 && !work->sums ? addend : target;
        if (!*failed && work->rows)
            *failed = multiply_panel(work, &panel);
        number++;
    }
    tgi_dist_feed *feeds[2] = {&work->a, &work->b};
    for (int i = 0; i < 4 && !status; i++)
        status =
            tgi_dist_check_mpi(MPI_Waitall(feeds[i / 2]->request_counts[i % 2],
                                           feeds[i / 2]->requests[i % 2], MPI_STATUSES_IGNORE));
    return status;
}

static float read_number(tg_type type, const void *data, int64_t i)
{
    switch (type) {
    case TG_TYPE_BF16:
        return tgi_fp32_from_bf16(((const uint16_t *)data)[i]);
    case TG_TYPE_FP16:
        return tgi_fp32_from_fp16(((const uint16_t *)data)[i]);
    case TG_TYPE_FP8_E4M3:
        return tgi_fp32_from_e4m3(((const uint8_t *)data)[i]);
    default:
        return tgi_fp32_from_e5m2(((const uint8_t *)data)[i]);
    }
}

static void write_number(tg_type type, void *data, int64_t i, float value)
{
    switch (type) {
    case TG_TYPE_BF16:
        ((uint16_t *)data)[i] = tgi_bf16_from_fp32(value);
        break;
    case TG_TYPE_FP16:
        ((uint16_t *)data)[i] = tgi_fp16_from_fp32(value);
        break;
    case TG_TYPE_FP8_E4M3:
        ((uint8_t *)data)[i] = tgi_e4m3_from_fp32(value);
        break;
    default:
        ((uint8_t *)data)[i] = tgi_e5m2_from_fp32(value);
    }
}

/* D = sums + beta C, rounded to D's type. */
static void round_sums(const multiply_work *work, const void *c, void *d)
{
    const tg_matrix view = view_d(work, d);
    const float beta = (float)work->problem->beta;
    for (int64_t j = 0; j < work->cols; j++) {
        for (int64_t i = 0; i < work->rows; i++) {
            const int64_t place = i * view.row_stride + j * view.col_stride;
            float value = work->sums[j * work->rows + i];
            if (beta != 0)
                value += beta * read_number(view.type, c, place);
            write_number(view.type, d, place, value);
        }
    }
}

/* Opens both feeds and allocates the sums of a narrow D. */
static tg_status prepare_panels(multiply_work *work)
{
    const int64_t count = work->rows * work->cols;
    tg_status status = tgi_dist_open_feed(&work->a, STEP_MAX);
    if (!status)
        status = tgi_dist_open_feed(&work->b, STEP_MAX);
    if (status || tg_get_type_bytes(work->problem->d->type) >= 4)
        return status;
    work->sums = malloc((size_t)count * sizeof(float) + 1);
    if (!work->sums)
        return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                             "%lld bytes for sums of FP32 are not there; use more ranks",
                             (long long)count * 4);
    return TG_STATUS_OK;
}

/* alpha = 0 or k = 0: D = beta C. */
static tg_status scale_alone(multiply_work *work, const void *c, void *d)
{
    tg_problem problem = tg_make_problem(
        tg_make_matrix(work->problem->a->type, NULL, work->rows, 0),
        tg_make_matrix(work->problem->b->type, NULL, 0, work->cols), view_d(work, d));
    problem.c = view_d(work, c);
    problem.beta = work->problem->beta;
    if (work->rows == 0 || work->cols == 0)
        return TG_STATUS_OK;
    return tgi_dist_take_detail(tg_multiply(work->context, &problem));
}

static tg_status run_product(multiply_work *work, const void *a, const void *b, const void *c,
                             void *d)
{
    const tg_dist_problem *problem = work->problem;
    tg_status status = fit_operand(work, work->form.converts_a, problem->a, problem->op_a,
                                   &work->form.a, &work->made_a, &a);
    if (!status)
        status = fit_operand(work, work->form.converts_b, problem->b, problem->op_b, &work->form.b,
                             &work->made_b, &b);
    if (status)
        return status;
    describe_feeds(work, a, b);
    tg_status failed = TG_STATUS_OK;
    status = tgi_dist_agree(work->grid, prepare_panels(work));
    if (!status)
        status = multiply_panels(work, c, d, &failed);
    if (!status)
        status = tgi_dist_agree(work->grid, failed);
    if (!status && work->sums)
        round_sums(work, c, d);
    tgi_dist_close_feed(&work->a);
    tgi_dist_close_feed(&work->b);
    return status;
}

tg_status tg_dist_multiply(const tg_dist_grid *grid, tg_context *context,
                           const tg_dist_problem *problem, const void *a, const void *b,
                           const void *c, void *d, tg_dist_counts *counts)
{
    multiply_work work = {.grid = grid, .context = context, .problem = problem};
    const void *const pointers[4] = {a, b, c, d};
    if (!grid)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "grid is NULL; pass one");
    tg_status status = tgi_dist_agree(grid, check_arguments(&work, pointers, counts, &work.form));
    if (!status)
        status = agree_problem(grid, problem);
    if (status)
        return status;
    const tgi_dist_axis rows = tgi_dist_rows(problem->d, grid);
    const tgi_dist_axis cols = tgi_dist_cols(problem->d, grid);
    work.rows = tgi_dist_count_local(&rows, grid->my_row);
    work.cols = tgi_dist_count_local(&cols, grid->my_col);
    if (problem->alpha == 0 || work.form.k == 0)
        status = tgi_dist_agree(grid, scale_alone(&work, c, d));
    else
        status = run_product(&work, a, b, c, d);
    free(work.made_a);
    free(work.made_b);
    free(work.sums);
    if (!status && counts) {
        counts->bytes_sent = work.counts.bytes_sent;
        counts->bytes_received = work.counts.bytes_received;
    }
    return status;
}
