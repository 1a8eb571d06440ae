#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist_wire_links.h"

enum { ROUND_BYTES = 2 << 20 }; /* of the bytes of a buffer */

/* How the ranks of a grid are joined. */
typedef enum wire_kind {
    WIRE_ANY, /* ranks of one host by copies, others by NCCL where all have it, else by MPI */
    WIRE_COPIES,
    WIRE_NCCL,
    WIRE_MPI
} wire_kind;

/* Opens the driver and makes what the wire needs of its GPU, whose context is then current. */
static tg_status open_gpu(tgi_dist_wire *wire, const tg_device_info *device)
{
    tg_status status;
    const tgi_driver *driver = tgi_driver_open(&status);
    if (!driver)
        return status;
    wire->driver = driver;
    strncpy(wire->device_name, device->device, sizeof wire->device_name - 1);
    const int ordinal = atoi(strchr(wire->device_name, ':') + 1);
    int error = driver->get_device(&wire->device, ordinal);
    if (!error)
        error = driver->retain_context(&wire->gpu, wire->device);
    if (!error)
        error = tgi_wire_switch_to_gpu(wire);
    if (!error)
        error = driver->create_stream(&wire->copies, TGI_CUDA_STREAM_NON_BLOCKING);
    if (!error)
        error = driver->create_stream(&wire->rescue, TGI_CUDA_STREAM_NON_BLOCKING);
    if (!error)
        error = driver->create_event(&wire->event, TGI_CUDA_EVENT_NO_TIMING);
    return tgi_wire_check(wire, error, "no streams for copies to other GPUs");
}

/* Returns what TILEGEMM_WIRE says: how the ranks are joined. */
static tg_status choose_kind(wire_kind *kind)
{
    static const char *const names[] = {"", "copies", "nccl", "mpi"};
    const char *chosen = secure_getenv("TILEGEMM_WIRE");
    for (int i = 0; i < 4; i++) {
        *kind = (wire_kind)i;
        if (strcmp(chosen ? chosen : "", names[i]) == 0)
            return TG_STATUS_OK;
    }
    return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                         "TILEGEMM_WIRE is %.40s; set it to copies, nccl or mpi, or not at all",
                         chosen);
}

/* Finds which ranks are joined by copies: those of one host, or none if another kind is chosen. */
static tg_status find_hosts(tgi_dist_wire *wire, wire_kind kind)
{
    MPI_Comm host;
    int first = wire->rank;
    int error =
        MPI_Comm_split_type(wire->comm, MPI_COMM_TYPE_SHARED, wire->rank, MPI_INFO_NULL, &host);
    if (error == MPI_SUCCESS && kind <= WIRE_COPIES)
        error = MPI_Bcast(&first, 1, MPI_INT, 0, host);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_free(&host);
    if (error == MPI_SUCCESS)
        error = MPI_Allgather(&first, 1, MPI_INT, wire->hosts, 1, MPI_INT, wire->comm);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_split(wire->comm, first, wire->rank, &wire->host);
    return tgi_dist_check_mpi(error);
}

/* Makes the table of faults, which the ranks of a host see. */
static tg_status open_faults(tgi_dist_wire *wire)
{
    MPI_Aint bytes = (MPI_Aint)sizeof(int) * wire->rank_count;
    void *shared, *own;
    int unit;
    const int is_first = wire->hosts[wire->rank] == wire->rank;
    int error = MPI_Win_allocate_shared(is_first ? bytes : 0, sizeof(int), MPI_INFO_NULL,
                                        wire->host, &own, &wire->window);
    if (error == MPI_SUCCESS)
        error = MPI_Win_shared_query(wire->window, 0, &bytes, &unit, &shared);
    if (error != MPI_SUCCESS)
        return tgi_dist_check_mpi(error);
    wire->faults = shared;
    if (is_first)
        memset(shared, 0, sizeof(int) * (size_t)wire->rank_count);
    return tgi_dist_check_mpi(MPI_Barrier(wire->host));
}

/* Joins the ranks. Collective: OK on all ranks or on none. */
static tg_status join(const tg_dist_grid *grid, tgi_dist_wire *wire)
{
    wire_kind kind;
    int linked_count = 0;
    tg_status status = choose_kind(&kind);
    const tgi_dist_value value = {"TILEGEMM_WIRE", kind};
    status = tgi_dist_agree_values(grid, status, &value, 1, NULL);
    if (!status)
        status = tgi_dist_agree(grid, find_hosts(wire, kind));
    if (!status)
        status = tgi_dist_agree(grid, open_faults(wire));
    for (int i = 0; i < wire->rank_count && !status; i++)
        linked_count += tgi_wire_is_linked(wire, i);
    if (kind == WIRE_COPIES && linked_count)
        status =
            tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                          "TILEGEMM_WIRE is copies, and %d of the grid's %d ranks are on other "
                          "hosts; set it to nccl or mpi, or not at all",
                          linked_count, wire->rank_count);
    const tgi_nccl *nccl = NULL;
    if (!status && linked_count && kind != WIRE_MPI)
        nccl = tgi_nccl_open();
    if (!status && kind == WIRE_NCCL && linked_count && !nccl)
        status = TG_STATUS_UNSUPPORTED;
    status = tgi_dist_agree(grid, status);
    return status ? status : tgi_links_open(grid, wire, nccl, linked_count);
}

/* Releases the buffers, which are no longer in use on this rank. Collective. */
static void release_buffer(tgi_dist_wire *wire)
{
    for (int i = 0; i < wire->rank_count; i++)
        if (i != wire->rank && wire->buffers[i])
            wire->driver->close_shared(wire->buffers[i]);
    MPI_Barrier(wire->comm);
    if (wire->buffers[wire->rank])
        wire->driver->release(wire->buffers[wire->rank]);
    memset(wire->buffers, 0, (size_t)wire->rank_count * sizeof *wire->buffers);
    memset(wire->sent, 0, (size_t)wire->rank_count * sizeof *wire->sent);
    memset(wire->awaited, 0, (size_t)wire->rank_count * sizeof *wire->awaited);
    wire->call_count = wire->told_count = 0;
    wire->halves = (tgi_dist_halves){0};
    wire->bytes = 0;
    wire->faults[wire->rank] = 0;
    wire->is_broken = 0;
}

/* Returns 1 if no other rank reaches this one's GPU. */
static int is_alone(const tgi_dist_wire *wire)
{
    for (int i = 0; i < wire->rank_count; i++)
        if (i != wire->rank && !tgi_wire_is_linked(wire, i))
            return 0;
    return 1;
}

/* Allocates a buffer whose words are zero, and a handle by which other processes open it. */
static tg_status make_buffer(tgi_dist_wire *wire, int64_t bytes, tgi_driver_share *share)
{
    const tgi_driver *driver = wire->driver;
    uint64_t *mine = &wire->buffers[wire->rank];
    int error = driver->allocate(mine, (size_t)bytes);
    if (error) {
        char what[128];
        snprintf(what, sizeof what, "no %lld bytes for what other ranks send; use more ranks",
                 (long long)bytes);
        return tgi_driver_fail(driver, error, what);
    }
    for (int i = 0; i < 2 * wire->rank_count && !error; i++)
        error = driver->write_word(wire->rescue, *mine + (uint64_t)i * TGI_WORD_BYTES, 0, 0);
    if (!error)
        error = driver->wait_for_stream(wire->rescue);
    if (!error && !is_alone(wire))
        error = driver->share(share, *mine);
    return tgi_wire_check(wire, error, "memory of the GPU cannot be shared with other processes");
}

tg_status tgi_wire_grow(const tg_dist_grid *grid, tgi_dist_wire *wire, int64_t bytes, void *stream)
{
    const tgi_driver *driver = wire->driver;
    tgi_driver_share *shares = calloc((size_t)wire->rank_count, sizeof *shares);
    tg_status status = TG_STATUS_OK;
    bytes = (bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
    if (wire->bytes && !wire->is_broken) {
        tgi_wire_await_end(wire); /* of the last call */
        status = tgi_wire_agree_end(grid, wire->status, stream);
    }
    if (status) {
        free(shares);
        return status;
    }
    release_buffer(wire);
    if (shares)
        status = make_buffer(wire, bytes, &shares[wire->rank]);
    else
        status = tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for %d handles of buffers",
                               wire->rank_count);
    status = tgi_dist_agree(grid, status);
    if (!status)
        status = tgi_dist_check_mpi(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, shares,
                                                  sizeof *shares, MPI_BYTE, grid->comm));
    for (int i = 0; i < wire->rank_count && !status; i++)
        if (i != wire->rank && !tgi_wire_is_linked(wire, i))
            status = tgi_wire_check(
                wire, driver->open_shared(&wire->buffers[i], shares[i], TGI_CUDA_SHARE_PEER_ACCESS),
                "memory of another rank's GPU does not open here; let each process see "
                "all GPUs (CUDA_VISIBLE_DEVICES), and choose by the context's device");
    status = tgi_dist_agree(grid, status);
    if (!status)
        status = tgi_links_connect(grid, wire);
    wire->bytes = status ? 0 : bytes;
    free(shares);
    return status;
}

/* Waits for the end of the last call, or ends what NCCL has under way if that failed. */
static void end_last_call(tgi_dist_wire *wire)
{
    wire->status = TG_STATUS_OK;
    tgi_wire_await_end(wire);
    if (!wire->links || wire->is_broken || !tgi_wire_has_fault(wire))
        return;
    tgi_links_stop(wire);
    tgi_links_abort(wire->links);
    wire->driver->wait_for_event(wire->event);
}

/* Releases all that the wire has, and makes the caller's context current. */
static void release_wire(tgi_dist_wire *wire)
{
    const tgi_driver *driver = wire->driver;
    if (wire->gpu && !driver->set_current(wire->gpu)) {
        if (wire->bytes)
            end_last_call(wire);
        if (wire->faults)
            release_buffer(wire);
        tgi_links_close(wire);
        if (wire->event)
            driver->destroy_event(wire->event);
        if (wire->copies)
            driver->destroy_stream(wire->copies);
        if (wire->rescue)
            driver->destroy_stream(wire->rescue);
        driver->set_current(wire->caller);
        driver->release_context(wire->device);
    }
    if (wire->faults)
        MPI_Win_free(&wire->window);
    if (wire->host != MPI_COMM_NULL)
        MPI_Comm_free(&wire->host);
    free(wire->hosts);
    free(wire->buffers);
    free(wire->sent);
    free(wire->awaited);
    *wire = (tgi_dist_wire){.driver = NULL};
}

tg_status tgi_wire_open(const tg_dist_grid *grid, tgi_dist_wire *wire, const tg_device_info *device)
{
    const size_t count = (size_t)grid->row_count * (size_t)grid->col_count;
    *wire = (tgi_dist_wire){.comm = grid->comm,
                            .host = MPI_COMM_NULL,
                            .window = MPI_WIN_NULL,
                            .rank = grid->rank,
                            .rank_count = (int)count,
                            .hosts = calloc(count, sizeof *wire->hosts),
                            .buffers = calloc(count, sizeof *wire->buffers),
                            .sent = calloc(count, sizeof *wire->sent),
                            .awaited = calloc(count, sizeof *wire->awaited)};
    tg_status status = TG_STATUS_OK;
    if (!wire->hosts || !wire->buffers || !wire->sent || !wire->awaited)
        status =
            tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for the counts of %zu ranks", count);
    status = tgi_dist_agree(grid, status ? status : open_gpu(wire, device));
    if (!status)
        status = join(grid, wire);
    if (status)
        release_wire(wire);
    return status;
}

void tgi_dist_close_wire(tgi_dist_wire *wire)
{
    wire->driver->get_current(&wire->caller);
    release_wire(wire);
}
