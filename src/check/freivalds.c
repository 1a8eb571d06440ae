/*
 * Freivalds' check compares D x with alpha A (B x) + beta C x + bias x for random x of +-1.
 *
 * The bound. An element that keeps the promise of tilegemm.h is off by at most
 *     |e_ij| <= g S_ij + u_D |exact_ij| + eta,   S = |alpha| |A||B| + |beta||C| + |bias|,
 * (for FP8 and TF32 inputs with e |alpha| |A||B| beside it; scales are part of A and B)
 * and |exact_ij| <= |D_ij| + |e_ij| turns it into one that only needs D and sums over A and B:
 *     |e_ij| <= E_ij = (g S_ij + u_D |D_ij| + eta) / (1 - u_D).
 * The difference of row i is sum_j x_j e_ij. It is at most sum_j E_ij, and, since the signs x_j are
 * independent of e (Hoeffding), at most t ||E_i|| except with probability 2 exp(-t^2 / 2), which
 * is below 1e-21 at t = 10. The smaller of the two is taken; neither needs S itself:
 *     sum_j (|A||B|)_ij = sum_l |A_il| (sum_j |B_lj|),
 *     ||(|A||B|)_i|| <= sum_l |A_il| ||B_l||   (triangle inequality).
 * To it comes the rounding of this check, done in FP64: h (sum_j S_ij + |D_ij|), h = gamma_{n+k+8}.
 * So a right D passes. A row with an error |e_ij| above its bound passes one round with
 * probability at most 1/2: of two x that differ in the sign of x_j alone, one makes it fail.
 *
 * NaN and Inf. An element of D must be NaN or Inf where its row of A, column of B, C or bias holds
 * one; a finite value there fails (which of NaN, +Inf, -Inf it is, is not told apart). Columns
 * with such a B or bias get x_j = 0, so the rest of every row is still compared; rows with such an
 * A, C or bias are counted as skipped. A non-finite D elsewhere fails unless the sums of that row
 * may overflow, and then the row is skipped.
 *
 * SPDX-License-Identifier: MIT
 */
#include "freivalds.h"
#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define HOEFFDING_T 10.0
#define BF16_FLUSH 0x1p-126 /* BF16 instructions may flush smaller numbers to zero */
#define UNIT_FP64 0x1p-53
#define WATCH_INTERVAL_ELEMS 0x10000
#define BOUND_HEADROOM 1e-9 /* share of a bound for its rounding errors */

/* One batch entry under check. */
typedef struct freivalds_run {
    const tg_problem *problem;
    check_freivalds_report *report;
    tg_matrix a, b; /* op applied: a is m x k, b is k x n */
    int64_t m, n, k, batch;
    int rounds;
    int has_product; /* 0: A and B are never read */
    double alpha;
    double gamma, unit_d, limit; /* g, u_D, magnitude from which D or a sum may be Inf */
    double *x;                   /* n x rounds */
    double *y;                   /* k x rounds: B x */
    double *b_sum, *b_norm;      /* k: sum and 2-norm of the magnitudes of a row of B */
    unsigned char *is_masked;    /* n: the column holds NaN or Inf in B or bias */
    double b_max;                /* largest finite |B| */
    const check_watcher *watcher;
    double done_elems, shown_elems, total_elems; /* read so far, when last shown, in all */
} freivalds_run;

/* Sums over one row of D. */
typedef struct row_sums {
    double difference[CHECK_ROUND_COUNT_MAX]; /* (D x) - (expected x) */
    double factor;                            /* |alpha| with the scale of A's row */
    double product_sum, product_norm;         /* sum and bound of the 2-norm of factor (|A||B|)_i */
    double size_sum, size_norm;               /* sum and bound of the 2-norm of S_i */
    double d_sum, d_square;
    double a_max, peak; /* peak: no partial sum of the row exceeds it */
    int is_finite;      /* no NaN or Inf in the row of A, C or bias */
    int has_special;    /* D is NaN or Inf where only an overflow explains it */
    int has_wrong_class;
} row_sums;

static double read_element(const tg_matrix *view, int64_t batch, int64_t row, int64_t col)
{
    return check_get_element(view->type, view->data, check_get_offset(view, batch, row, col));
}

static void count_elems(freivalds_run *run, int64_t elem_count)
{
    run->done_elems += (double)elem_count;
    if (!run->watcher || run->done_elems - run->shown_elems < WATCH_INTERVAL_ELEMS)
        return;
    run->watcher->show(run->watcher->state, run->done_elems / run->total_elems);
    run->shown_elems = run->done_elems;
}

static tg_matrix apply_operation(tg_matrix view, tg_operation operation)
{
    tg_matrix applied = view;
    if (operation == TG_OPERATION_TRANSPOSE) {
        applied.row_count = view.col_count;
        applied.col_count = view.row_count;
        applied.row_stride = view.col_stride;
        applied.col_stride = view.row_stride;
    }
    return applied;
}

/* Returns the 2-norm from the sum of squares. If squares leave FP64's range, returns a bound of the
 * norm, the sum of magnitudes. */
static double bound_norm(double square, double sum)
{
    return square > DBL_MIN && isfinite(square) ? sqrt(square) : sum;
}

static void set_rounding(freivalds_run *run)
{
    int is_fp64 = run->problem->a.type == TG_TYPE_FP64;
    double unit = is_fp64 ? UNIT_FP64 : 0x1p-24;
    double share = check_get_rounding_count(run->problem, run->k) * unit;
    run->gamma = share < 1 ? share / (1 - share) : INFINITY;
    run->limit = is_fp64 ? DBL_MAX / 4 : FLT_MAX / 4;
    run->unit_d = run->problem->d.type == TG_TYPE_FP64   ? UNIT_FP64
                  : run->problem->d.type == TG_TYPE_FP32 ? 0x1p-24
                  : run->problem->d.type == TG_TYPE_BF16 ? 0x1p-8
                                                         : 0x1p-11;
    if (run->problem->d.type == TG_TYPE_FP16)
        run->limit = 65504.0 / 4;
}

/* Returns eta, the largest error of an element of a row by underflow, also in FP16 slices. */
static double bound_underflow(const freivalds_run *run, const row_sums *sums)
{
    const tg_problem *problem = run->problem;
    int is_fp64 = problem->a.type == TG_TYPE_FP64;
    double rounding_count = sums->factor * (double)run->k + 3;
    double eta = rounding_count * (is_fp64 ? DBL_TRUE_MIN : 0x1p-149);
    if (problem->d.type == TG_TYPE_FP16)
        eta += 0x1p-25;
    if (problem->d.type == TG_TYPE_BF16)
        eta += 0x1p-134;
    if (problem->precision == TG_PRECISION_FP16X3)
        eta += rounding_count * 0x1p-37 * sums->a_max * run->b_max;
    if (check_may_flush(problem))
        eta += (rounding_count * (sums->a_max + run->b_max + 1) + 1) * BF16_FLUSH;
    eta += check_bound_alignment(problem, run->gamma, rounding_count, sums->a_max, run->b_max);
    return eta;
}

/* Returns an element of B with the scale of its column. */
static double read_b(const freivalds_run *run, int64_t l, int64_t col)
{
    return read_element(&run->b, run->batch, l, col) * check_get_col_scale(run->problem, col);
}

/* Draws x, with 0 in columns that hold NaN or Inf. One draw gives 64 signs. */
static void draw_signs(freivalds_run *run, uint64_t *random)
{
    for (int64_t j = 0; j < run->n; j++) {
        uint64_t bits = check_next_random(random);
        double *x = run->x + j * run->rounds;
        for (int r = 0; r < run->rounds; r++)
            x[r] = run->is_masked[j] ? 0 : (bits >> r & 1) ? 1 : -1;
    }
}

static void mask_columns(freivalds_run *run)
{
    run->b_max = 0;
    for (int64_t j = 0; j < run->n; j++)
        run->is_masked[j] = (unsigned char)check_is_col_special(run->problem, j);
    for (int64_t l = 0; run->has_product && l < run->k; l++) {
        for (int64_t j = 0; j < run->n; j++) {
            double size = fabs(read_b(run, l, j));
            if (isfinite(size))
                run->b_max = fmax(run->b_max, size);
            else
                run->is_masked[j] = 1;
        }
        count_elems(run, run->n);
    }
}

/* Computes y = B x, and the sums of magnitudes of each row of B. */
static void multiply_b(freivalds_run *run)
{
    int rounds = run->rounds;
    for (int64_t l = 0; run->has_product && l < run->k; l++) {
        double sum = 0, square = 0, y[CHECK_ROUND_COUNT_MAX] = {0};
        for (int64_t j = 0; j < run->n; j++) {
            if (run->is_masked[j])
                continue;
            double value = read_b(run, l, j);
            const double *x = run->x + j * rounds;
            sum += fabs(value);
            square += value * value;
            for (int r = 0; r < rounds; r++)
                y[r] += value * x[r];
        }
        for (int r = 0; r < rounds; r++)
            run->y[l * rounds + r] = y[r];
        run->b_sum[l] = sum;
        run->b_norm[l] = bound_norm(square, sum);
        count_elems(run, run->n);
    }
}

/* Subtracts alpha A_i (B x) and adds its magnitudes. */
static void add_product_row(const freivalds_run *run, int64_t row, row_sums *sums)
{
    int rounds = run->rounds;
    double a_sum = 0, size_sum = 0, size_norm = 0, z[CHECK_ROUND_COUNT_MAX] = {0};
    for (int64_t l = 0; run->has_product && l < run->k; l++) {
        double value = read_element(&run->a, run->batch, row, l);
        double size = fabs(value);
        const double *y = run->y + l * rounds;
        if (!isfinite(value)) {
            sums->is_finite = 0;
            return;
        }
        a_sum += size;
        sums->a_max = fmax(sums->a_max, size);
        size_sum += size * run->b_sum[l];
        size_norm += size * run->b_norm[l];
        for (int r = 0; r < rounds; r++)
            z[r] += value * y[r];
    }
    double alpha = run->alpha * check_get_row_scale(run->problem, row);
    sums->factor = fabs(alpha);
    sums->peak += fmax(sums->factor, 1) * a_sum * run->b_max;
    sums->product_sum = sums->factor * size_sum;
    sums->product_norm = sums->factor * size_norm;
    for (int r = 0; r < rounds; r++)
        sums->difference[r] -= alpha * z[r];
}

/* Adds D_i x, subtracts the product of x and the terms that the epilogue adds, and checks the class
 * of every element. */
static void add_output_row(const freivalds_run *run, int64_t row, row_sums *sums)
{
    const tg_problem *problem = run->problem;
    int is_row_special = !sums->is_finite;
    double added_sum = 0, added_square = 0, added_max = 0;
    for (int64_t j = 0; j < run->n; j++) {
        double d = read_element(&problem->d, run->batch, row, j);
        const check_added added = check_find_added(problem, run->batch, row, j);
        const double *x = run->x + j * run->rounds;
        if (is_row_special || run->is_masked[j] || !isfinite(added.sum)) {
            run->report->class_elem_count++;
            sums->has_wrong_class |= isfinite(d);
            if (!run->is_masked[j])
                sums->is_finite = 0;
            continue;
        }
        double size = (double)added.size;
        added_sum += size;
        added_square += size * size;
        added_max = fmax(added_max, size);
        if (!isfinite(d)) {
            sums->has_special = 1;
            continue;
        }
        sums->d_sum += fabs(d);
        sums->d_square += d * d;
        for (int r = 0; r < run->rounds; r++)
            sums->difference[r] += (double)(d - added.sum) * x[r];
    }
    sums->size_sum = sums->product_sum + added_sum;
    sums->size_norm = sums->product_norm + bound_norm(added_square, added_sum);
    sums->peak += added_max;
}

static double bound_row(const freivalds_run *run, const row_sums *sums)
{
    double n = (double)run->n, eta = bound_underflow(run, sums);
    double own = ((double)run->n + (double)run->k + 8) * UNIT_FP64;
    double d_norm = bound_norm(sums->d_square, sums->d_sum);
    double e = check_get_product_error(run->problem);
    double sum = run->gamma * sums->size_sum + e * sums->product_sum;
    double norm = run->gamma * sums->size_norm + e * sums->product_norm;
    sum += run->unit_d * sums->d_sum + n * eta;
    norm += run->unit_d * d_norm + sqrt(n) * eta;
    double promised = fmin(sum, HOEFFDING_T * norm) / (1 - run->unit_d);
    return (promised + own / (1 - own) * (sums->size_sum + sums->d_sum)) * (1 + BOUND_HEADROOM);
}

static void fail_row(freivalds_run *run, int64_t row, double share)
{
    check_freivalds_report *report = run->report;
    if (report->is_ok) {
        report->bad_batch = run->batch;
        report->bad_row = row;
    }
    report->is_ok = 0;
    report->worst_share = fmax(report->worst_share, share);
}

static void judge_row(freivalds_run *run, int64_t row)
{
    check_freivalds_report *report = run->report;
    row_sums sums = {.is_finite = 1};
    add_product_row(run, row, &sums);
    add_output_row(run, row, &sums);
    int may_overflow = !(sums.peak < run->limit);
    if (sums.has_wrong_class || (sums.has_special && !may_overflow && sums.is_finite)) {
        fail_row(run, row, INFINITY);
        return;
    }
    double bound = bound_row(run, &sums);
    if (!sums.is_finite || sums.has_special || !isfinite(bound)) {
        report->skipped_row_count++;
        return;
    }
    report->compared_row_count++;
    report->max_bound = fmax(report->max_bound, bound);
    for (int r = 0; r < run->rounds; r++) {
        double difference = fabs(sums.difference[r]);
        double share = difference == 0 ? 0 : difference / bound;
        if (difference <= bound)
            report->worst_share = fmax(report->worst_share, share);
        else
            fail_row(run, row, isnan(share) ? INFINITY : share);
    }
}

/* Allocates and zeroes `count` items, at least one. Returns NULL if the size overflows. */
static void *allocate_items(int64_t count, int64_t item_bytes)
{
    return calloc(count > 0 ? (size_t)count : 1, (size_t)item_bytes);
}

static int allocate_run(freivalds_run *run)
{
    int64_t round_bytes = (int64_t)sizeof(double) * run->rounds;
    run->x = allocate_items(run->n, round_bytes);
    run->y = allocate_items(run->k, round_bytes);
    run->b_sum = allocate_items(run->k, sizeof(double));
    run->b_norm = allocate_items(run->k, sizeof(double));
    run->is_masked = allocate_items(run->n, 1);
    return run->x && run->y && run->b_sum && run->b_norm && run->is_masked;
}

int check_report_freivalds(const tg_problem *problem, int rounds, uint64_t seed,
                           check_freivalds_report *report)
{
    return check_watch_freivalds(problem, rounds, seed, NULL, report);
}

int check_watch_freivalds(const tg_problem *problem, int rounds, uint64_t seed,
                          const check_watcher *watcher, check_freivalds_report *report)
{
    *report = (check_freivalds_report){.is_ok = 1, .bad_batch = -1, .bad_row = -1};
    /* An FP8 D saturates. */
    if (problem->activation != TG_ACTIVATION_NONE || check_is_fp8(problem->d.type) || rounds < 1 ||
        rounds > CHECK_ROUND_COUNT_MAX)
        return -1;
    if (problem->d.row_count == 0 || problem->d.col_count == 0)
        return 1; /* an empty D is right */
    freivalds_run run = {
        .problem = problem, .report = report, .rounds = rounds, .watcher = watcher};
    run.a = apply_operation(problem->a, problem->op_a);
    run.b = apply_operation(problem->b, problem->op_b);
    run.m = problem->d.row_count;
    run.n = problem->d.col_count;
    run.k = run.a.col_count;
    run.alpha = check_round_scalar(problem, problem->alpha);
    run.has_product = run.alpha != 0 && run.k > 0;
    double product_k = run.has_product ? (double)run.k : 0;
    double b_elems = 2 * product_k * (double)run.n; /* B is read twice */
    double row_elems = product_k + (double)run.n;
    run.total_elems = (double)problem->batch_count * (b_elems + (double)run.m * row_elems);
    set_rounding(&run);
    int is_allocated = allocate_run(&run);
    for (run.batch = 0; is_allocated && run.batch < problem->batch_count; run.batch++) {
        mask_columns(&run);
        draw_signs(&run, &seed);
        multiply_b(&run);
        for (int64_t i = 0; i < run.m; i++) {
            judge_row(&run, i);
            count_elems(&run, run.n + (run.has_product ? run.k : 0));
        }
    }
    free(run.x);
    free(run.y);
    free(run.b_sum);
    free(run.b_norm);
    free(run.is_masked);
    return is_allocated ? 1 : -1;
}

int check_freivalds(const tg_problem *problem, int rounds, uint64_t seed, double *worst_share,
                    int64_t *bad_row)
{
    check_freivalds_report report;
    int status = check_report_freivalds(problem, rounds, seed, &report);
    *worst_share = report.worst_share;
    *bad_row = report.bad_row;
    return status < 0 ? status : report.is_ok;
}
