/*
 * Runs the triple loop in a wider type. B is taken a panel of columns at a time, converted once, so
 * that long k stay affordable: a thread's memory is about (PANEL_COLS_MAX + 1) k doubles at most.
 *
 * SPDX-License-Identifier: MIT
 */
#include "reference.h"

#include <math.h>
#include <stdlib.h>

#include "threads/threads.h"

#define PANEL_COLS_MAX 32
#define PANEL_ELEMS 0x200000 /* 16 MiB of doubles: a huge k gets narrow panels */
#define TASK_ROWS_MAX 128
#define TASK_COUNT 64      /* tasks under way together */
#define PARALLEL_FLOPS 1e8 /* several threads pay from this many multiply-adds on */

/* A panel of op(B), k x width, row-major, and the sums of one row of op(A) against it. */
typedef struct reference_panel {
    int64_t k, width;
    double *b; /* k x width */
    double *a; /* k */
    double max_a, max_b[PANEL_COLS_MAX];
    long double sum[PANEL_COLS_MAX], size[PANEL_COLS_MAX];
} reference_panel;

double check_get_product_error(const tg_problem *problem)
{
    if (problem->precision == TG_PRECISION_TF32)
        return 1.001 * 0x1p-10;
    if (problem->precision == TG_PRECISION_BF16X3)
        return 0x1p-14;
    if (problem->precision == TG_PRECISION_BF16X6 || problem->precision == TG_PRECISION_BF16X9 ||
        problem->precision == TG_PRECISION_FP16X3)
        return 0x1p-18;
    return check_is_fp8(problem->a.type) && problem->precision == TG_PRECISION_DEFAULT ? 0x1p-5 : 0;
}

int check_may_flush(const tg_problem *problem)
{
    return problem->precision == TG_PRECISION_TF32 ||
           (problem->a.type == TG_TYPE_BF16 && problem->precision == TG_PRECISION_DEFAULT);
}

double check_bound_alignment(const tg_problem *problem, double gamma, double products, double max_a,
                             double max_b)
{
    const double least = 0x1p-14; /* normal FP16 */
    int is_aligned = problem->a.type == TG_TYPE_FP16 && problem->precision == TG_PRECISION_DEFAULT;
    return is_aligned ? gamma * products * least * (max_a + max_b + least) : 0;
}

static int64_t get_index(check_indices indices, int64_t i)
{
    return indices.items ? indices.items[i] : i;
}

/* Sums a row against a panel in double, which is exact enough for products of FP32 and less. */
static void sum_in_double(reference_panel *panel)
{
    double sum[PANEL_COLS_MAX] = {0}, size[PANEL_COLS_MAX] = {0};
    const double *b = panel->b;
    for (int64_t l = 0; l < panel->k; l++, b += panel->width) {
        double a = panel->a[l];
        for (int64_t j = 0; j < panel->width; j++) {
            double product = a * b[j];
            sum[j] += product;
            size[j] += fabs(product);
        }
    }
    for (int64_t j = 0; j < panel->width; j++) {
        panel->sum[j] = sum[j];
        panel->size[j] = size[j];
    }
}

static void sum_in_long_double(reference_panel *panel)
{
    for (int64_t j = 0; j < panel->width; j++) {
        const double *b = panel->b + j;
        long double sum = 0, size = 0;
        for (int64_t l = 0; l < panel->k; l++, b += panel->width) {
            long double product = (long double)panel->a[l] * *b;
            sum += product;
            size += fabsl(product);
        }
        panel->sum[j] = sum;
        panel->size[j] = size;
    }
}

static void load_panel(const tg_problem *problem, int64_t batch, check_indices cols, int64_t first,
                       reference_panel *panel)
{
    int is_transposed = problem->op_b == TG_OPERATION_TRANSPOSE;
    for (int64_t j = 0; j < panel->width; j++) {
        int64_t col = get_index(cols, first + j);
        panel->max_b[j] = 0;
        for (int64_t l = 0; l < panel->k; l++) {
            int64_t offset = is_transposed ? check_get_offset(&problem->b, batch, col, l)
                                           : check_get_offset(&problem->b, batch, l, col);
            double b = check_get_element(problem->b.type, problem->b.data, offset);
            panel->b[l * panel->width + j] = b;
            panel->max_b[j] = fmax(panel->max_b[j], fabs(b));
        }
    }
}

static void load_row(const tg_problem *problem, int64_t batch, int64_t row, reference_panel *panel)
{
    int is_transposed = problem->op_a == TG_OPERATION_TRANSPOSE;
    panel->max_a = 0;
    for (int64_t l = 0; l < panel->k; l++) {
        int64_t offset = is_transposed ? check_get_offset(&problem->a, batch, l, row)
                                       : check_get_offset(&problem->a, batch, row, l);
        panel->a[l] = check_get_element(problem->a.type, problem->a.data, offset);
        panel->max_a = fmax(panel->max_a, fabs(panel->a[l]));
    }
}

static check_expected finish(const tg_problem *problem, int64_t batch, int64_t row, int64_t col,
                             const reference_panel *panel, int64_t j)
{
    const check_added added = check_find_added(problem, batch, row, col);
    check_expected expected = {.row_max_a = panel->max_a, .col_max_b = panel->max_b[j]};
    if (panel->k > 0) {
        const long double factor =
            (long double)check_round_scalar(problem, problem->alpha) *
            ((long double)check_get_row_scale(problem, row) * check_get_col_scale(problem, col));
        expected.exact = factor * panel->sum[j];
        expected.product_size = panel->size[j];
        expected.scale = fabsl(factor);
        expected.magnitude = expected.scale * panel->size[j];
    }
    expected.exact += added.sum;
    expected.magnitude += added.size;
    return expected;
}

/* Returns k, or 0 if alpha is 0, because A and B are then not read. */
static int64_t get_read_k(const tg_problem *problem)
{
    if (check_round_scalar(problem, problem->alpha) == 0)
        return 0;
    return problem->op_a == TG_OPERATION_TRANSPOSE ? problem->a.row_count : problem->a.col_count;
}

/* One task: some rows against one panel. */
typedef struct reference_task {
    int64_t first_row, row_count, first_col, col_count;
} reference_task;

static reference_task find_task(check_indices rows, check_indices cols, int64_t index,
                                int64_t block_count, int64_t width)
{
    reference_task task = {.first_row = index % block_count * TASK_ROWS_MAX,
                           .first_col = index / block_count * width};
    const int64_t row_count = rows.count - task.first_row, col_count = cols.count - task.first_col;
    task.row_count = row_count < TASK_ROWS_MAX ? row_count : TASK_ROWS_MAX;
    task.col_count = col_count < width ? col_count : width;
    return task;
}

/* Returns the task's rows x columns, row by row, or NULL if memory runs out. The caller frees
 * them. */
static check_expected *compute_task(const tg_problem *problem, int64_t batch, check_indices rows,
                                    check_indices cols, const reference_task *task)
{
    const int64_t width = task->col_count;
    reference_panel panel = {.k = get_read_k(problem), .width = width};
    check_expected *expected = malloc((size_t)(task->row_count * width) * sizeof *expected);
    panel.b = malloc((size_t)(panel.k * width + 1) * sizeof *panel.b);
    panel.a = malloc((size_t)(panel.k + 1) * sizeof *panel.a);
    if (!expected || !panel.a || !panel.b) {
        free(expected);
        expected = NULL;
    } else {
        load_panel(problem, batch, cols, task->first_col, &panel);
    }
    for (int64_t i = 0; expected && i < task->row_count; i++) {
        const int64_t row = get_index(rows, task->first_row + i);
        load_row(problem, batch, row, &panel);
        if (problem->a.type == TG_TYPE_FP64)
            sum_in_long_double(&panel);
        else
            sum_in_double(&panel);
        for (int64_t j = 0; j < width; j++)
            expected[i * width + j] =
                finish(problem, batch, row, get_index(cols, task->first_col + j), &panel, j);
    }
    free(panel.a);
    free(panel.b);
    return expected;
}

/* A group of tasks that run together. */
typedef struct reference_round {
    const tg_problem *problem;
    int64_t batch, block_count, width;
    check_indices rows, cols;
    int64_t first; /* index of the first task of all */
    reference_task tasks[TASK_COUNT];
    check_expected *expected[TASK_COUNT]; /* NULL: out of memory */
} reference_round;

static void run_task(void *state, int64_t index, int thread)
{
    reference_round *round = state;
    (void)thread;
    round->tasks[index] =
        find_task(round->rows, round->cols, round->first + index, round->block_count, round->width);
    round->expected[index] =
        compute_task(round->problem, round->batch, round->rows, round->cols, &round->tasks[index]);
}

/* Visits the elements of a task and frees them. Returns 0 if the task had no memory. */
static int visit_task(const reference_round *round, int64_t index, check_visitor *visit,
                      void *state)
{
    const reference_task *task = &round->tasks[index];
    check_expected *expected = round->expected[index];
    for (int64_t j = 0; expected && j < task->row_count * task->col_count; j++)
        visit(state, get_index(round->rows, task->first_row + j / task->col_count),
              get_index(round->cols, task->first_col + j % task->col_count), &expected[j]);
    free(expected);
    return expected != NULL;
}

int check_visit_reference(const tg_problem *problem, int64_t batch, check_indices rows,
                          check_indices cols, check_visitor *visit, void *state)
{
    const int64_t k = get_read_k(problem);
    int64_t width = k > 0 ? PANEL_ELEMS / k : PANEL_COLS_MAX;
    width = width < 1 ? 1 : width > PANEL_COLS_MAX ? PANEL_COLS_MAX : width;
    const int64_t block_count = (rows.count + TASK_ROWS_MAX - 1) / TASK_ROWS_MAX;
    const int64_t task_count = block_count * ((cols.count + width - 1) / width);
    const double flops = (double)rows.count * (double)cols.count * (double)k;
    const int thread_count = flops >= PARALLEL_FLOPS ? tgi_threads_choose_count() : 1;
    reference_round round = {.problem = problem,
                             .batch = batch,
                             .block_count = block_count,
                             .width = width,
                             .rows = rows,
                             .cols = cols};
    int has_memory = 1;
    for (; has_memory && round.first < task_count; round.first += TASK_COUNT) {
        const int64_t rest = task_count - round.first;
        const int64_t count = rest < TASK_COUNT ? rest : TASK_COUNT;
        tgi_threads_run(run_task, &round, count, thread_count);
        for (int64_t i = 0; i < count; i++)
            has_memory &= visit_task(&round, i, visit, state);
    }
    return has_memory;
}
