/*
 * Copies between operands in the processor's memory and their panels on the device, on two streams
 * of their own, while other work goes on. Pageable memory goes through pinned blocks, which the
 * calling thread fills and empties; pinned memory goes as it is.
 */
#ifndef TGI_CUDA_PANEL_COPIES_H
#define TGI_CUDA_PANEL_COPIES_H

#include "cuda/runtime/device.h"
#include "model/machine.h"
#include "plan/operand_lines.h"

/* Most panels that are on their way out at once. */
enum { tgi_cuda_out_count = 2 };

/* A panel on its way out. */
typedef struct tgi_cuda_panel_out {
    tgi_operand_lines lines;
    char *memory; /* on the device */
    void *ready;  /* event after which it may go */
    int64_t part_bytes;
} tgi_cuda_panel_out;

/* The place of a part in the sequence of all that goes out. */
typedef struct tgi_cuda_out_place {
    int64_t panel, offset; /* bytes of the panel */
    int64_t part;          /* parts before it */
} tgi_cuda_out_place;

typedef struct tgi_cuda_panel_copies {
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

/* Opens the streams and takes the device's pinned blocks. The device's context is current. Call
 * tgi_cuda_close_copies after a failure too. */
tg_status tgi_cuda_open_copies(const tgi_machine *machine, tgi_cuda_panel_copies *copies);

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

/* Waits until fewer than `count` panels are on their way out. */
void tgi_cuda_wait_for_out(tgi_cuda_panel_copies *copies, int64_t count);

#endif
