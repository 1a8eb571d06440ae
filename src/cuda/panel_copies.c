#include "cuda/panel_copies.h"

#include <sched.h>

#include "core/status.h"
#include "cuda/runtime/device_memory.h"

/* The first IN_COUNT pinned blocks, with their events, serve copies in; the others serve copies
 * out. */
#define IN_COUNT (tgi_cuda_stage_count / 2)
#define OUT_COUNT (tgi_cuda_stage_count - IN_COUNT)

/* The bytes of one copy that needs no pinned block. The bus is idle between two copies. */
#define DIRECT_PIECE_BYTES ((int64_t)32 << 20)

tg_status tgi_cuda_open_copies(const tgi_machine *machine, tgi_cuda_attend *attend, void *state,
                               tgi_cuda_panel_copies *copies)
{
    tgi_cuda_device *device = machine->device;
    const tgi_driver *driver = device->driver;
    *copies = (tgi_cuda_panel_copies){.attend = attend,
                                      .state = state,
                                      .machine = machine,
                                      .driver = driver,
                                      .thread_count = tgi_operand_lines_choose_threads()};
    const tg_status status = tgi_cuda_take_staging(device, &copies->staging);
    if (status)
        return status;
    int error = driver->create_stream(&copies->in_stream, TGI_CUDA_STREAM_NON_BLOCKING);
    if (!error)
        error = driver->create_stream(&copies->out_stream, TGI_CUDA_STREAM_NON_BLOCKING);
    return error ? tgi_driver_fail(driver, error, "streams for copies cannot be made")
                 : TG_STATUS_OK;
}

void tgi_cuda_close_copies(tgi_cuda_panel_copies *copies, int is_idle)
{
    void *const streams[] = {copies->in_stream, copies->out_stream};
    for (int i = 0; i < 2; i++) {
        if (!streams[i])
            continue;
        if (!is_idle)
            copies->driver->wait_for_stream(streams[i]);
        copies->driver->destroy_stream(streams[i]);
    }
    tgi_cuda_give_staging(copies->machine->device, copies->staging, is_idle);
}

int tgi_cuda_note_error(tgi_cuda_panel_copies *copies, int error)
{
    if (!copies->error)
        copies->error = error;
    return !copies->error;
}

static int64_t get_line_bytes(const tgi_operand_lines *lines)
{
    return lines->elem_bytes * lines->elem_count;
}

/* Returns 1 if copies of the operand need no pinned block: its memory is pinned, and its lines are
 * contiguous and long. */
static int is_direct(const tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines)
{
    const int64_t line_bytes = get_line_bytes(lines), pitch = lines->line_pitch;
    const int is_long =
        lines->line_count == 1 || tgi_operand_lines_are_long((double)line_bytes, (double)pitch);
    if (lines->entry_count > 1 || lines->elem_pitch != lines->elem_bytes || !is_long)
        return 0;
    const char *last = lines->data + (lines->line_count - 1) * pitch + line_bytes - 1;
    return tgi_cuda_find_memory(copies->machine, lines->data) == TGI_MEMORY_PINNED &&
           tgi_cuda_find_memory(copies->machine, last) == TGI_MEMORY_PINNED;
}

/* Returns the bytes of a piece of an operand. A piece fills a pinned block, or has whole lines if
 * it is copied directly. The last piece may be smaller. */
static int64_t get_piece_bytes(const tgi_operand_lines *lines, int is_direct)
{
    const int64_t line_bytes = get_line_bytes(lines);
    if (!is_direct)
        return TGI_CUDA_STAGE_BYTES;
    if (lines->line_count == 1)
        return DIRECT_PIECE_BYTES;
    return line_bytes > DIRECT_PIECE_BYTES ? line_bytes
                                           : DIRECT_PIECE_BYTES / line_bytes * line_bytes;
}

/* Copies a piece between pinned memory and the panel at `memory` on the device. The pinned memory
 * is the block or, if there is none, the operand itself. */
static int copy_piece(const tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines,
                      int64_t offset, int64_t bytes, char *block, char *memory, int is_in)
{
    const tgi_driver *driver = copies->driver;
    void *const stream = is_in ? copies->in_stream : copies->out_stream;
    const uint64_t on_device = (uint64_t)(uintptr_t)(memory + offset);
    const int64_t line_bytes = get_line_bytes(lines);
    if (!block && lines->line_count > 1) {
        const uint64_t host =
            (uint64_t)(uintptr_t)(lines->data + offset / line_bytes * lines->line_pitch);
        const tgi_driver_copy copy = {.from_type = TGI_CUDA_MEMORY_UNIFIED,
                                      .from = is_in ? host : on_device,
                                      .from_pitch =
                                          (size_t)(is_in ? lines->line_pitch : line_bytes),
                                      .to_type = TGI_CUDA_MEMORY_UNIFIED,
                                      .to = is_in ? on_device : host,
                                      .to_pitch = (size_t)(is_in ? line_bytes : lines->line_pitch),
                                      .line_bytes = (size_t)line_bytes,
                                      .line_count = (size_t)(bytes / line_bytes)};
        return driver->copy_lines(&copy, stream);
    }
    char *const host = block ? block : lines->data + offset;
    return is_in ? driver->copy_to_device(on_device, host, (size_t)bytes, stream)
                 : driver->copy_from_device(host, on_device, (size_t)bytes, stream);
}

/* Returns the bytes of the piece at the place, and moves the place to the next piece. */
static int64_t advance(const tgi_cuda_panel_copies *copies, tgi_cuda_out_place *place)
{
    const tgi_cuda_panel_out *out = &copies->out[place->panel % tgi_cuda_out_count];
    const int64_t total_bytes = tgi_operand_lines_count_bytes(&out->lines);
    const int64_t rest = total_bytes - place->offset;
    const int64_t piece_bytes = get_piece_bytes(&out->lines, out->is_direct);
    const int64_t bytes = rest < piece_bytes ? rest : piece_bytes;
    place->piece++;
    place->offset += bytes;
    if (place->offset == total_bytes) {
        place->panel++;
        place->offset = 0;
    }
    return bytes;
}

/* Starts to copy the next piece out, if there is one and a pinned block is free. */
static int issue_out(tgi_cuda_panel_copies *copies)
{
    const tgi_driver *driver = copies->driver;
    const tgi_cuda_out_place at = copies->issued;
    if (at.panel == copies->out_count || at.piece - copies->done.piece == OUT_COUNT)
        return 0;
    const int stage = IN_COUNT + (int)(at.piece % OUT_COUNT);
    const tgi_cuda_panel_out *out = &copies->out[at.panel % tgi_cuda_out_count];
    const int64_t bytes = advance(copies, &copies->issued);
    int error = driver->make_stream_wait(copies->out_stream, out->ready, 0);
    if (!error)
        error = copy_piece(copies, &out->lines, at.offset, bytes,
                           out->is_direct ? NULL : copies->staging->blocks[stage], out->memory, 0);
    if (!error)
        error = driver->record_event(copies->staging->events[stage], copies->out_stream);
    return tgi_cuda_note_error(copies, error);
}

/* Finishes the copy out of the earliest piece under way, if the piece has arrived or is_waiting is
 * 1. */
static int finish_out(tgi_cuda_panel_copies *copies, int is_waiting)
{
    const tgi_driver *driver = copies->driver;
    const tgi_cuda_out_place at = copies->done;
    if (at.piece == copies->issued.piece)
        return 0;
    const int stage = IN_COUNT + (int)(at.piece % OUT_COUNT);
    void *event = copies->staging->events[stage];
    const int error = is_waiting ? driver->wait_for_event(event) : driver->query_event(event);
    if (error == TGI_CUDA_ERROR_NOT_READY || !tgi_cuda_note_error(copies, error))
        return 0;
    const tgi_cuda_panel_out *out = &copies->out[at.panel % tgi_cuda_out_count];
    const int64_t bytes = advance(copies, &copies->done);
    if (!out->is_direct)
        tgi_operand_lines_move(&out->lines, at.offset, bytes, copies->staging->blocks[stage], 0,
                               copies->thread_count);
    return 1;
}

/* Continues copies out without waiting. Returns 0 if nothing could be done. */
static int serve_out(tgi_cuda_panel_copies *copies)
{
    const int is_issued = issue_out(copies);
    return finish_out(copies, 0) || is_issued;
}

void tgi_cuda_copy_panel_out(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines,
                             char *memory, void *ready)
{
    copies->out[copies->out_count++ % tgi_cuda_out_count] =
        (tgi_cuda_panel_out){*lines, memory, ready, is_direct(copies, lines)};
    serve_out(copies);
}

/* Does as serve_out, and continues the caller's work. */
static int serve(tgi_cuda_panel_copies *copies)
{
    const int is_served = serve_out(copies);
    return copies->attend(copies->state) || is_served;
}

void tgi_cuda_bring_on(tgi_cuda_panel_copies *copies)
{
    if (!serve(copies))
        finish_out(copies, 1);
}

/* Starts to copy a piece in, once the pinned block that it takes is free. If is_own is 1, the piece
 * is copied from the operand's own memory. */
static int issue_in(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines, int64_t offset,
                    int64_t bytes, int is_own, char *memory)
{
    const tgi_driver *driver = copies->driver;
    const int stage = (int)(copies->in_piece++ % IN_COUNT);
    char *const block = copies->staging->blocks[stage];
    int error;
    while ((error = driver->query_event(copies->staging->events[stage])) ==
           TGI_CUDA_ERROR_NOT_READY) {
        if (!serve(copies))
            sched_yield();
    }
    if (!error && !is_own)
        tgi_operand_lines_move(lines, offset, bytes, block, 1, copies->thread_count);
    if (!error)
        error = copy_piece(copies, lines, offset, bytes, is_own ? NULL : block, memory, 1);
    if (!error)
        error = driver->record_event(copies->staging->events[stage], copies->in_stream);
    return tgi_cuda_note_error(copies, error);
}

void tgi_cuda_copy_panel_in(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines,
                            char *memory)
{
    const int64_t total_bytes = tgi_operand_lines_count_bytes(lines);
    const int is_own = total_bytes > 0 && is_direct(copies, lines);
    const int64_t piece_bytes = get_piece_bytes(lines, is_own);
    for (int64_t offset = 0; offset < total_bytes && !copies->error; offset += piece_bytes) {
        const int64_t rest = total_bytes - offset;
        issue_in(copies, lines, offset, rest < piece_bytes ? rest : piece_bytes, is_own, memory);
        serve(copies);
    }
}
