/*
 * Copies panels between operands in the processor's memory and the device, on two streams of their
 * own, while other work goes on. Panels go through pinned blocks, which the calling thread and
 * other threads fill and empty. A panel in pinned memory is copied directly unless its lines are
 * short.
 */
#ifndef TGI_CUDA_PANEL_COPIES_H
#define TGI_CUDA_PANEL_COPIES_H

#include "cuda/runtime/device.h"
#include "model/machine.h"
#include "plan/operand_lines.h"
#include "plan/panel_time.h"

/* The most panels that are being copied out at once. */
enum { tgi_cuda_out_count = TGI_PANEL_D_MAX };

/* A tgi_cuda_panel_out is a panel that is being copied out. */
typedef struct tgi_cuda_panel_out {
    tgi_operand_lines lines;
    char *memory;  /* the panel on the device */
    void *ready;   /* event after which it may be copied */
    int is_direct; /* 1: it is copied without a pinned block */
} tgi_cuda_panel_out;

/* A tgi_cuda_out_place is the place of a piece in the sequence of all that is copied out. */
typedef struct tgi_cuda_out_place {
    int64_t panel, offset; /* number of the panel, and byte offset in it */
    int64_t piece;         /* number of pieces before it */
} tgi_cuda_out_place;

/* Continues the caller's own work without waiting. Returns 0 if nothing could be done. */
typedef int tgi_cuda_attend(void *state);

typedef struct tgi_cuda_panel_copies {
    tgi_cuda_attend *attend;
    void *state;
    const tgi_machine *machine;
    const tgi_driver *driver;
    tgi_cuda_staging *staging;
    void *in_stream, *out_stream;
    int thread_count;
    int64_t in_piece; /* pieces that were copied in */
    tgi_cuda_panel_out out[tgi_cuda_out_count];
    int64_t out_count;               /* panels that were passed to copy_panel_out */
    tgi_cuda_out_place issued, done; /* the next piece to start, and to finish */
    int error;                       /* first error of the driver, after which nothing is copied */
} tgi_cuda_panel_copies;

/* Opens the streams and takes the device's pinned blocks. `attend` is called with `state` between
 * copies and while there is nothing to copy. The device's context is current. Call
 * tgi_cuda_close_copies after a failure too. */
tg_status tgi_cuda_open_copies(const tgi_machine *machine, tgi_cuda_attend *attend, void *state,
                               tgi_cuda_panel_copies *copies);

/* Closes the streams and gives back the pinned blocks. If is_idle is 0, copies may still be under
 * way after a failure, and are waited for. */
void tgi_cuda_close_copies(tgi_cuda_panel_copies *copies, int is_idle);

/* Keeps the first error of the driver. Returns 1 if there is none. */
int tgi_cuda_note_error(tgi_cuda_panel_copies *copies, int error);

/* Starts to copy an operand to `memory` on the device, behind the work in in_stream. */
void tgi_cuda_copy_panel_in(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines,
                            char *memory);

/* Starts to copy the panel at `memory` to the operand once the event has occurred. Fewer than
 * tgi_cuda_out_count panels are being copied out. */
void tgi_cuda_copy_panel_out(tgi_cuda_panel_copies *copies, const tgi_operand_lines *lines,
                             char *memory, void *ready);

/* Returns the number of panels that are being copied out. */
static inline int64_t tgi_cuda_count_out(const tgi_cuda_panel_copies *copies)
{
    return copies->out_count - copies->done.panel;
}

/* Continues copies out and the caller's work. If there is nothing else to do, it waits for a piece
 * of D. */
void tgi_cuda_bring_on(tgi_cuda_panel_copies *copies);

#endif
