/* Makes types of MPI, and sends messages that are counted in them. */
#include "dist.h"

int tgi_dist_commit_type(int error, MPI_Datatype *type)
{
    if (error == MPI_SUCCESS && (error = MPI_Type_commit(type)) != MPI_SUCCESS)
        MPI_Type_free(type);
    if (error != MPI_SUCCESS)
        *type = MPI_DATATYPE_NULL;
    return error;
}

tg_status tgi_dist_make_element(tg_type type, MPI_Datatype *element)
{
    const int bytes = (int)tg_get_type_bytes(type);
    return tgi_dist_check_mpi(
        tgi_dist_commit_type(MPI_Type_contiguous(bytes, MPI_BYTE, element), element));
}

int tgi_dist_start_lines(const tgi_dist_lines *lines, MPI_Comm comm, int rank, int is_out,
                         MPI_Request *requests, int *request_count)
{
    MPI_Request *request = &requests[*request_count];
    MPI_Datatype line;
    int error =
        tgi_dist_commit_type(MPI_Type_contiguous((int)lines->length, lines->element, &line), &line);
    if (error != MPI_SUCCESS)
        return error;
    error = is_out ? MPI_Isend(lines->data, (int)lines->count, line, rank, 0, comm, request)
                   : MPI_Irecv(lines->data, (int)lines->count, line, rank, 0, comm, request);
    *request_count += error == MPI_SUCCESS;
    MPI_Type_free(&line);
    return error;
}
