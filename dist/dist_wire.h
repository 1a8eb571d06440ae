/* A wire joins the GPUs of a grid's ranks. Each rank has a buffer in its GPU's memory. Ranks of its
 * host write to it by copies that take no multiprocessor. Words at its beginning count what has
 * come. Streams wait for the words, so that no processor takes part. What ranks of other hosts send
 * comes over links (dist_wire_links.h). */
#ifndef TGI_DIST_WIRE_H
#define TGI_DIST_WIRE_H

#include "cuda/runtime/driver.h"
#include "dist.h"

typedef struct tgi_dist_links tgi_dist_links;

/* Two halves of a buffer, which consecutive calls of one shape use alternately for what ranks
 * exchange. */
typedef struct tgi_dist_halves {
    int64_t first, second, end; /* bytes from the beginning of a buffer */
} tgi_dist_halves;

struct tgi_dist_wire {
    const tgi_driver *driver; /* NULL: the wire is not open */
    int device;
    char device_name[24]; /* "cuda:0" */
    void *gpu;            /* the device's primary context */
    void *caller;         /* the context that was current before a call */
    void *copies;         /* the stream that writes to the others */
    void *rescue;         /* a stream that waits for nothing */
    void *event;
    MPI_Comm comm;
    MPI_Comm host; /* the ranks whose GPUs this one reaches */
    MPI_Win window;
    volatile int *faults; /* of each rank: 1 if it cannot go on; the ranks of `host` see them */
    int *hosts;           /* of each rank: the first rank of its `host` */
    int rank, rank_count;
    tgi_dist_links *links;  /* to the other ranks; NULL if there are none */
    int64_t bytes;          /* of the buffer of each rank */
    uint64_t *buffers;      /* of the ranks of `host`, as this process sees them; else 0 */
    uint32_t *sent;         /* pieces that I have sent to each rank */
    uint32_t *awaited;      /* pieces of each rank that my streams have waited for */
    uint32_t call_count;    /* calls that have used the buffers */
    uint32_t told_count;    /* calls whose end the ranks of `host` know */
    tgi_dist_halves halves; /* of the last call; zeros if it had none */
    int has_same_halves;    /* this call has the halves of the last one */
    int is_broken;          /* the words are wrong, and all ranks know */
    int is_followed;        /* something may have been put in this call */
    int is_shown;           /* other ranks read this one's buffer in this call */
    tg_status status;       /* the first failure of this call on this rank */
};

/* A part of a matrix, lines of bytes, on its way to the buffer of a rank. */
typedef struct tgi_dist_piece {
    const void *from;
    int64_t from_pitch;
    int64_t to; /* bytes from the beginning of the rank's buffer, or of another place */
    int64_t to_pitch;
    int64_t line_bytes, line_count;
} tgi_dist_piece;

/* Returns INVALID_ARGUMENT if earlier calls of the grid used another device. */
tg_status tgi_dist_check_wire(const tg_dist_grid *grid, const tg_device_info *device);

/* Returns `bytes` rounded up: lines and matrices in a buffer begin at multiples of 256. */
static inline int64_t tgi_dist_round_up(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Returns the first byte of a buffer that is no word. */
int64_t tgi_dist_find_buffer_start(const tg_dist_grid *grid);

/* Begins a call with buffers of at least `bytes`, the same number on all ranks. Opens the wire if
 * no call has. The stream waits for the end of the last call. `halves` is NULL, or those of a call
 * in which each rank sends or shows every other one something that its stream has formed, awaits
 * theirs, and uses one half of the buffers alone. Such a call need not wait until the others have
 * read what they got in the last one: they have read that of the one before it, which had the same
 * half. Where there are links, all calls use the first one. Collective: returns OK on all ranks or
 * on none, and then the call has not begun. */
tg_status tgi_dist_enter_wire(const tg_dist_grid *grid, const tg_device_info *device, int64_t bytes,
                              const tgi_dist_halves *halves, void *stream);

/* Returns the place of the half that this call uses, or `first` if it has no halves. */
int64_t tgi_dist_find_half(const tgi_dist_wire *wire, int64_t first);

/* Puts a piece on its way to a rank, which may be this one, after a call of tgi_dist_follow. This
 * function and those below keep the first failure, after which they do nothing;
 * tgi_dist_leave_wire returns it. */
void tgi_dist_put(tgi_dist_wire *wire, int to, const tgi_dist_piece *piece);

/* Copies a piece in `stream`, to memory that begins at `base`. */
void tgi_dist_copy(tgi_dist_wire *wire, void *base, const tgi_dist_piece *piece, void *stream);

/* What is put from now on waits for the work of `stream` so far. */
void tgi_dist_follow(tgi_dist_wire *wire, void *stream);

/* Counts what was put to a rank since the last call of this function as one more piece. */
void tgi_dist_post(tgi_dist_wire *wire, int to);

/* Returns the buffer of a rank if kernels of this one read it where it is; else NULL. */
char *tgi_dist_reach(const tgi_dist_wire *wire, int rank);

/* Counts what the stream has written to this rank's buffer as one more piece of a rank that reads
 * it there. */
void tgi_dist_show(tgi_dist_wire *wire, int to, void *stream);

/* Makes the stream wait for the next piece of a rank. */
void tgi_dist_await(tgi_dist_wire *wire, int from, void *stream);

/* Ends a call with this rank's status. `stream` has read what came to the buffer; its later work
 * waits for what was put. If is_waiting, the work of the stream is done on return. Collective:
 * returns OK on all ranks or on none. */
tg_status tgi_dist_leave_wire(const tg_dist_grid *grid, tg_status status, void *stream,
                              int is_waiting);

/* Closes the wire. Collective. */
void tgi_dist_close_wire(tgi_dist_wire *wire);

#endif
