#include <limits.h>
#include <stdlib.h>

#include "dist.h"

tg_status tgi_dist_open_supply(tgi_dist_supply *supply, int64_t width)
{
    const int rank_count = supply->k_axis.portion_count;
    const int64_t bytes = supply->line_count * width * tg_get_type_bytes(supply->type);
    supply->element = MPI_DATATYPE_NULL;
    if (rank_count == 1)
        return TG_STATUS_OK;
    if (supply->line_count > INT_MAX)
        return tgi_dist_fail(TG_STATUS_SIZE_OVERFLOW,
                             "a slab would have %lld lines, MPI counts %d; use more ranks",
                             (long long)supply->line_count, INT_MAX);
    for (int i = 0; i < 2; i++) {
        supply->slabs[i] = malloc((size_t)bytes + 1);
        supply->requests[i] = malloc((size_t)rank_count * sizeof(MPI_Request));
        if (!supply->slabs[i] || !supply->requests[i])
            return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                                 "%lld bytes for a slab are not there; use more ranks",
                                 (long long)bytes);
    }
    return tgi_dist_make_element(supply->type, &supply->element);
}

void tgi_dist_close_supply(tgi_dist_supply *supply)
{
    for (int i = 0; i < 2; i++) {
        free(supply->slabs[i]);
        free(supply->requests[i]);
    }
    if (supply->element != MPI_DATATYPE_NULL)
        MPI_Type_free(&supply->element);
}

static const char *find_slab(const tgi_dist_supply *supply, int64_t k)
{
    return supply->data + tgi_dist_find_local(&supply->k_axis, k) * supply->k_stride *
                              tg_get_type_bytes(supply->type);
}

/* Makes the type of a slab in my portion. */
static int make_slab_type(const tgi_dist_supply *supply, int64_t width, MPI_Datatype *type)
{
    const int64_t stride = supply->is_along_k ? supply->line_stride : supply->k_stride;
    const int64_t count = supply->is_along_k ? supply->line_count : width;
    const int64_t length = supply->is_along_k ? width : supply->line_count;
    return tgi_dist_commit_type(MPI_Type_create_hvector((int)count, (int)length,
                                                        stride * tg_get_type_bytes(supply->type),
                                                        supply->element, type),
                                type);
}

/* Starts to send my slab to the other portions. */
static int send_slab(tgi_dist_supply *supply, int slot, int64_t k, int64_t width,
                     tg_dist_counts *counts)
{
    const int portion_count = supply->k_axis.portion_count;
    MPI_Datatype type;
    int error = make_slab_type(supply, width, &type);
    if (error != MPI_SUCCESS)
        return error;
    /* The next portion is served first: it is the next owner. */
    for (int i = 1; i < portion_count; i++) {
        error = MPI_Isend(find_slab(supply, k), 1, type, (supply->portion + i) % portion_count, 0,
                          supply->comm, &supply->requests[slot][supply->request_counts[slot]]);
        if (error != MPI_SUCCESS)
            break;
        supply->request_counts[slot]++;
        counts->bytes_sent += supply->line_count * width * tg_get_type_bytes(supply->type);
    }
    MPI_Type_free(&type);
    return error;
}

tg_status tgi_dist_start_slab(tgi_dist_supply *supply, int64_t number, int64_t k, int64_t width,
                              tg_dist_counts *counts)
{
    const int slot = (int)(number % 2), owner = tgi_dist_find_portion(&supply->k_axis, k);
    const int64_t bytes = supply->line_count * width * tg_get_type_bytes(supply->type);
    if (supply->k_axis.portion_count == 1 || bytes == 0)
        return TG_STATUS_OK;
    /* My sends of the slab before the last one end here at the latest. */
    int error =
        MPI_Waitall(supply->request_counts[slot], supply->requests[slot], MPI_STATUSES_IGNORE);
    supply->request_counts[slot] = 0;
    if (error == MPI_SUCCESS && owner != supply->portion) {
        const tgi_dist_lines lines = {.data = supply->slabs[slot],
                                      .count = supply->line_count,
                                      .length = width,
                                      .element = supply->element};
        error = tgi_dist_start_lines(&lines, supply->comm, owner, 0, supply->requests[slot],
                                     &supply->request_counts[slot]);
        counts->bytes_received += error == MPI_SUCCESS ? bytes : 0;
    } else if (error == MPI_SUCCESS) {
        error = send_slab(supply, slot, k, width, counts);
    }
    return tgi_dist_check_mpi(error);
}

tg_status tgi_dist_await_slab(tgi_dist_supply *supply, int64_t number, int64_t k, int64_t width,
                              const void **data, int64_t *line_stride, int64_t *k_stride)
{
    const int slot = (int)(number % 2);
    *line_stride = supply->line_stride;
    *k_stride = supply->k_stride;
    if (tgi_dist_find_portion(&supply->k_axis, k) == supply->portion) {
        *data = find_slab(supply, k);
        return TG_STATUS_OK;
    }
    *data = supply->slabs[slot];
    if (supply->is_along_k)
        *line_stride = width;
    else
        *k_stride = supply->line_count > 0 ? supply->line_count : 1;
    const int error =
        MPI_Waitall(supply->request_counts[slot], supply->requests[slot], MPI_STATUSES_IGNORE);
    supply->request_counts[slot] = 0;
    return tgi_dist_check_mpi(error);
}

void tgi_dist_progress(tgi_dist_supply *supply)
{
    int is_done;
    for (int slot = 0; slot < 2; slot++)
        if (supply->request_counts[slot])
            MPI_Testall(supply->request_counts[slot], supply->requests[slot], &is_done,
                        MPI_STATUSES_IGNORE);
}
