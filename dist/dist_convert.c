#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dist.h"

/* The source or target of a conversion, on this rank. `rows` and `cols` are the axes along
 * which the rows and columns of the source lie there. */
typedef struct convert_end {
    tgi_dist_axis rows, cols;
    int my_row_part, my_col_part;   /* my parts of these axes */
    int64_t row_stride, col_stride; /* elements of the local matrix */
    int64_t element_count;
} convert_end;

/* The elements that go to, or come from, another rank. */
typedef struct convert_message {
    char *elements;
    int64_t row_count, col_count;
} convert_message;

typedef struct convert_work {
    convert_end source, target;
    int is_transposed;
    int64_t element_bytes;
    int64_t *row_places, *col_places; /* of the rows and columns of one message */
    convert_message *out, *in;        /* of every rank */
    MPI_Request *requests;
    char *elements; /* of all messages */
} convert_work;

static convert_end describe_end(const tg_dist_layout *layout, const tg_dist_grid *grid,
                                int is_transposed)
{
    const tgi_dist_axis rows = tgi_dist_rows(layout, grid), cols = tgi_dist_cols(layout, grid);
    const int64_t row_stride = tgi_dist_row_stride(layout, grid);
    const int64_t col_stride = tgi_dist_col_stride(layout, grid);
    convert_end end = {rows, cols, grid->my_row, grid->my_col, row_stride, col_stride, 0};
    if (is_transposed)
        end = (convert_end){cols, rows, grid->my_col, grid->my_row, col_stride, row_stride, 0};
    end.element_count = tgi_dist_count_local(&end.rows, end.my_row_part) *
                        tgi_dist_count_local(&end.cols, end.my_col_part);
    return end;
}

/* Returns the part of the axis of source rows that a rank has at an end. */
static int find_row_part(const tg_dist_grid *grid, int rank, int is_transposed)
{
    return is_transposed ? rank % grid->col_count : rank / grid->col_count;
}

static int find_col_part(const tg_dist_grid *grid, int rank, int is_transposed)
{
    return is_transposed ? rank / grid->col_count : rank % grid->col_count;
}

/* Sets the sizes of the messages. Returns the number of elements of all of them, or -1 if one is
 * longer than MPI can count. */
static int64_t measure_messages(const tg_dist_grid *grid, convert_work *work)
{
    const convert_end *source = &work->source, *target = &work->target;
    int64_t total = 0;
    for (int rank = 0; rank < grid->row_count * grid->col_count; rank++) {
        convert_message *out = &work->out[rank], *in = &work->in[rank];
        out->row_count = tgi_dist_list_shared(&source->rows, source->my_row_part, &target->rows,
                                              find_row_part(grid, rank, work->is_transposed), NULL);
        out->col_count = tgi_dist_list_shared(&source->cols, source->my_col_part, &target->cols,
                                              find_col_part(grid, rank, work->is_transposed), NULL);
        in->row_count = tgi_dist_list_shared(&target->rows, target->my_row_part, &source->rows,
                                             find_row_part(grid, rank, 0), NULL);
        in->col_count = tgi_dist_list_shared(&target->cols, target->my_col_part, &source->cols,
                                             find_col_part(grid, rank, 0), NULL);
        const int64_t sent = out->row_count * out->col_count;
        const int64_t received = in->row_count * in->col_count;
        if (sent > INT_MAX || received > INT_MAX)
            return -1;
        total += sent + (rank == grid->rank ? 0 : received);
    }
    return total;
}

static int64_t larger_of(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static tg_status prepare_work(const tg_dist_grid *grid, convert_work *work)
{
    const size_t rank_count = (size_t)grid->row_count * (size_t)grid->col_count;
    const convert_end *source = &work->source, *target = &work->target;
    const int64_t rows = larger_of(tgi_dist_count_local(&source->rows, source->my_row_part),
                                   tgi_dist_count_local(&target->rows, target->my_row_part));
    const int64_t cols = larger_of(tgi_dist_count_local(&source->cols, source->my_col_part),
                                   tgi_dist_count_local(&target->cols, target->my_col_part));
    work->row_places = malloc(((size_t)rows + 1) * sizeof *work->row_places);
    work->col_places = malloc(((size_t)cols + 1) * sizeof *work->col_places);
    work->out = calloc(rank_count, sizeof *work->out);
    work->in = calloc(rank_count, sizeof *work->in);
    work->requests = malloc(2 * rank_count * sizeof(MPI_Request));
    int64_t count = 0;
    if (work->out && work->in) {
        count = measure_messages(grid, work);
        if (count < 0)
            return tgi_dist_fail(TG_STATUS_SIZE_OVERFLOW,
                                 "a message would have more than %d elements; use more ranks",
                                 INT_MAX);
    }
    work->elements = malloc((size_t)(count * work->element_bytes) + 1);
    if (!work->row_places || !work->col_places || !work->out || !work->in || !work->requests ||
        !work->elements)
        return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                             "%lld bytes for messages are not there; use more ranks",
                             (long long)(count * work->element_bytes));
    char *next = work->elements;
    for (size_t rank = 0; rank < rank_count; rank++) {
        convert_message *out = &work->out[rank], *in = &work->in[rank];
        out->elements = next;
        next += out->row_count * out->col_count * work->element_bytes;
        in->elements = (int)rank == grid->rank ? out->elements : next;
        if ((int)rank != grid->rank)
            next += in->row_count * in->col_count * work->element_bytes;
    }
    return TG_STATUS_OK;
}

static void free_work(convert_work *work)
{
    free(work->row_places);
    free(work->col_places);
    free(work->out);
    free(work->in);
    free(work->requests);
    free(work->elements);
}

/* Copies the elements of a message from the local matrix (is_out), or to it. A message holds its
 * columns one after the other. */
static void move_message(const convert_work *work, const convert_message *message,
                         const convert_end *end, char *local, int is_out)
{
    char *packed = message->elements;
    const int64_t bytes = work->element_bytes;
    for (int64_t j = 0; j < message->col_count; j++) {
        char *col = local + work->col_places[j] * end->col_stride * bytes;
        for (int64_t i = 0; i < message->row_count; i++) {
            char *element = col + work->row_places[i] * end->row_stride * bytes;
            if (is_out)
                memcpy(packed, element, (size_t)bytes);
            else
                memcpy(element, packed, (size_t)bytes);
            packed += bytes;
        }
    }
}

/* If is_out, moves the elements that go to `rank` from the local matrix into its message; else
 * moves those that came from it into the local matrix. */
static void move_shared(const tg_dist_grid *grid, const convert_work *work, int rank, char *local,
                        int is_out)
{
    const convert_end *mine = is_out ? &work->source : &work->target;
    const convert_end *other = is_out ? &work->target : &work->source;
    const int is_transposed = is_out && work->is_transposed;
    tgi_dist_list_shared(&mine->rows, mine->my_row_part, &other->rows,
                         find_row_part(grid, rank, is_transposed), work->row_places);
    tgi_dist_list_shared(&mine->cols, mine->my_col_part, &other->cols,
                         find_col_part(grid, rank, is_transposed), work->col_places);
    move_message(work, is_out ? &work->out[rank] : &work->in[rank], mine, local, is_out);
}

static tg_status exchange(const tg_dist_grid *grid, convert_work *work, MPI_Datatype element,
                          const char *source, char *target, tg_dist_counts *counts)
{
    const int rank_count = grid->row_count * grid->col_count;
    int request_count = 0, error = MPI_SUCCESS;
    for (int rank = 0; rank < rank_count && error == MPI_SUCCESS; rank++) {
        const int64_t count = work->in[rank].row_count * work->in[rank].col_count;
        if (rank == grid->rank || count == 0)
            continue;
        error = MPI_Irecv(work->in[rank].elements, (int)count, element, rank, 0, grid->comm,
                          &work->requests[request_count++]);
        counts->bytes_received += count * work->element_bytes;
    }
    for (int rank = 0; rank < rank_count && error == MPI_SUCCESS; rank++) {
        const int64_t count = work->out[rank].row_count * work->out[rank].col_count;
        if (count == 0)
            continue;
        move_shared(grid, work, rank, (char *)source, 1);
        if (rank == grid->rank)
            continue;
        error = MPI_Isend(work->out[rank].elements, (int)count, element, rank, 0, grid->comm,
                          &work->requests[request_count++]);
        counts->bytes_sent += count * work->element_bytes;
    }
    if (error == MPI_SUCCESS)
        error = MPI_Waitall(request_count, work->requests, MPI_STATUSES_IGNORE);
    if (error != MPI_SUCCESS)
        return tgi_dist_check_mpi(error);
    for (int rank = 0; rank < rank_count; rank++)
        if (work->in[rank].row_count && work->in[rank].col_count)
            move_shared(grid, work, rank, target, 0);
    return TG_STATUS_OK;
}

tg_status tgi_dist_convert(const tg_dist_grid *grid, tg_operation op,
                           const tg_dist_layout *source_layout, const void *source,
                           const tg_dist_layout *target_layout, void *target,
                           tg_dist_counts *counts)
{
    convert_work work = {.is_transposed = op == TG_OPERATION_TRANSPOSE,
                         .element_bytes = tg_get_type_bytes(source_layout->type)};
    work.source = describe_end(source_layout, grid, 0);
    work.target = describe_end(target_layout, grid, work.is_transposed);
    tg_status status = tgi_dist_agree(grid, prepare_work(grid, &work));
    MPI_Datatype element = MPI_DATATYPE_NULL;
    if (!status)
        status =
            tgi_dist_check_mpi(MPI_Type_contiguous((int)work.element_bytes, MPI_BYTE, &element));
    if (!status)
        status = tgi_dist_check_mpi(MPI_Type_commit(&element));
    if (!status)
        status = exchange(grid, &work, element, source, target, counts);
    if (element != MPI_DATATYPE_NULL)
        MPI_Type_free(&element);
    free_work(&work);
    return status;
}

static tg_status check_conversion(const tg_dist_grid *grid, tg_operation op,
                                  const tg_dist_layout *from, const void *source,
                                  const tg_dist_layout *to, const void *target,
                                  const tg_dist_counts *counts)
{
    tg_status status = tgi_dist_check_layout(from, "source_layout", grid);
    if (!status)
        status = tgi_dist_check_layout(to, "target_layout", grid);
    if (!status && counts)
        status = tgi_dist_check_struct(counts, sizeof *counts, "counts");
    if (status)
        return status;
    if (op != TG_OPERATION_NONE && op != TG_OPERATION_TRANSPOSE)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "op is %d; pass a tg_operation", (int)op);
    const int is_transposed = op == TG_OPERATION_TRANSPOSE;
    if (to->row_count != (is_transposed ? from->col_count : from->row_count) ||
        to->col_count != (is_transposed ? from->row_count : from->col_count))
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "target_layout is of %lld x %lld, source_layout of %lld x %lld%s; "
                             "give both the same matrix",
                             (long long)to->row_count, (long long)to->col_count,
                             (long long)from->row_count, (long long)from->col_count,
                             is_transposed ? ", transposed" : "");
    if (to->type != from->type)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "type of target_layout is %s, that of source_layout %s; pass one type",
                             tg_get_type_name(to->type), tg_get_type_name(from->type));
    if ((!source && describe_end(from, grid, 0).element_count) ||
        (!target && describe_end(to, grid, 0).element_count))
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "%s is NULL; pass the local matrix",
                             source ? "target" : "source");
    return TG_STATUS_OK;
}

tg_status tg_dist_redistribute(const tg_dist_grid *grid, tg_operation op,
                               const tg_dist_layout *source_layout, const void *source,
                               const tg_dist_layout *target_layout, void *target,
                               tg_dist_counts *counts)
{
    if (!grid)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "grid is NULL; pass one");
    tg_status status = tgi_dist_agree(
        grid, check_conversion(grid, op, source_layout, source, target_layout, target, counts));
    if (status)
        return status;
    tgi_dist_value values[2 * TGI_DIST_LAYOUT_VALUES + 1];
    tgi_dist_list_values(source_layout, values);
    tgi_dist_list_values(target_layout, values + TGI_DIST_LAYOUT_VALUES);
    values[2 * TGI_DIST_LAYOUT_VALUES] = (tgi_dist_value){"op", op};
    status = tgi_dist_agree_values(grid, values, 2 * TGI_DIST_LAYOUT_VALUES + 1);
    tg_dist_counts made = {.struct_bytes = sizeof made};
    if (!status)
        status = tgi_dist_convert(grid, op, source_layout, source, target_layout, target, &made);
    if (!status && counts) {
        counts->bytes_sent = made.bytes_sent;
        counts->bytes_received = made.bytes_received;
    }
    return status;
}
