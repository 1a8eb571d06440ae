#include "dist_wire.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Word 2 r of a buffer counts the pieces that rank r has put there. Word 2 r + 1 counts the calls
 * after which rank r has no more use for what this rank put into its buffer. */
enum { WORD_BYTES = sizeof(uint32_t), ROUND_BYTES = 2 << 20 };

int64_t tgi_dist_find_buffer_start(const tg_dist_grid *grid)
{
    return tgi_dist_round_up((int64_t)grid->row_count * grid->col_count * 2 * WORD_BYTES);
}

static uint64_t find_word(const tgi_dist_wire *wire, int of, int by, int is_call)
{
    return wire->buffers[of] + (uint64_t)(2 * by + is_call) * WORD_BYTES;
}

static tg_status check(const tgi_dist_wire *wire, int error, const char *what)
{
    return error ? tgi_driver_fail(wire->driver, error, what) : TG_STATUS_OK;
}

/* Makes the GPU's context current, and keeps the caller's. Returns the driver's error. */
static int switch_to_gpu(tgi_dist_wire *wire)
{
    const int error = wire->driver->get_current(&wire->caller);
    return error ? error : wire->driver->set_current(wire->gpu);
}

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
        error = switch_to_gpu(wire);
    if (!error)
        error = driver->create_stream(&wire->copies, TGI_CUDA_STREAM_NON_BLOCKING);
    if (!error)
        error = driver->create_stream(&wire->rescue, TGI_CUDA_STREAM_NON_BLOCKING);
    if (!error)
        error = driver->create_event(&wire->event, TGI_CUDA_EVENT_NO_TIMING);
    return check(wire, error, "no streams for copies to other GPUs");
}

/* Makes the table of faults, which all ranks see. Collective: OK on all ranks or on none. */
static tg_status open_faults(const tg_dist_grid *grid, tgi_dist_wire *wire)
{
    MPI_Comm host;
    int host_rank_count = 0, unit;
    MPI_Aint bytes;
    void *shared, *own;
    int error =
        MPI_Comm_split_type(grid->comm, MPI_COMM_TYPE_SHARED, grid->rank, MPI_INFO_NULL, &host);
    if (error == MPI_SUCCESS) {
        MPI_Comm_size(host, &host_rank_count);
        MPI_Comm_free(&host);
    }
    tg_status status = tgi_dist_check_mpi(error);
    if (!status && host_rank_count != wire->rank_count)
        status = tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                               "%d of the grid's %d ranks are on this host; pass a grid of one "
                               "host, or copy the operands to ordinary memory and pass contexts of "
                               "the CPU",
                               host_rank_count, wire->rank_count);
    status = tgi_dist_agree(grid, status);
    if (status)
        return status;
    status = tgi_dist_check_mpi(
        MPI_Win_allocate_shared(grid->rank == 0 ? (MPI_Aint)sizeof(int) * wire->rank_count : 0,
                                sizeof(int), MPI_INFO_NULL, grid->comm, &own, &wire->window));
    if (!status)
        status = tgi_dist_check_mpi(MPI_Win_shared_query(wire->window, 0, &bytes, &unit, &shared));
    if (!status)
        wire->faults = shared;
    if (!status)
        wire->faults[grid->rank] = 0;
    return tgi_dist_agree(grid, status);
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
    wire->call_count = 0;
    wire->bytes = 0;
    wire->faults[wire->rank] = 0;
    wire->is_broken = 0;
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
        error = driver->write_word(wire->rescue, *mine + (uint64_t)i * WORD_BYTES, 0, 0);
    if (!error)
        error = driver->wait_for_stream(wire->rescue);
    if (!error)
        error = driver->share(share, *mine);
    return check(wire, error, "memory of the GPU cannot be shared with other processes");
}

/* Makes the buffers larger. Nothing is under way, as each rank has waited for its streams. */
static tg_status grow(const tg_dist_grid *grid, tgi_dist_wire *wire, int64_t bytes)
{
    const tgi_driver *driver = wire->driver;
    tgi_driver_share *shares = calloc((size_t)wire->rank_count, sizeof *shares);
    tg_status status = TG_STATUS_OK;
    bytes = (bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
    driver->wait_for_event(wire->event); /* the end of the last call */
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
        if (i != wire->rank)
            status = check(
                wire, driver->open_shared(&wire->buffers[i], shares[i], TGI_CUDA_SHARE_PEER_ACCESS),
                "memory of another rank's GPU does not open here; let each process see "
                "all GPUs (CUDA_VISIBLE_DEVICES), and choose by the context's device");
    status = tgi_dist_agree(grid, status);
    wire->bytes = status ? 0 : bytes;
    free(shares);
    return status;
}

/* Releases all that the wire has, and makes the caller's context current. */
static void release_wire(tgi_dist_wire *wire)
{
    const tgi_driver *driver = wire->driver;
    if (wire->gpu && !driver->set_current(wire->gpu)) {
        if (wire->event)
            driver->wait_for_event(wire->event);
        if (wire->faults)
            release_buffer(wire);
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
    free(wire->buffers);
    free(wire->sent);
    free(wire->awaited);
    *wire = (tgi_dist_wire){.driver = NULL};
}

static tg_status open_wire(const tg_dist_grid *grid, tgi_dist_wire *wire,
                           const tg_device_info *device)
{
    const size_t count = (size_t)grid->row_count * (size_t)grid->col_count;
    *wire = (tgi_dist_wire){.comm = grid->comm,
                            .window = MPI_WIN_NULL,
                            .rank = grid->rank,
                            .rank_count = (int)count,
                            .buffers = calloc(count, sizeof *wire->buffers),
                            .sent = calloc(count, sizeof *wire->sent),
                            .awaited = calloc(count, sizeof *wire->awaited)};
    tg_status status = TG_STATUS_OK;
    if (!wire->buffers || !wire->sent || !wire->awaited)
        status =
            tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for the counts of %zu ranks", count);
    status = tgi_dist_agree(grid, status ? status : open_gpu(wire, device));
    if (!status)
        status = open_faults(grid, wire);
    if (status)
        release_wire(wire);
    return status;
}

void tgi_dist_close_wire(tgi_dist_wire *wire)
{
    wire->driver->get_current(&wire->caller);
    release_wire(wire);
}

/* Keeps the first failure of a call. */
static void note(tgi_dist_wire *wire, int error, const char *what)
{
    if (!wire->status)
        wire->status = check(wire, error, what);
}

tg_status tgi_dist_check_wire(const tg_dist_grid *grid, const tg_device_info *device)
{
    const tgi_dist_wire *wire = grid->wire;
    if (!wire->driver || strcmp(wire->device_name, device->device) == 0)
        return TG_STATUS_OK;
    return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                         "device of the context is %s, and earlier calls of the grid used %s; pass "
                         "a context of %s, or make another grid",
                         device->device, wire->device_name, wire->device_name);
}

tg_status tgi_dist_enter_wire(const tg_dist_grid *grid, const tg_device_info *device, int64_t bytes,
                              void *stream)
{
    tgi_dist_wire *wire = grid->wire;
    tg_status status = TG_STATUS_OK;
    wire->status = TG_STATUS_OK;
    if (wire->driver)
        note(wire, switch_to_gpu(wire), "the GPU's context does not become current");
    else
        status = open_wire(grid, wire, device);
    if (status)
        return status;
    if (bytes > wire->bytes || wire->is_broken)
        status = grow(grid, wire, bytes > wire->bytes ? bytes : wire->bytes);
    if (status) {
        wire->driver->set_current(wire->caller);
        return status;
    }
    /* The last call may have used the buffer in another stream. */
    if (!wire->status)
        note(wire, wire->driver->make_stream_wait(stream, wire->event, 0),
             "a stream cannot wait for an event");
    tgi_dist_follow(wire, stream);
    for (int i = 0; i < wire->rank_count; i++)
        if (i != wire->rank && wire->call_count && !wire->status)
            note(wire,
                 wire->driver->make_stream_wait_for_word(wire->copies,
                                                         find_word(wire, wire->rank, i, 1),
                                                         wire->call_count, TGI_CUDA_WAIT_AT_LEAST),
                 "the stream of copies cannot wait for a word");
    return TG_STATUS_OK;
}

void tgi_dist_copy(tgi_dist_wire *wire, void *base, const tgi_dist_piece *piece, void *stream)
{
    const tgi_driver_copy copy = {.from_type = TGI_CUDA_MEMORY_UNIFIED,
                                  .from = (uint64_t)(uintptr_t)piece->from,
                                  .from_pitch = (size_t)piece->from_pitch,
                                  .to_type = TGI_CUDA_MEMORY_UNIFIED,
                                  .to = (uint64_t)(uintptr_t)base + (uint64_t)piece->to,
                                  .to_pitch = (size_t)piece->to_pitch,
                                  .line_bytes = (size_t)piece->line_bytes,
                                  .line_count = (size_t)piece->line_count};
    if (!wire->status && piece->line_bytes && piece->line_count)
        note(wire, wire->driver->copy_lines(&copy, stream), "a copy between GPUs does not start");
}

void tgi_dist_put(tgi_dist_wire *wire, int to, const tgi_dist_piece *piece)
{
    tgi_dist_copy(wire, (void *)(uintptr_t)wire->buffers[to], piece, wire->copies);
}

void tgi_dist_follow(tgi_dist_wire *wire, void *stream)
{
    if (!wire->status)
        note(wire, wire->driver->record_event(wire->event, stream), "an event is not recorded");
    if (!wire->status)
        note(wire, wire->driver->make_stream_wait(wire->copies, wire->event, 0),
             "the stream of copies cannot wait for an event");
}

void tgi_dist_post(tgi_dist_wire *wire, int to)
{
    if (!wire->status)
        note(wire,
             wire->driver->write_word(wire->copies, find_word(wire, to, wire->rank, 0),
                                      ++wire->sent[to], 0),
             "a word in another rank's memory is not written");
}

void tgi_dist_await(tgi_dist_wire *wire, int from, void *stream)
{
    if (!wire->status)
        note(wire,
             wire->driver->make_stream_wait_for_word(stream, find_word(wire, wire->rank, from, 0),
                                                     ++wire->awaited[from], TGI_CUDA_WAIT_AT_LEAST),
             "a stream cannot wait for a word");
}

/* Waits for what a stream has to do, and ends its waits for ranks that cannot go on. The words are
 * written until then, since what a rank has sent before it failed writes them too. */
static void end_waits(tgi_dist_wire *wire, void *stream)
{
    const tgi_driver *driver = wire->driver;
    int error = driver->record_event(wire->event, stream);
    if (!error)
        error = TGI_CUDA_ERROR_NOT_READY;
    while (error == TGI_CUDA_ERROR_NOT_READY) {
        for (int i = 0; i < wire->rank_count; i++) {
            driver->write_word(wire->rescue, find_word(wire, wire->rank, i, 0), wire->awaited[i],
                               0);
            driver->write_word(wire->rescue, find_word(wire, wire->rank, i, 1), wire->call_count,
                               0);
        }
        driver->wait_for_stream(wire->rescue);
        error = driver->query_event(wire->event);
    }
}

/* Waits for the end of the call, unless a rank cannot go on. */
static void wait_for_end(tgi_dist_wire *wire)
{
    int error = TGI_CUDA_ERROR_NOT_READY;
    while (error == TGI_CUDA_ERROR_NOT_READY) {
        for (int i = 0; i < wire->rank_count; i++)
            if (wire->faults[i])
                return;
        error = wire->driver->query_event(wire->event);
        if (error == TGI_CUDA_ERROR_NOT_READY)
            sched_yield();
    }
    note(wire, error, "the product failed on the GPU");
}

tg_status tgi_dist_leave_wire(const tg_dist_grid *grid, tg_status status, void *stream,
                              int is_waiting)
{
    tgi_dist_wire *wire = grid->wire;
    const tgi_driver *driver = wire->driver;
    wire->call_count++;
    for (int i = 0; i < wire->rank_count; i++)
        if (i != wire->rank && !wire->status)
            note(wire,
                 driver->write_word(stream, find_word(wire, i, wire->rank, 1), wire->call_count, 0),
                 "a word in another rank's memory is not written");
    if (!wire->status)
        note(wire, driver->record_event(wire->event, wire->copies), "an event is not recorded");
    if (!wire->status)
        note(wire, driver->make_stream_wait(stream, wire->event, 0),
             "a stream cannot wait for an event");
    note(wire, driver->record_event(wire->event, stream), "an event is not recorded");
    if (is_waiting && !status && !wire->status)
        wait_for_end(wire);
    if (!status)
        status = wire->status;
    wire->faults[wire->rank] = status != TG_STATUS_OK;
    status = tgi_dist_agree(grid, status);
    if (status) {
        wire->is_broken = 1;
        end_waits(wire, wire->copies);
        end_waits(wire, stream);
    }
    driver->set_current(wire->caller);
    return status;
}
