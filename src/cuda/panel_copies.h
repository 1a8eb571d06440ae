/*
 * Copies between operands in the processor's memory and their panels on the device, on two streams
 * of their own, while other work goes on. They go through pinned blocks, which the calling thread
 * fills and empties with the help of others; a panel in pinned memory goes as it is, unless its
 * lines are short.
 */
#ifndef TGI_CUDA_PANEL_COPIES_H
#define TGI_CUDA_PANEL_COPIES_H

#include "cuda/runtime/device.h"
#include "model/machine.h"
#include "plan/operand_lines.h"
#include "plan/panel_time.h"

/* Most panels that are on their way out at once. */
enum { tgi_cuda_out_count = TGI_PANEL_D_MAX };

/* A panel on its way out. */
typedef struct tgi_cuda_panel_out {
    tgi_operand_lines lines;
    char *memory;  /* on the device */
    void *ready;   /* event after which it may go */
    int is_direct; /* 1: it goes to pinned memory as it is */
} tgi_cuda_panel_out;

/* The place of a part in the sequence of all that goes out. */
typedef struct tgi_cuda_out_place {
    int64_t panel, offset; /* bytes of the panel */
    int64_t part;          /* parts before it */
} tgi_cuda_out_place;

/* Brings on the caller's own work, without waiting. Returns 0 if nothing could be done. */
typedef int tgi_cuda_attend(void *state);

typedef struct tgi_cuda_panel_copies {
    tgi_cuda_attend *attend;
    void *state;
    const tgi_machine *machine;
    const tgi_driver *driver;
    tgi_cuda_staging *staging;
    void *in_stream, *out_stream;
    int thread_count;
    int64_t in_part; /* parts that went in */
    tgi_cuda_panel_out out[tgi_cuda_out_count];
    int64_t out_count;               /* panels that were told to go out */
    tgi_cuda_out_place issued, done; /* the next part to go, and to come */
    int error;                       /* the driver's first; nothing is copied after it */
} tgi_cuda_panel_copies;

/* Opens the streams and takes the device's pinned blocks. `attend` is called with `state` between
 * copies and while there is nothing to copy. The device's context is current. Call
 * tgi_cuda_close_copies after a failure too. */
tg_status tgi_cuda_open_copies(const tgi_machine *machine, tgi_cuda_attend *attend, void *state,
                               tgi_cuda_panel_copies *copies);

/* Closes them. After a failure copies may be under way, which are waited for. */
void tgi_cuda_close_copies(tgi_cuda_panel_copies *copies, int is_idle);

/* Keeps the first error of the driver. Returns 1 if there is none. */
int tgi_cuda_note_error(tgi_cuda_panel_copies *copies, int error);

/* Puts an operand on its way to `memory` on the device, behind what is in in_stream. */
void tgi_cuda_copy_panel_in(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines,
                            char *memory);

/* Tells that the panel at `memory` goes to the operand after the event. Fewer than
 * tgi_cuda_out_count panels are on their way. */
void tgi_cuda_copy_panel_out(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines,
                             char *memory, void *ready);

/* Returns the panels that are on their way out. */
static inline int64_t tgi_cuda_count_out(const tgi_cuda_panel_copies *copies)
{
    return copies->out_count - copies->done.panel;
}

/* Brings on what goes out and the caller's work. It waits for a part of D if there is nothing else
 * to do. */
void tgi_cuda_bring_on(tgi_cuda_panel_copies *copies);

#endif
