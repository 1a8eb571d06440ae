#include <sched.h>
#include <string.h>

#include "dist_wire_links.h"

int64_t tgi_dist_find_buffer_start(const tg_dist_grid *grid)
{
    return tgi_dist_round_up((int64_t)grid->row_count * grid->col_count * 2 * TGI_WORD_BYTES);
}

tg_status tgi_wire_check(const tgi_dist_wire *wire, int error, const char *what)
{
    return error ? tgi_driver_fail(wire->driver, error, what) : TG_STATUS_OK;
}

void tgi_wire_note(tgi_dist_wire *wire, int error, const char *what)
{
    if (!wire->status)
        wire->status = tgi_wire_check(wire, error, what);
}

int tgi_wire_switch_to_gpu(tgi_dist_wire *wire)
{
    const int error = wire->driver->get_current(&wire->caller);
    return error ? error : wire->driver->set_current(wire->gpu);
}

int tgi_wire_has_fault(tgi_dist_wire *wire)
{
    for (int i = 0; i < wire->rank_count; i++)
        if (wire->faults[i])
            return 1;
    return wire->links && tgi_links_have_fault(wire);
}

/* Makes a stream wait until the other ranks of the host have ended the last call. */
static void wait_for_calls(tgi_dist_wire *wire, void *stream)
{
    for (int i = 0; i < wire->rank_count; i++)
        if (i != wire->rank && !tgi_wire_is_linked(wire, i) && wire->call_count && !wire->status)
            tgi_wire_note(wire,
                          wire->driver->make_stream_wait_for_word(
                              stream, tgi_wire_find_word(wire, wire->rank, i, 1), wire->call_count,
                              TGI_CUDA_WAIT_AT_LEAST),
                          "a stream cannot wait for a word");
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

/* Tells the ranks of the host the end of the last call, behind the work of the stream. */
static void tell_end(tgi_dist_wire *wire, void *stream)
{
    for (int i = 0; i < wire->rank_count && wire->told_count != wire->call_count; i++)
        if (i != wire->rank && !tgi_wire_is_linked(wire, i) && !wire->status)
            tgi_wire_note(wire,
                          wire->driver->write_word(stream,
                                                   tgi_wire_find_word(wire, i, wire->rank, 1),
                                                   wire->call_count, 0),
                          "a word in another rank's memory is not written");
    wire->told_count = wire->call_count;
}

int64_t tgi_dist_find_half(const tgi_dist_wire *wire, int64_t first)
{
    if (!wire->halves.end)
        return first;
    return wire->call_count % 2 ? wire->halves.second : wire->halves.first;
}

tg_status tgi_dist_enter_wire(const tg_dist_grid *grid, const tg_device_info *device, int64_t bytes,
                              const tgi_dist_halves *halves, void *stream)
{
    tgi_dist_wire *wire = grid->wire;
    tg_status status = TG_STATUS_OK;
    wire->status = TG_STATUS_OK;
    if (wire->driver)
        tgi_wire_note(wire, tgi_wire_switch_to_gpu(wire),
                      "the GPU's context does not become current");
    else
        status = tgi_wire_open(grid, wire, device);
    if (status)
        return status;
    if (bytes > wire->bytes || wire->is_broken)
        status = tgi_wire_grow(grid, wire, bytes > wire->bytes ? bytes : wire->bytes, stream);
    if (status) {
        wire->driver->set_current(wire->caller);
        return status;
    }
    if (wire->links) /* the last call may have returned before NCCL failed */
        tgi_links_check(wire);
    /* The last call may have used the buffer in another stream, and the other ranks may read it. */
    if (!wire->status)
        tgi_wire_note(wire, wire->driver->make_stream_wait(stream, wire->event, 0),
                      "a stream cannot wait for an event");
    if (wire->links) /* what goes over links is sent */
        halves = NULL;
    wire->has_same_halves = halves && memcmp(halves, &wire->halves, sizeof *halves) == 0;
    if (!wire->has_same_halves) {
        tell_end(wire, stream);
        if (wire->is_shown)
            wait_for_calls(wire, stream);
    }
    wire->halves = halves ? *halves : (tgi_dist_halves){0};
    wire->is_shown = wire->is_followed = 0;
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
        tgi_wire_note(wire, wire->driver->copy_lines(&copy, stream),
                      "a copy between GPUs does not start");
}

void tgi_dist_put(tgi_dist_wire *wire, int to, const tgi_dist_piece *piece)
{
    if (tgi_wire_is_linked(wire, to))
        tgi_links_put(wire, to, piece);
    else
        tgi_dist_copy(wire, (void *)(uintptr_t)wire->buffers[to], piece, wire->copies);
}

void tgi_dist_follow(tgi_dist_wire *wire, void *stream)
{
    if (!wire->status)
        tgi_wire_note(wire, wire->driver->record_event(wire->event, stream),
                      "an event is not recorded");
    if (!wire->status)
        tgi_wire_note(wire, wire->driver->make_stream_wait(wire->copies, wire->event, 0),
                      "the stream of copies cannot wait for an event");
    if (!wire->is_followed && !wire->has_same_halves)
        wait_for_calls(wire, wire->copies);
    wire->is_followed = 1;
    if (wire->links && !wire->status)
        tgi_links_follow(wire, stream);
}

/* Counts one more piece in the buffer of a rank, behind the work of a stream. */
static void count_piece(tgi_dist_wire *wire, int to, void *stream)
{
    if (!wire->status)
        tgi_wire_note(wire,
                      wire->driver->write_word(stream, tgi_wire_find_word(wire, to, wire->rank, 0),
                                               ++wire->sent[to], 0),
                      "a word in another rank's memory is not written");
}

void tgi_dist_post(tgi_dist_wire *wire, int to)
{
    if (tgi_wire_is_linked(wire, to))
        tgi_links_post(wire, to);
    else
        count_piece(wire, to, wire->copies);
}

char *tgi_dist_reach(const tgi_dist_wire *wire, int rank)
{
    return (char *)(uintptr_t)wire->buffers[rank];
}

void tgi_dist_show(tgi_dist_wire *wire, int to, void *stream)
{
    count_piece(wire, to, stream);
    wire->is_shown = 1;
}

void tgi_dist_await(tgi_dist_wire *wire, int from, void *stream)
{
    if (tgi_wire_is_linked(wire, from))
        tgi_links_await(wire, from, stream);
    else if (!wire->status)
        tgi_wire_note(wire,
                      wire->driver->make_stream_wait_for_word(
                          stream, tgi_wire_find_word(wire, wire->rank, from, 0),
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
            driver->write_word(wire->rescue, tgi_wire_find_word(wire, wire->rank, i, 0),
                               wire->awaited[i], 0);
            driver->write_word(wire->rescue, tgi_wire_find_word(wire, wire->rank, i, 1),
                               wire->call_count, 0);
        }
        driver->wait_for_stream(wire->rescue);
        error = driver->query_event(wire->event);
    }
}

void tgi_wire_await_end(tgi_dist_wire *wire)
{
    int error = TGI_CUDA_ERROR_NOT_READY;
    while (error == TGI_CUDA_ERROR_NOT_READY) {
        if (tgi_wire_has_fault(wire))
            return; /* what the stream waits for may not come */
        error = wire->driver->query_event(wire->event);
        if (error == TGI_CUDA_ERROR_NOT_READY)
            sched_yield();
    }
    tgi_wire_note(wire, error, "the product failed on the GPU");
}

/* Puts the end of the call into the stream, and tells the ranks of the host. */
static void end_call(tgi_dist_wire *wire, void *stream)
{
    const tgi_driver *driver = wire->driver;
    wire->call_count++;
    if (!wire->halves.end) /* else the next call does, if it needs to */
        tell_end(wire, stream);
    if (wire->is_followed && !wire->status)
        tgi_wire_note(wire, driver->record_event(wire->event, wire->copies),
                      "an event is not recorded");
    if (wire->is_followed && !wire->status)
        tgi_wire_note(wire, driver->make_stream_wait(stream, wire->event, 0),
                      "a stream cannot wait for an event");
    if (wire->links)
        tgi_links_flush(wire, stream);
    tgi_wire_note(wire, driver->record_event(wire->event, stream), "an event is not recorded");
}

/* Ends all that is under way in a call that has failed. */
static void break_call(tgi_dist_wire *wire, void *stream)
{
    wire->is_broken = 1;
    end_waits(wire, wire->copies);
    end_waits(wire, stream);
    for (int i = 0; wire->links && i < wire->links->count; i++) {
        end_waits(wire, wire->links->items[i].in.stream);
        end_waits(wire, wire->links->items[i].out.stream);
    }
}

tg_status tgi_wire_agree_end(const tg_dist_grid *grid, tg_status status, void *stream)
{
    tgi_dist_wire *wire = grid->wire;
    wire->faults[wire->rank] = status != TG_STATUS_OK;
    if (status && wire->links)
        tgi_links_stop(wire);
    status = tgi_dist_agree(grid, status);
    if (wire->links)
        tgi_links_finish(wire, status);
    if (status)
        break_call(wire, stream);
    return status;
}

tg_status tgi_dist_leave_wire(const tg_dist_grid *grid, tg_status status, void *stream,
                              int is_waiting)
{
    tgi_dist_wire *wire = grid->wire;
    end_call(wire, stream);
    if (is_waiting && !status && !wire->status)
        tgi_wire_await_end(wire);
    status = tgi_wire_agree_end(grid, status ? status : wire->status, stream);
    wire->driver->set_current(wire->caller);
    return status;
}
