/* Products whose sum over the ranks is scattered by rows. The rows of a rank go round: each rank
 * adds its product to what the rank before has sent, and the rank that keeps them is the last. */
#include "dist_tensor.h"

/* Checks what the sum over the ranks allows, and that D's lines can be sent. */
static tg_status check_d(const tg_problem *problem, tgi_tensor_shape *mine)
{
    const tg_matrix *d = &problem->d;
    mine->rows = d->row_count;
    mine->width = d->col_count;
    mine->type = d->type;
    mine->whole_rows = problem->a.row_count;
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
enum { CHUNK_ROWS = 1024, CHUNK_COUNT = 2 };

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
    int64_t most = 0;
    for (int i = 0; i < work->rank_count; i++)
        if (work->shapes[i].rows > most)
            most = work->shapes[i].rows;
    const int64_t bytes = most * work->rank_count * places.line_bytes;
    places.leaving = places.arrived + tgi_dist_round_up(bytes);
    places.end = places.leaving + work->row_count * places.line_bytes;
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

/* Forms a chunk of the rows of rank `of`, to which hop 1 and later ones add what the ranks before
 * have formed. The last hop is that of this rank's own rows; others go to the next rank. */
static tg_status run_chunk(tgi_tensor_work *work, const scatter_places *places, int hop, int chunk)
{
    const int count = work->rank_count, me = work->grid->rank, next = (me + 1) % count;
    const int of = (me + 2 * count - 1 - hop) % count;
    const int64_t row = find_chunk(work->shapes[of].rows, chunk);
    const int64_t row_count = find_chunk(work->shapes[of].rows, chunk + 1) - row;
    const int64_t first = work->shapes[of].first + row, bytes = row_count * places->line_bytes;
    tg_problem portion = tgi_tensor_take_rows(
        &work->problem, tgi_tensor_find_row(&work->problem.a, first), row, row_count);
    if (of != me)
        aim(work, places, places->leaving, first, &portion.d);
    portion.c = portion.d;
    if (hop > 0) {
        tgi_dist_await(work->grid->wire, (me + count - 1) % count, work->stream);
        aim(work, places, places->arrived, first, &portion.c);
        portion.beta = 1;
        work->counts.bytes_received += bytes;
    }
    const tg_status status =
        work->grid->wire->status ? TG_STATUS_OK : tgi_tensor_multiply(work, &portion);
    if (of == me)
        return status;
    const tgi_dist_piece piece = {.from = portion.d.data,
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

/* Adds the predicted seconds of the products of one round. */
static tg_status predict_chunks(const tgi_tensor_work *work, int64_t row_count, double *seconds)
{
    tg_status status = TG_STATUS_OK;
    for (int chunk = 0; chunk < CHUNK_COUNT && !status; chunk++)
        status = tgi_tensor_predict(
            work, find_chunk(row_count, chunk + 1) - find_chunk(row_count, chunk), seconds);
    return status;
}

/* Sets *is_whole to 1 if one product of all rows, whose partial sums are added when they have come,
 * is faster than one product of each rank's rows, which adds them itself. The ranks are taken to
 * be alike. */
static tg_status choose_scatter(const tgi_tensor_work *work, int64_t *is_whole)
{
    const tgi_dist_figures *f = &tgi_dist_link_figures;
    const int sum_count = work->rank_count - 1;
    const int64_t all = work->problem.a.row_count, rows = all / work->rank_count;
    const int64_t bytes =
        rows * work->problem.d.col_count * tg_get_type_bytes(work->problem.d.type);
    const int64_t chunk_bytes = rows < CHUNK_ROWS ? bytes : bytes / CHUNK_COUNT;
    double whole_s = 0, chunks_s = 0;
    tg_status status = tgi_tensor_predict(work, all, &whole_s);
    if (!status)
        status = predict_chunks(work, rows, &chunks_s);
    whole_s += tgi_dist_predict_link(work->grid, bytes * sum_count) +
               sum_count * 3 * (double)bytes / f->sum_bytes_per_s;
    chunks_s = chunks_s * work->rank_count + tgi_dist_predict_link(work->grid, chunk_bytes);
    *is_whole = whole_s < chunks_s + (chunk_bytes == bytes ? f->alone_message_s : 0);
    return status;
}

/* Plans the products of rows that go round. */
static tg_status plan_chunks(const tgi_tensor_work *work)
{
    tg_status status = TG_STATUS_OK;
    double seconds = 0;
    for (int i = 0; i < work->rank_count && !status; i++)
        status = predict_chunks(work, work->shapes[i].rows, &seconds);
    return status;
}

/* Adds two runs of numbers of D's type: they are C and the bias of a product without any k. */
static tg_status add(const tgi_tensor_work *work, const void *x, const void *y, void *sum)
{
    const tg_problem *of = &work->problem;
    const int64_t count = work->shapes[work->grid->rank].rows * of->d.col_count;
    tg_problem problem = tg_make_problem(tg_make_matrix(of->a.type, NULL, 1, 0),
                                         tg_make_matrix(of->b.type, NULL, 0, count),
                                         tg_make_matrix(of->d.type, sum, 1, count));
    problem.c.data = (void *)(uintptr_t)x;
    problem.beta = 1;
    problem.bias = TG_BIAS_COL;
    problem.bias_data = y;
    if (count == 0)
        return TG_STATUS_OK;
    return tgi_dist_take_detail(tg_multiply_on_stream(work->context, &problem, work->stream));
}

/* Returns where this rank reads its rows of what another rank has formed. They are sent to this
 * rank's buffer, or read where they are if is_reached. */
static char *find_formed(const tgi_tensor_work *work, const scatter_places *places, int from,
                         int is_reached)
{
    const tgi_tensor_shape *mine = &work->shapes[work->grid->rank];
    if (is_reached)
        return tgi_dist_reach(work->grid->wire, from) + places->leaving +
               mine->first * places->line_bytes;
    return tgi_tensor_find_buffer(work, places->arrived + from * mine->rows * places->line_bytes);
}

/* Sends a rank its rows of the product. */
static void send_rows(tgi_tensor_work *work, const scatter_places *places, int to)
{
    const tgi_tensor_shape *other = &work->shapes[to];
    const tgi_dist_piece piece = {
        .from = tgi_tensor_find_buffer(work, places->leaving + other->first * places->line_bytes),
        .from_pitch = places->line_bytes,
        .to = places->arrived + work->grid->rank * other->rows * places->line_bytes,
        .to_pitch = places->line_bytes,
        .line_bytes = places->line_bytes,
        .line_count = other->rows};
    tgi_dist_put(work->grid->wire, to, &piece);
    tgi_dist_post(work->grid->wire, to);
}

/* Multiplies all rows at once, and hands the other ranks theirs. */
static tg_status form_whole(tgi_tensor_work *work, const scatter_places *places, int is_reached)
{
    tgi_dist_wire *wire = work->grid->wire;
    tg_problem whole = work->problem;
    aim(work, places, places->leaving, 0, &whole.d);
    whole.d.row_count = work->row_count;
    whole.c = whole.d;
    tg_status status = TG_STATUS_OK;
    if (work->row_count)
        status = tgi_dist_take_detail(tg_multiply_on_stream(work->context, &whole, work->stream));
    if (!is_reached)
        tgi_dist_follow(wire, work->stream);
    for (int i = 1; i < work->rank_count && !status; i++) {
        const int to = (work->grid->rank + i) % work->rank_count;
        if (is_reached)
            tgi_dist_show(wire, to, work->stream);
        else
            send_rows(work, places, to);
        work->counts.bytes_sent += work->shapes[to].rows * places->line_bytes;
    }
    return status;
}

/* Adds what the other ranks have formed, in their order from the next one on, and this rank's own
 * rows last. */
static tg_status add_formed(tgi_tensor_work *work, const scatter_places *places, int is_reached)
{
    const tgi_tensor_shape *mine = &work->shapes[work->grid->rank];
    const tg_matrix *d = &work->problem.d;
    const int next = (work->grid->rank + 1) % work->rank_count;
    char *own = tgi_tensor_find_buffer(work, places->leaving + mine->first * places->line_bytes);
    char *sum = find_formed(work, places, next, 0), *first = NULL;
    tg_status status = TG_STATUS_OK;
    for (int i = 1; i < work->rank_count && !status; i++) {
        const int from = (work->grid->rank + i) % work->rank_count;
        char *formed = find_formed(work, places, from, is_reached);
        tgi_dist_await(work->grid->wire, from, work->stream);
        if (first && !work->grid->wire->status)
            status = add(work, first, formed, sum);
        first = first ? sum : formed;
        work->counts.bytes_received += mine->rows * places->line_bytes;
    }
    const int is_contiguous = d->row_stride == d->col_count;
    /* C may be D, the bias may not. */
    if (!status && !work->grid->wire->status)
        status = add(work, first, own, is_contiguous ? d->data : sum);
    if (!is_contiguous) {
        const tgi_dist_piece piece = {.from = sum,
                                      .from_pitch = places->line_bytes,
                                      .to_pitch = d->row_stride * tg_get_type_bytes(d->type),
                                      .line_bytes = places->line_bytes,
                                      .line_count = mine->rows};
        tgi_dist_copy(work->grid->wire, d->data, &piece, work->stream);
    }
    return status;
}

static tg_status run_scatter(tgi_tensor_work *work)
{
    scatter_places places = find_places(work);
    const int is_whole = work->rank_count > 1 && work->shapes[0].is_whole;
    tg_status status = is_whole ? TG_STATUS_OK : plan_chunks(work);
    /* Ranks of one host read the whole product where it is. Consecutive calls form it in turn in
     * two places, so that none waits until the last one has been read. */
    const int64_t formed_bytes = tgi_dist_round_up(places.end - places.leaving);
    const tgi_dist_halves halves = {places.leaving, places.leaving + formed_bytes,
                                    places.end + formed_bytes};
    const tg_status entered =
        tgi_dist_enter_wire(work->grid, &work->device, is_whole ? halves.end : places.end,
                            is_whole ? &halves : NULL, work->stream);
    if (entered)
        return entered;
    const int is_reached = !work->grid->wire->links;
    if (is_whole)
        places.leaving = tgi_dist_find_half(work->grid->wire, places.leaving);
    if (!status && is_whole)
        status = form_whole(work, &places, is_reached);
    if (!status && is_whole)
        status = add_formed(work, &places, is_reached);
    for (int hop = 0; hop < work->rank_count && !is_whole; hop++)
        for (int chunk = 0; chunk < CHUNK_COUNT && !status; chunk++)
            status = run_chunk(work, &places, hop, chunk);
    return tgi_dist_leave_wire(work->grid, status, work->stream, 0);
}

/* Checks the problem, and tells the others which way this rank prefers. */
static tg_status check_scatter(const tgi_tensor_work *work, tgi_tensor_shape *mine)
{
    const tg_status status = check_d(&work->problem, mine);
    return status ? status : choose_scatter(work, &mine->is_whole);
}

tg_status tg_dist_multiply_reduce_scatter(const tg_dist_grid *grid, tg_context *context,
                                          const tg_problem *problem, void *stream,
                                          tg_dist_counts *counts)
{
    static const tgi_tensor_kind kind = {"d", "op(a)", check_scatter, run_scatter};
    return tgi_tensor_call(grid, context, problem, stream, counts, &kind);
}
