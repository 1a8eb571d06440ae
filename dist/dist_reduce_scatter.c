/* Products whose sum over the ranks is scattered by rows. The rows of a rank go round: each rank
 * adds its product to what the rank before has sent, and the rank that keeps them is the last. */
#include "dist_tensor.h"

/* Checks what the sum over the ranks allows, and that D's lines can be sent. */
static tg_status check_scatter(const tg_problem *problem, tgi_tensor_shape *mine)
{
    const tg_matrix *d = &problem->d;
    mine->rows = d->row_count;
    mine->width = d->col_count;
    mine->type = d->type;
    mine->is_along = 1;
    if (problem->beta != 0 || problem->bias != TG_BIAS_NONE ||
        problem->activation != TG_ACTIVATION_NONE)
        return tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                             "beta, bias and activation do not go with the sum over the ranks; "
                             "apply them to d");
    if (tg_get_type_bytes(d->type) < 2)
        return tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                             "d's type is %s, in which sums are not kept; pass a type of 16 bits "
                             "or more",
                             tg_get_type_name(d->type));
    if (d->row_count < 0 || d->col_count < 0)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "d is %lld x %lld; pass sizes >= 0",
                             (long long)d->row_count, (long long)d->col_count);
    if (d->col_stride != 1 || d->row_stride < d->col_count)
        return tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                             "d has strides %lld and %lld; pass one whose rows are contiguous",
                             (long long)d->row_stride, (long long)d->col_stride);
    return TG_STATUS_OK;
}

/* Rows of a rank from this number on go in two chunks. One is sent while the other is formed. */
enum { CHUNK_ROWS = 1024, CHUNK_COUNT = 2, PLACE_BYTES = 256 };

/* Returns the row of a rank before which its first `number` chunks end. */
static int64_t find_chunk(int64_t row_count, int number)
{
    if (number == CHUNK_COUNT)
        return row_count;
    return row_count < CHUNK_ROWS ? 0 : row_count / CHUNK_COUNT * number;
}

/* Where a rank's buffer holds the rows of all ranks: those that came and those that it sends on. */
typedef struct scatter_places {
    int64_t line_bytes, arrived, leaving, end;
} scatter_places;

static scatter_places find_places(const tgi_tensor_work *work)
{
    const tg_matrix *d = &work->problem.d;
    scatter_places places = {.line_bytes = d->col_count * tg_get_type_bytes(d->type),
                             .arrived = work->start};
    const int64_t bytes = work->rows[work->rank_count] * places.line_bytes;
    places.leaving = places.arrived + (bytes + PLACE_BYTES - 1) / PLACE_BYTES * PLACE_BYTES;
    places.end = places.leaving + bytes;
    return places;
}

/* Makes row `row` of the buffer's rows at `place` the first of a matrix. */
static void aim(const tgi_tensor_work *work, const scatter_places *places, int64_t place,
                int64_t row, tg_matrix *matrix)
{
    matrix->data = tgi_tensor_find_buffer(work, place + row * places->line_bytes);
    matrix->row_stride = matrix->col_count;
    matrix->col_stride = 1;
}

/* Forms a chunk of the rows of rank `of`, to which step 1 and later ones add what the ranks before
 * have formed. The last step is that of this rank's own rows; others go to the next rank. */
static tg_status run_chunk(tgi_tensor_work *work, const scatter_places *places, int step, int chunk)
{
    const int count = work->rank_count, me = work->grid->rank, next = (me + 1) % count;
    const int of = (me + 2 * count - 1 - step) % count;
    const int64_t row = find_chunk(work->shapes[of].rows, chunk);
    const int64_t row_count = find_chunk(work->shapes[of].rows, chunk + 1) - row;
    const int64_t first = work->rows[of] + row, bytes = row_count * places->line_bytes;
    tg_problem part = tgi_tensor_take_rows(
        &work->problem, tgi_tensor_find_row(&work->problem.a, first), row, row_count);
    if (of != me)
        aim(work, places, places->leaving, first, &part.d);
    part.c = part.d;
    if (step > 0) {
        tgi_dist_await(work->grid->wire, (me + count - 1) % count, work->stream);
        aim(work, places, places->arrived, first, &part.c);
        part.beta = 1;
        work->counts.bytes_received += bytes;
    }
    const tg_status status =
        work->grid->wire->status ? TG_STATUS_OK : tgi_tensor_multiply(work, &part);
    if (of == me)
        return status;
    const tgi_dist_piece piece = {.from = part.d.data,
                                  .from_pitch = places->line_bytes,
                                  .to = places->arrived + first * places->line_bytes,
                                  .to_pitch = places->line_bytes,
                                  .line_bytes = places->line_bytes,
                                  .line_count = row_count};
    tgi_dist_follow(work->grid->wire, work->stream);
    tgi_dist_put(work->grid->wire, next, &piece);
    tgi_dist_post(work->grid->wire, next);
    work->counts.bytes_sent += bytes;
    return status;
}

/* Plans all products of the call. */
static tg_status plan_chunks(const tgi_tensor_work *work)
{
    tg_status status = TG_STATUS_OK;
    double seconds = 0;
    for (int i = 0; i < work->rank_count; i++)
        for (int chunk = 0; chunk < CHUNK_COUNT && !status; chunk++)
            status = tgi_tensor_predict(work,
                                        find_chunk(work->shapes[i].rows, chunk + 1) -
                                            find_chunk(work->shapes[i].rows, chunk),
                                        &seconds);
    return status;
}

static tg_status run_scatter(tgi_tensor_work *work)
{
    const int64_t all = work->rows[work->rank_count];
    const scatter_places places = find_places(work);
    tg_status status = TG_STATUS_OK;
    if (work->problem.a.row_count != all)
        status = tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                               "op(a) has %lld rows, and the d of all ranks %lld; pass as many",
                               (long long)work->problem.a.row_count, (long long)all);
    if (!status)
        status = plan_chunks(work);
    status = tgi_dist_agree(work->grid, status);
    if (!status)
        status = tgi_dist_enter_wire(work->grid, &work->device, places.end, work->stream);
    if (status)
        return status;
    for (int step = 0; step < work->rank_count; step++)
        for (int chunk = 0; chunk < CHUNK_COUNT && !status; chunk++)
            status = run_chunk(work, &places, step, chunk);
    return tgi_dist_leave_wire(work->grid, status, work->stream, 0);
}

tg_status tg_dist_multiply_reduce_scatter(const tg_dist_grid *grid, tg_context *context,
                                          const tg_problem *problem, void *stream,
                                          tg_dist_counts *counts)
{
    if (!grid)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "grid is NULL; pass one");
    tgi_tensor_work work = tgi_tensor_begin(grid, context, stream);
    tgi_tensor_shape mine = {.rows = 0};
    tg_status status = tgi_tensor_read(&work, problem, counts);
    if (!status)
        status = check_scatter(&work.problem, &mine);
    status = tgi_tensor_exchange(&work, status, &mine);
    if (!status)
        status = run_scatter(&work);
    return tgi_tensor_finish(&work, status, counts);
}
