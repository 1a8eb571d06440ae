/* Products in layers (2.5D, Solomonik and Demmel 2011): each layer of ranks multiplies a portion of
 * portions of k by SUMMA on a smaller grid, so that slabs go to fewer ranks, and what the layers
 * have formed is added. A and B are first copied to the layers. */
#include <stdlib.h>

#include "dist.h"

/* op(A), op(B) and the sums as they lie on the layers. */
typedef struct layer_sides {
    tgi_dist_side a, b, sums;
} layer_sides;

static int64_t divide_up(int64_t x, int64_t y)
{
    return x > 0 ? (x + y - 1) / y : 1;
}

static layer_sides describe_layers(const tg_dist_grid *grid, const tgi_dist_form *form,
                                   const tgi_dist_layers *layers)
{
    const int rows = layers->row_count, cols = layers->col_count;
    const int rank_count = grid->row_count * grid->col_count, in_layer = rows * cols;
    const tgi_dist_axis m = {form->m, divide_up(form->m, rows), rows, 0, 0};
    const tgi_dist_axis n = {form->n, divide_up(form->n, cols), cols, 0, 0};
    const tgi_dist_axis a_k = {form->k, layers->k_count / cols, layers->count * cols, 0, 0};
    const tgi_dist_axis b_k = {form->k, layers->k_count / rows, layers->count * rows, 0, 0};
    const tgi_dist_place row = {cols, rows, rank_count, 0}, col = {1, cols, rank_count, 0};
    const tgi_dist_place a_k_portion = {1, cols, in_layer, cols};
    const tgi_dist_place b_k_portion = {cols, layers->count * rows, rank_count, 0};
    const int my_row = grid->rank / cols % rows, my_k = grid->rank / cols;
    const int64_t row_count = tgi_dist_count_local(&m, my_row);
    const int64_t local_count = tgi_dist_count_local(&b_k, my_k);
    return (layer_sides){
        .a = {m, a_k, row, a_k_portion, 1, row_count > 0 ? row_count : 1},
        .b = {b_k, n, b_k_portion, col, 1, local_count > 0 ? local_count : 1},
        .sums = {m, n, row, col, 1, row_count > 0 ? row_count : 1},
    };
}

static tg_type find_sum_type(const tg_dist_problem *problem)
{
    return problem->d->type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
}

/* Returns the side of the operand as it is passed. */
static tgi_dist_side undo(tg_operation op, const tgi_dist_side *side)
{
    return op == TG_OPERATION_TRANSPOSE
               ? (tgi_dist_side){side->cols,      side->rows,       side->col_place,
                                 side->row_place, side->col_stride, side->row_stride}
               : *side;
}

static void count_all(const tg_dist_grid *grid, const tg_dist_problem *problem,
                      const tgi_dist_form *form, const tgi_dist_layers *layers, int rank,
                      tg_dist_counts *counts)
{
    const layer_sides sides = describe_layers(grid, form, layers);
    const tgi_dist_side a = undo(problem->op_a, &sides.a), b = undo(problem->op_b, &sides.b);
    const tgi_dist_side a_from = tgi_dist_describe_side(problem->a, grid, 0);
    const tgi_dist_side b_from = tgi_dist_describe_side(problem->b, grid, 0);
    const tgi_dist_side d = tgi_dist_describe_side(problem->d, grid, 0);
    const int rows = layers->row_count, cols = layers->col_count;
    const int row = rank / cols % rows, col = rank % cols, layer = rank / (rows * cols);
    const int64_t rest = form->k - layer * layers->k_count;
    const int64_t k_count = rest < layers->k_count ? rest : layers->k_count;
    const tgi_dist_axis a_k = {k_count, layers->k_count / cols, cols, 0, 0};
    const tgi_dist_axis b_k = {k_count, layers->k_count / rows, rows, 0, 0};
    tgi_dist_count_move(&a_from, &a, tg_get_type_bytes(problem->a->type), 1, rank, counts);
    tgi_dist_count_move(&b_from, &b, tg_get_type_bytes(problem->b->type), 1, rank, counts);
    tgi_dist_count_slabs(&sides.a.rows, row, &a_k, col, problem->a->type, counts);
    tgi_dist_count_slabs(&sides.b.cols, col, &b_k, row, problem->b->type, counts);
    tgi_dist_count_move(&sides.sums, &d, tg_get_type_bytes(find_sum_type(problem)), layers->count,
                        rank, counts);
}

void tgi_dist_count_layers(const tg_dist_grid *grid, const tg_dist_problem *problem,
                           const tgi_dist_form *form, int rank, tg_dist_counts *counts)
{
    count_all(grid, problem, form, &form->layers, rank, counts);
}

/* Returns the bytes that the copies, the sums and the messages of a rank take at most. */
static double find_need(const tg_dist_grid *grid, const tg_dist_problem *problem,
                        const tgi_dist_form *form, const tgi_dist_layers *layers)
{
    const double m = (double)divide_up(form->m, layers->row_count);
    const double n = (double)divide_up(form->n, layers->col_count);
    const double k = (double)layers->k_count;
    const double a = m * k / layers->col_count * (double)tg_get_type_bytes(problem->a->type);
    const double b = n * k / layers->row_count * (double)tg_get_type_bytes(problem->b->type);
    const double sum_bytes = (double)tg_get_type_bytes(find_sum_type(problem));
    const tgi_dist_axis rows = tgi_dist_rows(problem->d, grid);
    const tgi_dist_axis cols = tgi_dist_cols(problem->d, grid);
    double most_rows = 0, most_cols = 0;
    for (int i = 0; i < rows.portion_count; i++)
        if ((double)tgi_dist_count_local(&rows, i) > most_rows)
            most_rows = (double)tgi_dist_count_local(&rows, i);
    for (int i = 0; i < cols.portion_count; i++)
        if ((double)tgi_dist_count_local(&cols, i) > most_cols)
            most_cols = (double)tgi_dist_count_local(&cols, i);
    const double sums = (2 * m * n + (1 + layers->count) * most_rows * most_cols) * sum_bytes;
    return 2 * (a + b) + sums;
}

/* Sets the k of a layer: a multiple of rows and columns. Returns 0 if a layer has none, or if a
 * slab would be short. */
static int cut_k(tgi_dist_layers *layers, int64_t k)
{
    const int64_t rows = layers->row_count, cols = layers->col_count;
    int64_t multiple = rows;
    while (multiple % cols)
        multiple += rows;
    layers->k_count = divide_up(divide_up(k, layers->count), multiple) * multiple;
    return layers->k_count * (layers->count - 1) < k &&
           (rows == 1 || layers->k_count / rows >= TGI_DIST_BLOCK_MIN) &&
           (cols == 1 || layers->k_count / cols >= TGI_DIST_BLOCK_MIN);
}

void tgi_dist_choose_layers(const tg_dist_grid *grid, const tg_dist_problem *problem,
                            tgi_dist_form *form)
{
    const int rank_count = grid->row_count * grid->col_count;
    tg_dist_counts fewest = {.bytes_sent = 0};
    form->layers = (tgi_dist_layers){.count = 1};
    if (problem->layer_memory_bytes == 0 || problem->alpha == 0)
        return;
    for (int rank = 0; rank < rank_count; rank++)
        tgi_dist_count_flat(grid, problem, form, rank, &fewest);
    for (int in_layer = 1; in_layer < rank_count; in_layer++) {
        for (int rows = 1; rows <= in_layer && rank_count % in_layer == 0; rows++) {
            tgi_dist_layers layers = {rank_count / in_layer, rows, in_layer / rows, 0};
            tg_dist_counts all = {.bytes_sent = 0};
            if (in_layer % rows || !cut_k(&layers, form->k) ||
                find_need(grid, problem, form, &layers) > (double)problem->layer_memory_bytes)
                continue;
            for (int rank = 0; rank < rank_count; rank++)
                count_all(grid, problem, form, &layers, rank, &all);
            if (all.bytes_sent < fewest.bytes_sent) {
                fewest = all;
                form->layers = layers;
            }
        }
    }
}

/* Memory of a rank. */
typedef struct layer_buffers {
    void *a, *b, *sums, *d;
} layer_buffers;

static tg_status allocate_buffers(const tgi_dist_product *work, const layer_sides *sides,
                                  layer_buffers *buffers)
{
    const tg_dist_problem *problem = work->problem;
    const int rank = work->grid->rank;
    const int64_t sum_bytes = tg_get_type_bytes(find_sum_type(problem));
    const int64_t bytes[] = {
        tgi_dist_count_side(&sides->a, rank) * tg_get_type_bytes(problem->a->type),
        tgi_dist_count_side(&sides->b, rank) * tg_get_type_bytes(problem->b->type),
        tgi_dist_count_side(&sides->sums, rank) * sum_bytes, work->rows * work->cols * sum_bytes};
    void **memory[] = {&buffers->a, &buffers->b, &buffers->sums, &buffers->d};
    for (int i = 0; i < 4; i++) {
        *memory[i] = calloc((size_t)bytes[i] + 1, 1);
        if (!*memory[i])
            return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                                 "%lld bytes for a layer are not there; pass a smaller "
                                 "layer_memory_bytes",
                                 (long long)bytes[i]);
    }
    return TG_STATUS_OK;
}

/* Multiplies the k of my layer on its own grid. */
static tg_status multiply_layer(tgi_dist_product *work, const layer_buffers *buffers)
{
    const tg_dist_problem *problem = work->problem;
    const tgi_dist_form *form = &work->form;
    const tgi_dist_layers *layers = &form->layers;
    const int rows = layers->row_count, cols = layers->col_count;
    const int layer = work->grid->rank / (rows * cols);
    const int64_t rest = form->k - layer * layers->k_count;
    const int64_t k_count = rest < layers->k_count ? rest : layers->k_count;
    const int64_t row_block = divide_up(form->m, rows), col_block = divide_up(form->n, cols);
    tg_dist_layout a, b, d;
    tg_dist_problem portion;
    tg_dist_counts counts = {.struct_bytes = sizeof counts};
    tg_dist_init_layout(&a, sizeof a, problem->a->type, form->m, k_count, row_block,
                        layers->k_count / cols);
    tg_dist_init_layout(&b, sizeof b, problem->b->type, k_count, form->n, layers->k_count / rows,
                        col_block);
    tg_dist_init_layout(&d, sizeof d, find_sum_type(problem), form->m, form->n, row_block,
                        col_block);
    tg_dist_init_problem(&portion, sizeof portion, &a, &b, &d);
    portion.alpha = problem->alpha;
    MPI_Comm comm;
    tg_dist_grid *grid = NULL;
    tg_status status =
        tgi_dist_check_mpi(MPI_Comm_split(work->grid->comm, layer, work->grid->rank, &comm));
    if (status)
        return status;
    status = tg_dist_create_grid(comm, rows, cols, &grid);
    if (!status)
        status = tg_dist_multiply(grid, work->context, &portion, buffers->a, buffers->b, NULL,
                                  buffers->sums, &counts);
    tg_dist_destroy_grid(grid);
    MPI_Comm_free(&comm);
    work->counts.bytes_sent += counts.bytes_sent;
    work->counts.bytes_received += counts.bytes_received;
    return status;
}

tg_status tgi_dist_run_layers(tgi_dist_product *work, const void *a, const void *b, const void *c,
                              void *d)
{
    const tg_dist_grid *grid = work->grid;
    const tg_dist_problem *problem = work->problem;
    const layer_sides sides = describe_layers(grid, &work->form, &work->form.layers);
    const tgi_dist_side a_to = undo(problem->op_a, &sides.a), b_to = undo(problem->op_b, &sides.b);
    const tgi_dist_side a_from = tgi_dist_describe_side(problem->a, grid, 0);
    const tgi_dist_side b_from = tgi_dist_describe_side(problem->b, grid, 0);
    tgi_dist_side d_to = tgi_dist_describe_side(problem->d, grid, 0);
    d_to.row_stride = 1;
    d_to.col_stride = work->rows > 0 ? work->rows : 1;
    layer_buffers buffers = {NULL, NULL, NULL, NULL};
    tg_status status = tgi_dist_agree(grid, allocate_buffers(work, &sides, &buffers));
    if (!status)
        status =
            tgi_dist_move(grid, problem->a->type, 0, &a_from, a, &a_to, buffers.a, &work->counts);
    if (!status)
        status =
            tgi_dist_move(grid, problem->b->type, 0, &b_from, b, &b_to, buffers.b, &work->counts);
    if (!status)
        status = tgi_dist_agree(grid, multiply_layer(work, &buffers));
    if (!status)
        status = tgi_dist_move(grid, find_sum_type(problem), 1, &sides.sums, buffers.sums, &d_to,
                               buffers.d, &work->counts);
    if (!status)
        tgi_dist_round_sums(work, buffers.d, c, d);
    free(buffers.a);
    free(buffers.b);
    free(buffers.sums);
    free(buffers.d);
    return status;
}
