#include <limits.h>
#include <stdlib.h>

#include "dist.h"

tg_status tgi_dist_open_feed(tgi_dist_feed *feed, int64_t width)
{
    const int rank_count = feed->k_axis.part_count;
    const int64_t bytes = feed->line_count * width * tg_get_type_bytes(feed->type);
    feed->element = MPI_DATATYPE_NULL;
    if (rank_count == 1)
        return TG_STATUS_OK;
    if (feed->line_count > INT_MAX)
        return tgi_dist_fail(TG_STATUS_SIZE_OVERFLOW,
                             "a panel would have %lld lines, MPI counts %d; use more ranks",
                             (long long)feed->line_count, INT_MAX);
    for (int i = 0; i < 2; i++) {
        feed->panels[i] = malloc((size_t)bytes + 1);
        feed->requests[i] = malloc((size_t)rank_count * sizeof(MPI_Request));
        if (!feed->panels[i] || !feed->requests[i])
            return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY,
                                 "%lld bytes for a panel are not there; use more ranks",
                                 (long long)bytes);
    }
    return tgi_dist_make_element(feed->type, &feed->element);
}

void tgi_dist_close_feed(tgi_dist_feed *feed)
{
    for (int i = 0; i < 2; i++) {
        free(feed->panels[i]);
        free(feed->requests[i]);
    }
    if (feed->element != MPI_DATATYPE_NULL)
        MPI_Type_free(&feed->element);
}

static const char *find_panel(const tgi_dist_feed *feed, int64_t k)
{
    return feed->data +
           tgi_dist_find_local(&feed->k_axis, k) * feed->k_stride * tg_get_type_bytes(feed->type);
}

/* Makes the type of a panel in my part. */
static int make_panel_type(const tgi_dist_feed *feed, int64_t width, MPI_Datatype *type)
{
    const int64_t stride = feed->is_along_k ? feed->line_stride : feed->k_stride;
    const int64_t count = feed->is_along_k ? feed->line_count : width;
    const int64_t length = feed->is_along_k ? width : feed->line_count;
    return tgi_dist_commit_type(MPI_Type_create_hvector((int)count, (int)length,
                                                        stride * tg_get_type_bytes(feed->type),
                                                        feed->element, type),
                                type);
}

/* Starts to send my panel to the other parts. */
static int send_panel(tgi_dist_feed *feed, int slot, int64_t k, int64_t width,
                      tg_dist_counts *counts)
{
    const int part_count = feed->k_axis.part_count;
    MPI_Datatype type;
    int error = make_panel_type(feed, width, &type);
    if (error != MPI_SUCCESS)
        return error;
    /* The next part is served first: it is the next owner. */
    for (int i = 1; i < part_count; i++) {
        error = MPI_Isend(find_panel(feed, k), 1, type, (feed->part + i) % part_count, 0,
                          feed->comm, &feed->requests[slot][feed->request_counts[slot]]);
        if (error != MPI_SUCCESS)
            break;
        feed->request_counts[slot]++;
        counts->bytes_sent += feed->line_count * width * tg_get_type_bytes(feed->type);
    }
    MPI_Type_free(&type);
    return error;
}

tg_status tgi_dist_start_panel(tgi_dist_feed *feed, int64_t number, int64_t k, int64_t width,
                               tg_dist_counts *counts)
{
    const int slot = (int)(number % 2), owner = tgi_dist_find_part(&feed->k_axis, k);
    const int64_t bytes = feed->line_count * width * tg_get_type_bytes(feed->type);
    if (feed->k_axis.part_count == 1 || bytes == 0)
        return TG_STATUS_OK;
    /* My sends of the panel before the last one end here at the latest. */
    int error = MPI_Waitall(feed->request_counts[slot], feed->requests[slot], MPI_STATUSES_IGNORE);
    feed->request_counts[slot] = 0;
    if (error == MPI_SUCCESS && owner != feed->part) {
        const tgi_dist_lines lines = {.data = feed->panels[slot],
                                      .count = feed->line_count,
                                      .length = width,
                                      .element = feed->element};
        error = tgi_dist_start_lines(&lines, feed->comm, owner, 0, feed->requests[slot],
                                     &feed->request_counts[slot]);
        counts->bytes_received += error == MPI_SUCCESS ? bytes : 0;
    } else if (error == MPI_SUCCESS) {
        error = send_panel(feed, slot, k, width, counts);
    }
    return tgi_dist_check_mpi(error);
}

tg_status tgi_dist_await_panel(tgi_dist_feed *feed, int64_t number, int64_t k, int64_t width,
                               const void **data, int64_t *line_stride, int64_t *k_stride)
{
    const int slot = (int)(number % 2);
    *line_stride = feed->line_stride;
    *k_stride = feed->k_stride;
    if (tgi_dist_find_part(&feed->k_axis, k) == feed->part) {
        *data = find_panel(feed, k);
        return TG_STATUS_OK;
    }
    *data = feed->panels[slot];
    if (feed->is_along_k)
        *line_stride = width;
    else
        *k_stride = feed->line_count > 0 ? feed->line_count : 1;
    const int error =
        MPI_Waitall(feed->request_counts[slot], feed->requests[slot], MPI_STATUSES_IGNORE);
    feed->request_counts[slot] = 0;
    return tgi_dist_check_mpi(error);
}

void tgi_dist_progress(tgi_dist_feed *feed)
{
    int is_done;
    for (int slot = 0; slot < 2; slot++)
        if (feed->request_counts[slot])
            MPI_Testall(feed->request_counts[slot], feed->requests[slot], &is_done,
                        MPI_STATUSES_IGNORE);
}
