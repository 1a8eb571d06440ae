#include "cuda/panel_copies.h"

#include <sched.h>

#include "core/status.h"
#include "cuda/runtime/device_memory.h"

/* Pinned blocks, and their events, on the way in; the others are on the way out. */
#define IN_COUNT (tgi_cuda_stage_count / 2)
#define OUT_COUNT (tgi_cuda_stage_count - IN_COUNT)

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

/* Returns 1 if copies of the operand need no pinned block: it is contiguous, and its memory is
 * pinned. */
static int is_direct(const tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines)
{
    const char *last = lines->data + tgi_operand_lines_count_bytes(lines) - 1;
    return lines->line_count == 1 && lines->entry_count == 1 &&
           lines->elem_pitch == lines->elem_bytes &&
           tgi_cuda_find_memory(copies->machine, lines->data) == TGI_MEMORY_PINNED &&
           tgi_cuda_find_memory(copies->machine, last) == TGI_MEMORY_PINNED;
}

/* Returns the bytes of the next part, and moves the place behind it. */
static int64_t advance(const tgi_cuda_panel_copies *copies, tgi_cuda_out_place *place)
{
    const tgi_cuda_panel_out *out = &copies->out[place->panel % tgi_cuda_out_count];
    const int64_t total_bytes = tgi_operand_lines_count_bytes(&out->lines);
    const int64_t rest = total_bytes - place->offset;
    const int64_t bytes = rest < TGI_CUDA_STAGE_BYTES ? rest : TGI_CUDA_STAGE_BYTES;
    place->part++;
    place->offset += bytes;
    if (place->offset == total_bytes) {
        place->panel++;
        place->offset = 0;
    }
    return bytes;
}

/* Puts the next part on its way out, if there is one and a pinned block is free. */
static int issue_out(tgi_cuda_panel_copies *copies)
{
    const tgi_driver *driver = copies->driver;
    const tgi_cuda_out_place at = copies->issued;
    if (at.panel == copies->out_count || at.part - copies->done.part == OUT_COUNT)
        return 0;
    const int stage = IN_COUNT + (int)(at.part % OUT_COUNT);
    const tgi_cuda_panel_out *out = &copies->out[at.panel % tgi_cuda_out_count];
    const int64_t bytes = advance(copies, &copies->issued);
    int error = driver->make_stream_wait(copies->out_stream, out->ready, 0);
    if (!error)
        error = driver->copy_from_device(
            out->is_direct ? out->lines.data + at.offset : copies->staging->blocks[stage],
            (uint64_t)(uintptr_t)(out->memory + at.offset), (size_t)bytes, copies->out_stream);
    if (!error)
        error = driver->record_event(copies->staging->events[stage], copies->out_stream);
    return tgi_cuda_note_error(copies, error);
}

/* Finishes the first part that is on its way out, if it has come or is_waiting. */
static int finish_out(tgi_cuda_panel_copies *copies, int is_waiting)
{
    const tgi_driver *driver = copies->driver;
    const tgi_cuda_out_place at = copies->done;
    if (at.part == copies->issued.part)
        return 0;
    const int stage = IN_COUNT + (int)(at.part % OUT_COUNT);
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

/* Brings on what goes out, without waiting. Returns 0 if nothing could be done. */
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

/* Does as serve_out, and brings on the caller's work. */
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

/* Puts a part on its way in, when the pinned block that it takes has gone. `from` is the operand's
 * own memory, or NULL. */
static int issue_in(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines, int64_t offset,
                    int64_t bytes, const char *from, char *memory)
{
    const tgi_driver *driver = copies->driver;
    const int stage = (int)(copies->in_part++ % IN_COUNT);
    char *const block = copies->staging->blocks[stage];
    int error;
    while ((error = driver->query_event(copies->staging->events[stage])) ==
           TGI_CUDA_ERROR_NOT_READY) {
        if (!serve(copies))
            sched_yield();
    }
    if (!error && !from)
        tgi_operand_lines_move(lines, offset, bytes, block, 1, copies->thread_count);
    if (!error)
        error = driver->copy_to_device((uint64_t)(uintptr_t)(memory + offset), from ? from : block,
                                       (size_t)bytes, copies->in_stream);
    if (!error)
        error = driver->record_event(copies->staging->events[stage], copies->in_stream);
    return tgi_cuda_note_error(copies, error);
}

void tgi_cuda_copy_panel_in(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines,
                            char *memory)
{
    const int64_t total_bytes = tgi_operand_lines_count_bytes(lines);
    const char *own = total_bytes > 0 && is_direct(copies, lines) ? lines->data : NULL;
    for (int64_t offset = 0; offset < total_bytes && !copies->error;
         offset += TGI_CUDA_STAGE_BYTES) {
        const int64_t rest = total_bytes - offset;
        issue_in(copies, lines, offset, rest < TGI_CUDA_STAGE_BYTES ? rest : TGI_CUDA_STAGE_BYTES,
                 own ? own + offset : NULL, memory);
        serve(copies);
    }
}
