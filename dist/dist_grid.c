#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist_wire.h"

enum { DETAIL_BYTES = 512, VALUES_MAX = 40 };
static _Thread_local char dist_detail[DETAIL_BYTES];

tg_status tgi_dist_fail(tg_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(dist_detail, sizeof dist_detail, format, arguments);
    va_end(arguments);
    return status;
}

tg_status tgi_dist_take_detail(tg_status status)
{
    return status ? tgi_dist_fail(status, "%s", tg_get_error_detail()) : TG_STATUS_OK;
}

const char *tg_dist_get_error_detail(void)
{
    return dist_detail;
}

tg_status tgi_dist_check_mpi(int error)
{
    if (error == MPI_SUCCESS)
        return TG_STATUS_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error, text, &length);
    return tgi_dist_fail(TG_STATUS_DEVICE_FAILURE, "MPI failed: %.400s", text);
}

/* Returns the status of a rank that has failed, on all ranks. The detail of the others names it. */
static tg_status share_failure(const tg_dist_grid *grid, tg_status status, int rank)
{
    char text[DETAIL_BYTES];
    memcpy(text, dist_detail, sizeof text);
    const tg_status mpi =
        tgi_dist_check_mpi(MPI_Bcast(text, sizeof text, MPI_CHAR, rank, grid->comm));
    if (mpi)
        return mpi;
    if (rank == grid->rank)
        return status;
    return tgi_dist_fail(status, "rank %d failed: %.480s", rank, text);
}

tg_status tgi_dist_agree(const tg_dist_grid *grid, tg_status status)
{
    int mine[2] = {(int)status, grid->rank}, worst[2];
    const tg_status mpi =
        tgi_dist_check_mpi(MPI_Allreduce(mine, worst, 1, MPI_2INT, MPI_MAXLOC, grid->comm));
    if (mpi || worst[0] == TG_STATUS_OK)
        return mpi;
    return share_failure(grid, (tg_status)worst[0], worst[1]);
}

tg_status tgi_dist_agree_values(const tg_dist_grid *grid, tg_status status,
                                const tgi_dist_value *values, int count, int64_t *choice)
{
    int64_t mine[2 * VALUES_MAX + 2] = {0}, largest[2 * VALUES_MAX + 2];
    /* The worst status comes with the first rank that has it. */
    mine[0] = (int64_t)status << 32 | (INT32_MAX - grid->rank);
    mine[1] = choice ? *choice : 0;
    for (int i = 0; i < count && !status; i++) {
        mine[2 * i + 2] = values[i].value;
        mine[2 * i + 3] = ~values[i].value; /* its largest is the complement of the least value */
    }
    status = tgi_dist_check_mpi(
        MPI_Allreduce(mine, largest, 2 * count + 2, MPI_INT64_T, MPI_MAX, grid->comm));
    if (status)
        return status;
    if (largest[0] >> 32)
        return share_failure(grid, (tg_status)(largest[0] >> 32),
                             INT32_MAX - (int)(largest[0] & INT32_MAX));
    for (int i = 0; i < count && !status; i++)
        if (largest[2 * i + 2] != ~largest[2 * i + 3])
            status = tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "%s is not the same on all ranks; pass one value on all of them",
                                   values[i].name);
    if (choice)
        *choice = largest[1];
    return status;
}

/* Makes the communicators. Collective: returns OK on all ranks or on none. */
static tg_status split_grid(tg_dist_grid *grid, MPI_Comm comm)
{
    tg_status status = tgi_dist_check_mpi(MPI_Comm_dup(comm, &grid->comm));
    if (status)
        return status;
    MPI_Comm_set_errhandler(grid->comm, MPI_ERRORS_RETURN);
    status = tgi_dist_check_mpi(MPI_Comm_rank(grid->comm, &grid->rank));
    grid->my_row = grid->rank / grid->col_count;
    grid->my_col = grid->rank % grid->col_count;
    /* The parts inherit the handler of errors. */
    if (!status)
        status =
            tgi_dist_check_mpi(MPI_Comm_split(grid->comm, grid->my_row, grid->my_col, &grid->row));
    if (!status)
        status =
            tgi_dist_check_mpi(MPI_Comm_split(grid->comm, grid->my_col, grid->my_row, &grid->col));
    return tgi_dist_agree(grid, status);
}

tg_status tg_dist_create_grid(MPI_Comm comm, int row_count, int col_count, tg_dist_grid **grid)
{
    int is_running = 0, rank_count = 0, rank = 0;
    if (!grid)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "grid is NULL; pass where to store it");
    *grid = NULL;
    MPI_Initialized(&is_running);
    if (!is_running)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "MPI is not initialized; call MPI_Init before");
    if (comm == MPI_COMM_NULL)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "comm is MPI_COMM_NULL; pass a communicator of the grid's ranks");
    MPI_Comm_size(comm, &rank_count);
    MPI_Comm_rank(comm, &rank);
    /* Ranks that disagree about the grid must not split it. */
    tg_dist_grid *made = calloc(1, sizeof *made);
    tgi_dist_wire *wire = calloc(1, sizeof *wire);
    int64_t *values = calloc((size_t)rank_count, TGI_DIST_RANK_VALUES * sizeof *values);
    tgi_dist_predictions *predictions = calloc(1, sizeof *predictions);
    const int has_memory = made && wire && values && predictions;
    int mine[4] = {row_count >= 1 && col_count >= 1 && (int64_t)row_count * col_count == rank_count,
                   row_count == INT32_MIN ? 0 : row_count, 0, has_memory ? rank_count : rank};
    mine[2] = -mine[1];
    int least[4];
    tg_status status = tgi_dist_check_mpi(MPI_Allreduce(mine, least, 4, MPI_INT, MPI_MIN, comm));
    if (!status && least[3] < rank_count)
        status =
            tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                          "rank %d failed: no memory for a grid of %d ranks", least[3], rank_count);
    else if (!status && (!least[0] || least[1] != -least[2]))
        status = tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                               "row_count = %d and col_count = %d on this rank; pass the same on "
                               "all ranks, with a product of %d, the ranks of comm",
                               row_count, col_count, rank_count);
    if (!status) {
        *made = (tg_dist_grid){.comm = MPI_COMM_NULL,
                               .row = MPI_COMM_NULL,
                               .col = MPI_COMM_NULL,
                               .row_count = row_count,
                               .col_count = col_count,
                               .wire = wire,
                               .values = values,
                               .predictions = predictions};
        status = split_grid(made, comm);
        if (status)
            tg_dist_destroy_grid(made);
        else
            *grid = made;
    } else {
        free(made);
        free(wire);
        free(values);
        free(predictions);
    }
    return status;
}

void tg_dist_destroy_grid(tg_dist_grid *grid)
{
    if (!grid)
        return;
    if (grid->wire->driver)
        tgi_dist_close_wire(grid->wire);
    free(grid->wire);
    free(grid->values);
    free(grid->predictions);
    MPI_Comm *comms[] = {&grid->row, &grid->col, &grid->comm};
    for (int i = 0; i < 3; i++)
        if (*comms[i] != MPI_COMM_NULL)
            MPI_Comm_free(comms[i]);
    free(grid);
}
