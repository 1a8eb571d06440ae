#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dist.h"

/* The elements that go to, or come from, another rank. */
typedef struct convert_message {
    char *elements;
    int64_t row_count, col_count;
} convert_message;

typedef struct convert_work {
    tgi_dist_side source, target; /* rows and columns are those of the source */
    int rank, rank_count;
    tg_type type;
    int is_sum;
    int64_t element_bytes;
    int64_t *row_places, *col_places; /* of the rows and columns of one message */
    convert_message *out, *in;        /* of every rank */
    MPI_Request *requests;
    char *elements; /* of all messages */
} convert_work;

tgi_dist_side tgi_dist_describe_side(const tg_dist_layout *layout, const tg_dist_grid *grid,
                                     int is_transposed)
{
    const int rank_count = grid->row_count * grid->col_count;
    const tgi_dist_side side = {.rows = tgi_dist_rows(layout, grid),
                                .cols = tgi_dist_cols(layout, grid),
                                .row_place = {grid->col_count, grid->row_count, rank_count, 0},
                                .col_place = {1, grid->col_count, rank_count, 0},
                                .row_stride = tgi_dist_row_stride(layout, grid),
                                .col_stride = tgi_dist_col_stride(layout, grid)};
    return is_transposed ? (tgi_dist_side){side.cols,      side.rows,       side.col_place,
                                           side.row_place, side.col_stride, side.row_stride}
                         : side;
}

static int find_portion(const tgi_dist_place *place, int rank)
{
    return rank / place->divisor % place->modulus + rank / place->outer * place->inner;
}

int64_t tgi_dist_count_side(const tgi_dist_side *side, int rank)
{
    return tgi_dist_count_local(&side->rows, find_portion(&side->row_place, rank)) *
           tgi_dist_count_local(&side->cols, find_portion(&side->col_place, rank));
}

/* List the rows (columns) that a rank has on one side and another rank on the other one. */
static int64_t list_rows(const tgi_dist_side *mine, int rank, const tgi_dist_side *other,
                         int other_rank, int64_t *places)
{
    return tgi_dist_list_shared(&mine->rows, find_portion(&mine->row_place, rank), &other->rows,
                                find_portion(&other->row_place, other_rank), places);
}

static int64_t list_cols(const tgi_dist_side *mine, int rank, const tgi_dist_side *other,
                         int other_rank, int64_t *places)
{
    return tgi_dist_list_shared(&mine->cols, find_portion(&mine->col_place, rank), &other->cols,
                                find_portion(&other->col_place, other_rank), places);
}

void tgi_dist_count_move(const tgi_dist_side *from, const tgi_dist_side *to, int64_t element_bytes,
                         int copies, int rank, tg_dist_counts *counts)
{
    const int64_t kept =
        list_rows(from, rank, to, rank, NULL) * list_cols(from, rank, to, rank, NULL);
    counts->bytes_sent += (tgi_dist_count_side(from, rank) - kept) * element_bytes;
    counts->bytes_received += (copies * tgi_dist_count_side(to, rank) - kept) * element_bytes;
}

static int64_t larger_of(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* Sets the sizes of the messages. Returns the number of elements of all of them, or -1 if one has
 * more rows or columns than MPI can count. */
static int64_t measure_messages(convert_work *work)
{
    const tgi_dist_side *source = &work->source, *target = &work->target;
    int64_t total = 0;
    for (int rank = 0; rank < work->rank_count; rank++) {
        convert_message *out = &work->out[rank], *in = &work->in[rank];
        out->row_count = list_rows(source, work->rank, target, rank, NULL);
        out->col_count = list_cols(source, work->rank, target, rank, NULL);
        in->row_count = list_rows(target, work->rank, source, rank, NULL);
        in->col_count = list_cols(target, work->rank, source, rank, NULL);
        const int64_t sent = out->row_count * out->col_count;
        const int64_t received = in->row_count * in->col_count;
        if (larger_of(larger_of(out->row_count, out->col_count),
                      larger_of(in->row_count, in->col_count)) > INT_MAX)
            return -1;
        total += sent + (rank == work->rank ? 0 : received);
    }
    return total;
}

static tg_status prepare_work(convert_work *work)
{
    const size_t rank_count = (size_t)work->rank_count;
    const tgi_dist_side *source = &work->source, *target = &work->target;
    const int64_t rows = larger_of(
        tgi_dist_count_local(&source->rows, find_portion(&source->row_place, work->rank)),
        tgi_dist_count_local(&target->rows, find_portion(&target->row_place, work->rank)));
    const int64_t cols = larger_of(
        tgi_dist_count_local(&source->cols, find_portion(&source->col_place, work->rank)),
        tgi_dist_count_local(&target->cols, find_portion(&target->col_place, work->rank)));
    work->row_places = malloc(((size_t)rows + 1) * sizeof *work->row_places);
    work->col_places = malloc(((size_t)cols + 1) * sizeof *work->col_places);
    work->out = calloc(rank_count, sizeof *work->out);
    work->in = calloc(rank_count, sizeof *work->in);
    work->requests = malloc(2 * rank_count * sizeof(MPI_Request));
    int64_t count = 0;
    if (work->out && work->in) {
        count = measure_messages(work);
        if (count < 0)
            return tgi_dist_fail(TG_STATUS_SIZE_OVERFLOW,
                                 "a message would have more than %d rows or columns; use more "
                                 "ranks",
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
        in->elements = (int)rank == work->rank ? out->elements : next;
        if ((int)rank != work->rank)
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

static void add_element(tg_type type, void *sum, const void *element)
{
    if (type == TG_TYPE_FP64)
        *(double *)sum += *(const double *)element;
    else
        *(float *)sum += *(const float *)element;
}

/* Copies the elements of a message from the local matrix (is_out), or to it. A message holds its
 * columns one after the other. */
static void move_message(const convert_work *work, const convert_message *message,
                         const tgi_dist_side *side, char *local, int is_out)
{
    char *packed = message->elements;
    const int64_t bytes = work->element_bytes;
    for (int64_t j = 0; j < message->col_count; j++) {
        char *col = local + work->col_places[j] * side->col_stride * bytes;
        for (int64_t i = 0; i < message->row_count; i++) {
            char *element = col + work->row_places[i] * side->row_stride * bytes;
            if (is_out)
                memcpy(packed, element, (size_t)bytes);
            else if (work->is_sum)
                add_element(work->type, element, packed);
            else
                memcpy(element, packed, (size_t)bytes);
            packed += bytes;
        }
    }
}

/* If is_out, moves the elements that go to `rank` from the local matrix into its message; else
 * moves those that came from it into the local matrix. */
static void move_shared(const convert_work *work, int rank, char *local, int is_out)
{
    const tgi_dist_side *mine = is_out ? &work->source : &work->target;
    const tgi_dist_side *other = is_out ? &work->target : &work->source;
    list_rows(mine, work->rank, other, rank, work->row_places);
    list_cols(mine, work->rank, other, rank, work->col_places);
    move_message(work, is_out ? &work->out[rank] : &work->in[rank], mine, local, is_out);
}

/* Puts a message on its way, to a rank if is_out. Its lines are columns. */
static int start_message(const tg_dist_grid *grid, convert_work *work, int rank, int is_out,
                         MPI_Datatype element, int *request_count)
{
    const convert_message *message = is_out ? &work->out[rank] : &work->in[rank];
    const tgi_dist_lines lines = {.data = message->elements,
                                  .count = message->col_count,
                                  .length = message->row_count,
                                  .element = element};
    return tgi_dist_start_lines(&lines, grid->comm, rank, is_out, work->requests, request_count);
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
        error = start_message(grid, work, rank, 0, element, &request_count);
        counts->bytes_received += count * work->element_bytes;
    }
    for (int rank = 0; rank < rank_count && error == MPI_SUCCESS; rank++) {
        const int64_t count = work->out[rank].row_count * work->out[rank].col_count;
        if (count == 0)
            continue;
        move_shared(work, rank, (char *)source, 1);
        if (rank == grid->rank)
            continue;
        error = start_message(grid, work, rank, 1, element, &request_count);
        counts->bytes_sent += count * work->element_bytes;
    }
    if (error == MPI_SUCCESS)
        error = MPI_Waitall(request_count, work->requests, MPI_STATUSES_IGNORE);
    if (error != MPI_SUCCESS)
        return tgi_dist_check_mpi(error);
    for (int rank = 0; rank < rank_count; rank++)
        if (work->in[rank].row_count && work->in[rank].col_count)
            move_shared(work, rank, target, 0);
    return TG_STATUS_OK;
}

tg_status tgi_dist_move(const tg_dist_grid *grid, tg_type type, int is_sum,
                        const tgi_dist_side *from, const void *source, const tgi_dist_side *to,
                        void *target, tg_dist_counts *counts)
{
    convert_work work = {.source = *from,
                         .target = *to,
                         .rank = grid->rank,
                         .rank_count = grid->row_count * grid->col_count,
                         .type = type,
                         .is_sum = is_sum,
                         .element_bytes = tg_get_type_bytes(type)};
    tg_status status = tgi_dist_agree(grid, prepare_work(&work));
    MPI_Datatype element = MPI_DATATYPE_NULL;
    if (!status)
        status = tgi_dist_make_element(type, &element);
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
    if ((!source && tgi_dist_local_bytes(from, grid)) ||
        (!target && tgi_dist_local_bytes(to, grid)))
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
    tg_status status =
        check_conversion(grid, op, source_layout, source, target_layout, target, counts);
    tgi_dist_value values[2 * TGI_DIST_LAYOUT_VALUES + 1];
    if (!status) {
        tgi_dist_list_values(source_layout, values);
        tgi_dist_list_values(target_layout, values + TGI_DIST_LAYOUT_VALUES);
        values[2 * TGI_DIST_LAYOUT_VALUES] = (tgi_dist_value){"op", op};
    }
    status = tgi_dist_agree_values(grid, status, values, 2 * TGI_DIST_LAYOUT_VALUES + 1, NULL);
    if (status)
        return status;
    const tgi_dist_side from = tgi_dist_describe_side(source_layout, grid, 0);
    const tgi_dist_side to =
        tgi_dist_describe_side(target_layout, grid, op == TG_OPERATION_TRANSPOSE);
    tg_dist_counts made = {.struct_bytes = sizeof made};
    status = tgi_dist_move(grid, source_layout->type, 0, &from,
                           tgi_dist_find_origin(source_layout, grid, source), &to,
                           tgi_dist_find_origin(target_layout, grid, target), &made);
    if (!status && counts) {
        counts->bytes_sent = made.bytes_sent;
        counts->bytes_received = made.bytes_received;
    }
    return status;
}
