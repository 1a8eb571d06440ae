/* What the files of the wire share: the words of a buffer, and the links to ranks whose GPU this
 * one does not reach. What goes to such a rank is packed into parcels; a message of MPI says before
 * where each of them belongs. NCCL moves parcels from GPU to GPU, or MPI does by way of pinned
 * memory, which the call then waits for. */
#ifndef TGI_DIST_WIRE_LINKS_H
#define TGI_DIST_WIRE_LINKS_H

#include "dist_nccl.h"
#include "dist_wire.h"

/* Word 2 r of a buffer counts the pieces that rank r has put there. Word 2 r + 1 counts the calls
 * after which rank r has no more use for what this rank put into its buffer. */
enum { TGI_WORD_BYTES = sizeof(uint32_t) };

static inline uint64_t tgi_wire_find_word(const tgi_dist_wire *wire, int of, int by, int is_call)
{
    return wire->buffers[of] + (uint64_t)(2 * by + is_call) * TGI_WORD_BYTES;
}

/* Returns the status of a call of the driver. */
tg_status tgi_wire_check(const tgi_dist_wire *wire, int error, const char *what);

/* Makes the GPU's context current, and keeps the caller's. Returns the driver's error. */
int tgi_wire_switch_to_gpu(tgi_dist_wire *wire);

/* Opens the wire. Makes the buffers larger, when the last call, which used `stream` or an event of
 * which `stream` waits for, has ended. Both are collective: they return OK on all ranks or on none.
 */
tg_status tgi_wire_open(const tg_dist_grid *grid, tgi_dist_wire *wire,
                        const tg_device_info *device);
tg_status tgi_wire_grow(const tg_dist_grid *grid, tgi_dist_wire *wire, int64_t bytes, void *stream);

/* Waits for the end of the last call, unless a rank cannot go on. */
void tgi_wire_await_end(tgi_dist_wire *wire);

/* Ends a call with this rank's status, and all that is under way if one of the ranks failed.
 * Collective: returns OK on all ranks or on none. */
tg_status tgi_wire_agree_end(const tg_dist_grid *grid, tg_status status, void *stream);

/* Returns 1 if a rank has told that it cannot go on, or if NCCL has failed here, which is kept. */
int tgi_wire_has_fault(tgi_dist_wire *wire);

/* Returns 1 if a link leads to the rank. */
static inline int tgi_wire_is_linked(const tgi_dist_wire *wire, int rank)
{
    return wire->hosts[rank] != wire->hosts[wire->rank];
}

enum { TGI_LINK_SLOTS = 2, TGI_LINK_SLOT_BYTES = 4 << 20 };

/* The pieces of one post, and what they wait for. */
typedef struct tgi_link_message {
    tgi_dist_piece *pieces;
    int count, capacity;
    int event; /* the place among the events of the call */
    MPI_Request request;
} tgi_link_message;

/* A parcel's memory: pinned, or of the GPU if NCCL reads or writes it. */
typedef struct tgi_link_slot {
    void *memory;
    void *event; /* after the last copy from or to it */
    int64_t bytes;
    int is_copied; /* a copy to it is under way, and MPI sends it behind that */
    MPI_Request request;
} tgi_link_slot;

/* Where the next parcel of a message begins. */
typedef struct tgi_link_cursor {
    int piece;
    int64_t line, byte;
} tgi_link_cursor;

/* One direction of a link. */
typedef struct tgi_link_end {
    void *stream;
    void *nccl; /* the communicator of the sender, rank 0, and the receiver; NULL without NCCL */
    tgi_link_slot slots[TGI_LINK_SLOTS];
    int64_t parcel_count; /* of all calls */
} tgi_link_end;

typedef struct tgi_dist_link {
    int rank;
    tgi_link_end out, in;
    tgi_link_message *messages; /* of this call; those from message_count on are free */
    int message_count, message_capacity;
    int current; /* the message of which MPI sends parcels */
    tgi_link_cursor cursor;
} tgi_dist_link;

/* The links of a rank. */
struct tgi_dist_links {
    MPI_Comm comm;
    const tgi_nccl *nccl; /* NULL: MPI moves the parcels */
    tgi_dist_link *items;
    int count;
    void **events; /* the stream's work that what is put waits for */
    int event_count, event_capacity;
    int is_stopped; /* the linked ranks know that this call fails */
};

/* Makes `count` links, one to each rank that needs one. Without NCCL on all ranks, they are those
 * of MPI. tgi_links_connect then makes the communicators that NCCL lacks. Both are collective: they
 * return OK on all ranks or on none. */
tg_status tgi_links_open(const tg_dist_grid *grid, tgi_dist_wire *wire, const tgi_nccl *nccl,
                         int count);
tg_status tgi_links_connect(const tg_dist_grid *grid, tgi_dist_wire *wire);
void tgi_links_close(tgi_dist_wire *wire);

/* Ends what NCCL has under way, and the communicators. */
void tgi_links_abort(tgi_dist_links *links);

/* Do for linked ranks what the functions of dist_wire.h of these names do. */
void tgi_links_put(tgi_dist_wire *wire, int to, const tgi_dist_piece *piece);
void tgi_links_post(tgi_dist_wire *wire, int to);
void tgi_links_await(tgi_dist_wire *wire, int from, void *stream);
void tgi_links_follow(tgi_dist_wire *wire, void *stream);

/* Sends on what waits for a copy. Makes the stream wait for all that reads what was put. */
void tgi_links_flush(tgi_dist_wire *wire, void *stream);

/* Keeps a failure of NCCL, of which the other ranks do not know. Returns 1 if there is one. */
int tgi_links_check(tgi_dist_wire *wire);

/* Returns 1 if a linked rank has told that it cannot go on, or if NCCL has failed here. */
int tgi_links_have_fault(tgi_dist_wire *wire);

/* Tells the linked ranks that this one cannot go on. */
void tgi_links_stop(tgi_dist_wire *wire);

/* Ends a call on which all ranks agree, and empties the links if it failed. */
void tgi_links_finish(tgi_dist_wire *wire, tg_status status);

/* Takes the next parcel of the pieces: at most TGI_LINK_SLOT_BYTES. Returns 0 at their end. */
int tgi_link_take(const tgi_dist_piece *pieces, int count, tgi_link_cursor *cursor,
                  tgi_dist_piece *parcel);

/* Sends and receives the parcels of a message by way of pinned memory and MPI. What is sent must
 * wait for copies: tgi_staged_progress goes on with it, and is called while this rank waits.
 * tgi_staged_is_done returns 1 if MPI has got all. */
void tgi_staged_progress(tgi_dist_wire *wire);
int tgi_staged_is_done(const tgi_dist_wire *wire);
void tgi_staged_receive(tgi_dist_wire *wire, tgi_dist_link *link, const tgi_dist_piece *pieces,
                        int count);

/* Takes the next message with this tag from a rank, while what this one sends goes on. Returns 0 if
 * a rank cannot go on. */
int tgi_links_take(tgi_dist_wire *wire, int from, int tag, MPI_Message *message, int *bytes);

/* Keeps the first failure of a call. */
void tgi_wire_note(tgi_dist_wire *wire, int error, const char *what);

enum { TGI_TAG_PIECES, TGI_TAG_PARCEL, TGI_TAG_END, TGI_TAG_ID };

#endif
