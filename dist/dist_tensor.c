#include "dist_tensor.h"

#include "core/overlap.h"

static tg_matrix find_op_a(const tg_problem *problem)
{
    tg_matrix a = problem->a;
    if (problem->op_a == TG_OPERATION_TRANSPOSE) {
        a.row_count = problem->a.col_count;
        a.col_count = problem->a.row_count;
        a.row_stride = problem->a.col_stride;
        a.col_stride = problem->a.row_stride;
    }
    return a;
}

/* Copies the problem with op(A) as A, and finds the device. Checks what both kinds of product
 * need. */
static tg_status read_problem(tgi_tensor_work *work, const tg_problem *problem,
                              const tg_dist_counts *counts)
{
    tg_device_info *device = &work->device;
    tg_status status =
        tgi_dist_take_detail(tg_get_device_info(work->context, device, sizeof *device));
    if (!status && device->compute_capability == 0)
        status =
            tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                          "device of the context is %s; pass a context of a GPU", device->device);
    if (!status)
        status = tgi_dist_check_wire(work->grid, device);
    if (!status)
        status = tgi_dist_check_struct(problem, sizeof *problem, "problem");
    if (!status && counts)
        status = tgi_dist_check_struct(counts, sizeof *counts, "counts");
    if (status)
        return status;
    work->problem = *problem;
    work->problem.a = find_op_a(problem);
    work->problem.op_a = TG_OPERATION_NONE;
    if (problem->op_a != TG_OPERATION_NONE && problem->op_a != TG_OPERATION_TRANSPOSE)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "op_a is %d; pass TG_OPERATION_NONE or TG_OPERATION_TRANSPOSE",
                             (int)problem->op_a);
    if (problem->batch_count != 1)
        return tgi_dist_fail(TG_STATUS_UNSUPPORTED, "batch_count is %lld; pass 1",
                             (long long)problem->batch_count);
    return TG_STATUS_OK;
}

/* Returns INVALID_ARGUMENT if a matrix that has elements has no data. */
static tg_status check_data(const tg_matrix *matrix, const char *name)
{
    if (matrix->data || matrix->row_count <= 0 || matrix->col_count <= 0)
        return TG_STATUS_OK;
    return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                         "%s is NULL; pass this rank's %lld x %lld elements", name,
                         (long long)matrix->row_count, (long long)matrix->col_count);
}

/* Returns INVALID_ARGUMENT if a vector or a matrix that will be read has no data. */
static tg_status check_pointers(const tg_problem *problem)
{
    const int is_read = problem->alpha != 0 && problem->a.col_count > 0;
    const struct {
        const char *name;
        int is_used;
        const void *data;
    } vectors[] = {{"bias_data", problem->bias != TG_BIAS_NONE, problem->bias_data},
                   {"a_scale_data", problem->a_scale != TG_SCALE_NONE, problem->a_scale_data},
                   {"b_scale_data", problem->b_scale != TG_SCALE_NONE, problem->b_scale_data},
                   {"d_scale_data", problem->d_scale != TG_SCALE_NONE, problem->d_scale_data}};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        if (vectors[i].is_used && !vectors[i].data)
            return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "%s is NULL; pass this rank's values",
                                 vectors[i].name);
    tg_status status = check_data(&problem->d, "d");
    if (!status && is_read)
        status = check_data(&problem->a, "a");
    if (!status && is_read)
        status = check_data(&problem->b, "b");
    if (!status && problem->beta != 0)
        status = check_data(&problem->c, "c");
    return status;
}

static tgi_span find_span(const tg_matrix *matrix)
{
    const int64_t counts[] = {matrix->row_count, matrix->col_count};
    const int64_t strides[] = {matrix->row_stride, matrix->col_stride};
    return tgi_overlap_measure(2, counts, strides, tg_get_type_bytes(matrix->type));
}

/* Returns OVERLAP if D shares memory with A or B: portions of D are written before all of them is
 * read. */
static tg_status check_overlap(const tg_problem *problem)
{
    const tg_matrix *d = &problem->d, *inputs[] = {&problem->a, &problem->b};
    if (d->row_count == 0 || d->col_count == 0 || problem->alpha == 0)
        return TG_STATUS_OK;
    const tgi_span span = find_span(d);
    for (int i = 0; i < 2; i++) {
        if (inputs[i]->row_count == 0 || inputs[i]->col_count == 0)
            continue;
        const tgi_span other = find_span(inputs[i]);
        if (tgi_overlap_may_share(d->data, &span, inputs[i]->data, &other))
            return tgi_dist_fail(TG_STATUS_OVERLAP, "d shares memory with %c; pass another d",
                                 "ab"[i]);
    }
    return TG_STATUS_OK;
}

_Static_assert(sizeof(tgi_tensor_shape) == TGI_DIST_RANK_VALUES * sizeof(int64_t),
               "a grid has room for the shapes of its ranks");

/* Returns INVALID_ARGUMENT if the shapes of the ranks do not fit, which all ranks see. */
static tg_status check_shapes(const tgi_tensor_work *work, const tgi_tensor_kind *kind)
{
    for (int i = 0; i < work->rank_count; i++) {
        const tgi_tensor_shape *first = &work->shapes[0], *other = &work->shapes[i];
        const char *differing = other->width != first->width ? "the width of what is sent"
                                : other->type != first->type ? "the type of what is sent"
                                                             : NULL;
        if (differing)
            return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                                 "%s is not the same on ranks 0 and %d; pass one value on all",
                                 differing, i);
        if (other->whole_rows != work->row_count)
            return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                                 "%s has %lld rows on rank %d, and the %s of all ranks %lld; pass "
                                 "as many",
                                 kind->whole, (long long)other->whole_rows, i, kind->dealt,
                                 (long long)work->row_count);
    }
    return TG_STATUS_OK;
}

/* Exchanges the shapes. Collective: returns OK on all ranks or on none. */
static tg_status exchange_shapes(tgi_tensor_work *work, tgi_tensor_shape mine,
                                 const tgi_tensor_kind *kind)
{
    int is_along = 1, is_across = 1;
    tg_status status = tgi_dist_check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, work->shapes,
                                                        sizeof mine, MPI_BYTE, work->grid->comm));
    for (int i = 0; i < work->rank_count && !status; i++)
        if (work->shapes[i].status)
            return tgi_dist_agree(work->grid, (tg_status)mine.status);
    for (int i = 0; i < work->rank_count && !status; i++) {
        tgi_tensor_shape *shape = &work->shapes[i];
        shape->first = work->row_count;
        work->row_count += shape->rows;
        is_along &= shape->is_along != 0;
        is_across &= shape->is_across != 0;
    }
    work->is_along = is_along;
    if (!status)
        status = check_shapes(work, kind);
    if (!status && !is_along && !is_across)
        status = tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                               "op(a) has contiguous rows on some ranks and contiguous columns on "
                               "others; pass one or the other on all");
    return status;
}

/* Returns the rows of the problem from `row` on. The rows of A are `data`, in memory like A's. */
tg_problem tgi_tensor_take_rows(const tg_problem *whole, const void *a, int64_t row,
                                int64_t row_count)
{
    tg_problem portion = *whole;
    const int64_t bytes = tg_get_type_bytes(whole->d.type);
    portion.a.data = (void *)(uintptr_t)a;
    portion.a.row_count = portion.c.row_count = portion.d.row_count = row_count;
    if (portion.d.data)
        portion.d.data = (char *)portion.d.data + row * portion.d.row_stride * bytes;
    if (portion.c.data)
        portion.c.data = (char *)portion.c.data + row * portion.c.row_stride * bytes;
    if (portion.bias == TG_BIAS_ROW && portion.bias_data)
        portion.bias_data = (const char *)portion.bias_data + row * bytes;
    if (portion.a_scale == TG_SCALE_VECTOR && portion.a_scale_data)
        portion.a_scale_data += row;
    return portion;
}

const void *tgi_tensor_find_row(const tg_matrix *matrix, int64_t row)
{
    return (const char *)matrix->data + row * matrix->row_stride * tg_get_type_bytes(matrix->type);
}

tg_status tgi_tensor_predict(const tgi_tensor_work *work, int64_t row_count, double *seconds)
{
    const tg_problem portion =
        tgi_tensor_take_rows(&work->problem, work->problem.a.data, 0, row_count);
    return tgi_dist_predict(work->grid, work->context, &portion, seconds);
}

tg_status tgi_tensor_multiply(const tgi_tensor_work *work, const tg_problem *problem)
{
    if (problem->d.row_count == 0)
        return TG_STATUS_OK;
    return tgi_dist_take_detail(tg_multiply_on_stream(work->context, problem, work->stream));
}

char *tgi_tensor_find_buffer(const tgi_tensor_work *work, int64_t place)
{
    return (char *)(uintptr_t)(work->grid->wire->buffers[work->grid->rank] + (uint64_t)place);
}

tg_status tgi_tensor_call(const tg_dist_grid *grid, tg_context *context, const tg_problem *problem,
                          void *stream, tg_dist_counts *counts, const tgi_tensor_kind *kind)
{
    if (!grid)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "grid is NULL; pass one");
    tgi_tensor_work work = {.grid = grid,
                            .context = context,
                            .stream = stream,
                            .shapes = (tgi_tensor_shape *)grid->values,
                            .rank_count = grid->row_count * grid->col_count,
                            .start = tgi_dist_find_buffer_start(grid)};
    tgi_tensor_shape mine = {.rows = 0};
    tg_status status = read_problem(&work, problem, counts);
    if (!status)
        status = kind->check(&work, &mine);
    if (!status)
        status = check_pointers(&work.problem);
    if (!status)
        status = check_overlap(&work.problem);
    mine.status = status;
    status = exchange_shapes(&work, mine, kind);
    if (!status)
        status = kind->run(&work);
    if (!status && counts) {
        counts->bytes_sent = work.counts.bytes_sent;
        counts->bytes_received = work.counts.bytes_received;
    }
    return status;
}
