/* Products whose A is gathered by rows. The product of a rank's own rows hides the arrival of the
 * others', unless one product of all rows is faster. */
#include "dist_tensor.h"

static tg_status check_gather(const tgi_tensor_work *work, tgi_tensor_shape *mine)
{
    const tg_problem *problem = &work->problem;
    const tg_matrix *a = &problem->a;
    mine->rows = a->row_count;
    mine->width = a->col_count;
    mine->type = a->type;
    mine->whole_rows = work->problem.d.row_count;
    mine->is_along = (a->col_stride == 1 || a->col_count <= 1) &&
                     (a->row_stride >= a->col_count || a->row_count <= 1);
    mine->is_across = (a->row_stride == 1 || a->row_count <= 1) &&
                      (a->col_stride >= a->row_count || a->col_count <= 1);
    if (a->row_count < 0 || a->col_count < 0)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "a is %lld x %lld; pass sizes >= 0",
                             (long long)a->row_count, (long long)a->col_count);
    if (!mine->is_along && !mine->is_across)
        return tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                             "op(a) has strides %lld and %lld; pass one whose rows or columns are "
                             "contiguous and do not overlap",
                             (long long)a->row_stride, (long long)a->col_stride);
    /* A plan of the whole product finds what else is wrong. */
    double seconds = 0;
    return tgi_tensor_predict(work, mine->whole_rows, &seconds);
}

static int64_t find_larger(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* Describes my rows on their way to a buffer. */
static tgi_dist_piece describe_rows(const tgi_tensor_work *work, int64_t pitch)
{
    const tg_matrix *a = &work->problem.a;
    const int64_t bytes = tg_get_type_bytes(a->type), row = work->shapes[work->grid->rank].first;
    const int is_along = work->is_along;
    const int64_t line_bytes = (is_along ? a->col_count : a->row_count) * bytes;
    return (tgi_dist_piece){
        .from = a->data,
        .from_pitch = find_larger((is_along ? a->row_stride : a->col_stride) * bytes, line_bytes),
        .to = work->start + row * (is_along ? pitch : bytes),
        .to_pitch = pitch,
        .line_bytes = line_bytes,
        .line_count = is_along ? a->row_count : a->col_count};
}

/* Puts my rows on their way to the other ranks, the next one first, and into my own buffer if
 * is_whole. */
static void send_rows(tgi_tensor_work *work, int64_t pitch, int is_whole)
{
    const tg_matrix *a = &work->problem.a;
    const tgi_dist_piece piece = describe_rows(work, pitch);
    for (int i = 1; i < work->rank_count; i++) {
        const int rank = (work->grid->rank + i) % work->rank_count;
        tgi_dist_put(work->grid->wire, rank, &piece);
        tgi_dist_post(work->grid->wire, rank);
        work->counts.bytes_sent += a->row_count * a->col_count * tg_get_type_bytes(a->type);
    }
    if (is_whole)
        tgi_dist_copy(work->grid->wire, tgi_tensor_find_buffer(work, 0), &piece, work->stream);
}

/* Sets *is_whole to 1 if one product of all rows, when they are here, is faster than one of each
 * rank's rows, of which my own need not wait. */
static tg_status choose_gather(const tgi_tensor_work *work, int *is_whole)
{
    const int64_t mine = work->problem.a.row_count;
    double whole_s = 0, stripes_s = 0;
    tg_status status = tgi_tensor_predict(work, work->row_count, &whole_s);
    for (int i = 0; i < work->rank_count && !status; i++)
        status = tgi_tensor_predict(work, work->shapes[i].rows, &stripes_s);
    whole_s +=
        tgi_dist_predict_link(work->grid, (work->row_count - mine) * work->problem.a.col_count *
                                              tg_get_type_bytes(work->problem.a.type));
    *is_whole = whole_s <= stripes_s;
    return status;
}

static tg_status multiply_gathered(tgi_tensor_work *work, const tg_matrix *gathered, int is_whole)
{
    const tgi_dist_wire *wire = work->grid->wire;
    const tgi_tensor_shape *mine = &work->shapes[work->grid->rank];
    tg_problem whole = work->problem;
    tg_status status = TG_STATUS_OK;
    if (!is_whole) {
        const tg_problem portion =
            tgi_tensor_take_rows(&whole, whole.a.data, mine->first, mine->rows);
        status = tgi_tensor_multiply(work, &portion);
    }
    whole.a = *gathered;
    for (int i = 1; i < work->rank_count; i++) {
        const int from = (work->grid->rank + work->rank_count - i) % work->rank_count;
        const tgi_tensor_shape *other = &work->shapes[from];
        tgi_dist_await(work->grid->wire, from, work->stream);
        const tg_problem portion = tgi_tensor_take_rows(
            &whole, tgi_tensor_find_row(gathered, other->first), other->first, other->rows);
        if (!is_whole && !status && !wire->status)
            status = tgi_tensor_multiply(work, &portion);
    }
    if (is_whole && !wire->status)
        status = tgi_tensor_multiply(work, &whole);
    return status;
}

static tg_status run_gather(tgi_tensor_work *work)
{
    const int64_t all = work->row_count;
    const tg_matrix *a = &work->problem.a;
    const int64_t bytes = tg_get_type_bytes(a->type);
    const int is_along = work->is_along;
    const int64_t line_bytes = (is_along ? a->col_count : all) * bytes;
    const int64_t pitch = tgi_dist_round_up(line_bytes);
    const int64_t gathered_bytes = pitch * (is_along ? all : a->col_count);
    const tgi_dist_halves halves = {work->start, work->start + gathered_bytes,
                                    work->start + 2 * gathered_bytes};
    int is_whole = 0;
    tg_status status = choose_gather(work, &is_whole);
    const tg_status entered =
        tgi_dist_enter_wire(work->grid, &work->device, halves.end, &halves, work->stream);
    if (entered)
        return entered;
    work->start = tgi_dist_find_half(work->grid->wire, work->start);
    tg_matrix gathered = *a;
    gathered.data = tgi_tensor_find_buffer(work, work->start);
    gathered.row_count = all;
    gathered.row_stride = is_along ? pitch / bytes : 1;
    gathered.col_stride = is_along ? 1 : pitch / bytes;
    if (!status) {
        tgi_dist_follow(work->grid->wire, work->stream);
        send_rows(work, pitch, is_whole);
        status = multiply_gathered(work, &gathered, is_whole);
    }
    work->counts.bytes_received = (all - a->row_count) * a->col_count * bytes;
    return tgi_dist_leave_wire(work->grid, status, work->stream, 0);
}

tg_status tg_dist_all_gather_multiply(const tg_dist_grid *grid, tg_context *context,
                                      const tg_problem *problem, void *stream,
                                      tg_dist_counts *counts)
{
    static const tgi_tensor_kind kind = {"a", "d", check_gather, run_gather};
    return tgi_tensor_call(grid, context, problem, stream, counts, &kind);
}
