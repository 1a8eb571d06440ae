#include <stdlib.h>

#include "dist.h"

enum {
    SLAB_K_MAX = 512, /* values of k of a slab */
    STRIPE_COLS = 512 /* columns of D between two looks at MPI */
};

/* Returns the end of the slab that starts at k. All of a slab has one owner of op(A)
 * in each row of the grid and one of op(B) in each column. */
static int64_t find_slab_end(const tgi_dist_product *work, int64_t k)
{
    int64_t width = work->form.k - k;
    const tgi_dist_axis *axes[2] = {&work->a.k_axis, &work->b.k_axis};
    for (int i = 0; i < 2; i++) {
        const int64_t rest = tgi_dist_find_rest(axes[i], k);
        if (axes[i]->portion_count > 1 && rest < width)
            width = rest;
    }
    return k + (width < SLAB_K_MAX ? width : SLAB_K_MAX);
}

/* Multiplies one slab: D = alpha A B + beta C, by stripes, between which MPI goes on. */
static tg_status multiply_slab(tgi_dist_product *work, const tg_problem *whole)
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

static tg_matrix view_sums(const tgi_dist_product *work)
{
    tg_matrix view = tg_make_matrix(TG_TYPE_FP32, work->sums, work->rows, work->cols);
    view.row_stride = 1;
    view.col_stride = work->rows > 0 ? work->rows : 1;
    return view;
}

/* Multiplies all slabs in turn. *failed keeps the first failure of a product. The ranks go on with
 * their messages after one, so that none waits for a rank that has stopped. */
static tg_status multiply_slabs(tgi_dist_product *work, const void *c, void *d, tg_status *failed)
{
    tg_matrix target = work->sums ? view_sums(work) : tgi_dist_view_d(work, d),
              addend = tgi_dist_view_d(work, c);
    double beta = work->sums ? 0 : work->problem->beta;
    int64_t number = 0, end;
    tg_status status = TG_STATUS_OK;
    for (int64_t k = 0, next = find_slab_end(work, 0); k < work->form.k && !status; k = end) {
        const int64_t width = next - k;
        end = next;
        if (k == 0)
            status = tgi_dist_start_slab(&work->a, 0, 0, width, &work->counts);
        if (k == 0 && !status)
            status = tgi_dist_start_slab(&work->b, 0, 0, width, &work->counts);
        if (end < work->form.k) {
            next = find_slab_end(work, end);
            if (!status)
                status = tgi_dist_start_slab(&work->a, number + 1, end, next - end, &work->counts);
            if (!status)
                status = tgi_dist_start_slab(&work->b, number + 1, end, next - end, &work->counts);
        }
        const void *a, *b;
        tg_problem slab =
            tg_make_problem(tg_make_matrix(work->a.type, NULL, work->rows, width),
                            tg_make_matrix(work->b.type, NULL, width, work->cols), target);
        if (!status)
            status = tgi_dist_await_slab(&work->a, number, k, width, &a, &slab.a.row_stride,
                                         &slab.a.col_stride);
        if (!status)
            status = tgi_dist_await_slab(&work->b, number, k, width, &b, &slab.b.col_stride,
                                         &slab.b.row_stride);
        if (status)
            break;
        slab.a.data = (void *)a;
        slab.b.data = (void *)b;
        slab.alpha = work->problem->alpha;
        slab.beta = number == 0 ? beta : 1;
        slab.c = number == 0 && !work->sums ? addend : target;
        if (!*failed && work->rows)
            *failed = multiply_slab(work, &slab);
        number++;
    }
    tgi_dist_supply *supplies[2] = {&work->a, &work->b};
    for (int i = 0; i < 4 && !status; i++)
        status =
            tgi_dist_check_mpi(MPI_Waitall(supplies[i / 2]->request_counts[i % 2],
                                           supplies[i / 2]->requests[i % 2], MPI_STATUSES_IGNORE));
    return status;
}

/* Opens both supplies and allocates the sums of a narrow D. */
static tg_status prepare_slabs(tgi_dist_product *work)
{
    const int64_t count = work->rows * work->cols;
    tg_status status = tgi_dist_open_supply(&work->a, SLAB_K_MAX);
    if (!status)
        status = tgi_dist_open_supply(&work->b, SLAB_K_MAX);
    if (status || tg_get_type_bytes(work->problem->d->type) >= 4)
        return status;
    work->sums = malloc((size_t)count * sizeof(float) + 1);
    if (!work->sums)
        return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                             "%lld bytes for sums of FP32 are not there; use more ranks",
                             (long long)count * 4);
    return TG_STATUS_OK;
}

tg_status tgi_dist_run_summa(tgi_dist_product *work, const void *c, void *d)
{
    tg_status failed = TG_STATUS_OK;
    tg_status status = tgi_dist_agree(work->grid, prepare_slabs(work));
    if (!status)
        status = multiply_slabs(work, c, d, &failed);
    if (!status)
        status = tgi_dist_agree(work->grid, failed);
    if (!status && work->sums)
        tgi_dist_round_sums(work, work->sums, c, d);
    tgi_dist_close_supply(&work->a);
    tgi_dist_close_supply(&work->b);
    free(work->sums);
    return status;
}
