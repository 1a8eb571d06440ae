/* Sends messages over links, and parcels by NCCL. */
#include <sched.h>
#include <stdlib.h>

#include "dist_wire_links.h"

static tgi_dist_link *find_link(const tgi_dist_wire *wire, int rank)
{
    tgi_dist_link *link = wire->links->items;
    while (link->rank != rank)
        link++;
    return link;
}

int tgi_link_take(const tgi_dist_piece *pieces, int count, tgi_link_cursor *cursor,
                  tgi_dist_piece *parcel)
{
    if (cursor->piece == count)
        return 0;
    const tgi_dist_piece *piece = &pieces[cursor->piece];
    const int64_t lines = TGI_LINK_SLOT_BYTES / piece->line_bytes;
    const int64_t line_rest = piece->line_count - cursor->line;
    *parcel = *piece;
    parcel->from = (const char *)piece->from + cursor->line * piece->from_pitch + cursor->byte;
    parcel->to += cursor->line * piece->to_pitch + cursor->byte;
    if (lines > 0) {
        parcel->line_count = line_rest < lines ? line_rest : lines;
        cursor->line += parcel->line_count;
    } else { /* a part of one line */
        const int64_t rest = piece->line_bytes - cursor->byte;
        parcel->line_count = 1;
        parcel->line_bytes = rest < TGI_LINK_SLOT_BYTES ? rest : TGI_LINK_SLOT_BYTES;
        cursor->byte += parcel->line_bytes;
        if (cursor->byte == piece->line_bytes) {
            cursor->byte = 0;
            cursor->line++;
        }
    }
    if (cursor->line == piece->line_count)
        *cursor = (tgi_link_cursor){.piece = cursor->piece + 1};
    return 1;
}

/* Keeps the failure of a call of NCCL or MPI. */
static void keep(tgi_dist_wire *wire, tg_status status)
{
    if (!wire->status)
        wire->status = status;
}

/* Returns the message that is being put together, or NULL without memory. */
static tgi_link_message *open_message(tgi_dist_wire *wire, tgi_dist_link *link)
{
    if (link->message_count == link->message_capacity) {
        const int capacity = 2 * link->message_capacity + 4;
        tgi_link_message *messages =
            realloc(link->messages, (size_t)capacity * sizeof *link->messages);
        if (!messages) {
            keep(wire,
                 tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for %d messages", capacity));
            return NULL;
        }
        for (int i = link->message_capacity; i < capacity; i++)
            messages[i] = (tgi_link_message){.request = MPI_REQUEST_NULL};
        link->messages = messages;
        link->message_capacity = capacity;
    }
    return &link->messages[link->message_count];
}

void tgi_links_put(tgi_dist_wire *wire, int to, const tgi_dist_piece *piece)
{
    if (wire->status || !piece->line_bytes || !piece->line_count)
        return;
    tgi_link_message *message = open_message(wire, find_link(wire, to));
    if (message && message->count == message->capacity) {
        const int capacity = 2 * message->capacity + 4;
        tgi_dist_piece *pieces =
            realloc(message->pieces, (size_t)capacity * sizeof *message->pieces);
        if (!pieces) {
            keep(wire, tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for %d pieces", capacity));
            return;
        }
        message->pieces = pieces;
        message->capacity = capacity;
    }
    if (message)
        message->pieces[message->count++] = *piece;
}

/* Packs parcels and sends them by NCCL, in the order of the link's stream. */
static void send_by_nccl(tgi_dist_wire *wire, tgi_dist_link *link, const tgi_link_message *message)
{
    const tgi_nccl *nccl = wire->links->nccl;
    tgi_link_end *end = &link->out;
    tgi_link_cursor cursor = {0};
    tgi_dist_piece parcel;
    tgi_wire_note(
        wire, wire->driver->make_stream_wait(end->stream, wire->links->events[message->event], 0),
        "a stream cannot wait for an event");
    while (!wire->status && tgi_link_take(message->pieces, message->count, &cursor, &parcel)) {
        parcel.to = 0;
        parcel.to_pitch = parcel.line_bytes;
        tgi_dist_copy(wire, end->slots[0].memory, &parcel, end->stream);
        if (!wire->status)
            keep(wire, tgi_nccl_check(nccl,
                                      nccl->send(end->slots[0].memory,
                                                 (size_t)(parcel.line_bytes * parcel.line_count),
                                                 TGI_NCCL_INT8, 1, end->nccl, end->stream),
                                      "a parcel is not sent"));
    }
}

void tgi_links_post(tgi_dist_wire *wire, int to)
{
    tgi_dist_link *link = find_link(wire, to);
    tgi_link_message *message = wire->status ? NULL : open_message(wire, link);
    if (!message)
        return;
    message->event = wire->links->event_count - 1;
    keep(wire, tgi_dist_check_mpi(
                   MPI_Isend(message->pieces, message->count * (int)sizeof *message->pieces,
                             MPI_BYTE, to, TGI_TAG_PIECES, wire->links->comm, &message->request)));
    link->message_count++;
    if (wire->links->nccl)
        send_by_nccl(wire, link, message);
    else
        tgi_staged_progress(wire);
}

/* Takes parcels that NCCL brings to their places. */
static void receive_by_nccl(tgi_dist_wire *wire, tgi_dist_link *link, const tgi_dist_piece *pieces,
                            int count)
{
    const tgi_nccl *nccl = wire->links->nccl;
    tgi_link_end *end = &link->in;
    tgi_link_cursor cursor = {0};
    tgi_dist_piece parcel;
    while (!wire->status && tgi_link_take(pieces, count, &cursor, &parcel)) {
        keep(wire, tgi_nccl_check(nccl,
                                  nccl->receive(end->slots[0].memory,
                                                (size_t)(parcel.line_bytes * parcel.line_count),
                                                TGI_NCCL_INT8, 0, end->nccl, end->stream),
                                  "a parcel is not received"));
        parcel.from = end->slots[0].memory;
        parcel.from_pitch = parcel.line_bytes;
        tgi_dist_copy(wire, (void *)(uintptr_t)wire->buffers[wire->rank], &parcel, end->stream);
    }
}

int tgi_links_take(tgi_dist_wire *wire, int from, int tag, MPI_Message *message, int *bytes)
{
    MPI_Status found;
    int is_there = 0;
    /* A message that is found is taken, or the rank that sends it would wait for ever. */
    while (!wire->status) {
        keep(wire, tgi_dist_check_mpi(
                       MPI_Improbe(from, tag, wire->links->comm, &is_there, message, &found)));
        if (!wire->status && is_there) {
            MPI_Get_count(&found, MPI_BYTE, bytes);
            return 1;
        }
        if (tgi_wire_has_fault(wire))
            break;
        tgi_staged_progress(wire);
        sched_yield();
    }
    return 0;
}

void tgi_links_await(tgi_dist_wire *wire, int from, void *stream)
{
    tgi_dist_link *link = find_link(wire, from);
    MPI_Message message;
    int bytes;
    if (wire->status || !tgi_links_take(wire, from, TGI_TAG_PIECES, &message, &bytes))
        return;
    tgi_dist_piece *pieces = malloc((size_t)bytes + 1);
    if (!pieces) {
        keep(wire,
             tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for a message of %d bytes", bytes));
        pieces = NULL;
        bytes = 0;
    }
    keep(wire, tgi_dist_check_mpi(MPI_Mrecv(pieces, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE)));
    const int count = bytes / (int)sizeof *pieces;
    if (!wire->status && wire->links->nccl)
        receive_by_nccl(wire, link, pieces, count);
    else if (!wire->status)
        tgi_staged_receive(wire, link, pieces, count);
    free(pieces);
    if (!wire->status)
        tgi_wire_note(wire, wire->driver->record_event(link->in.slots[0].event, link->in.stream),
                      "an event is not recorded");
    if (!wire->status)
        tgi_wire_note(wire, wire->driver->make_stream_wait(stream, link->in.slots[0].event, 0),
                      "a stream cannot wait for an event");
}

void tgi_links_follow(tgi_dist_wire *wire, void *stream)
{
    const tgi_driver *driver = wire->driver;
    tgi_dist_links *links = wire->links;
    if (links->event_count == links->event_capacity) {
        void **events = realloc(links->events, ((size_t)links->event_count + 1) * sizeof *events);
        if (!events) {
            keep(wire, tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for %d events",
                                     links->event_count + 1));
            return;
        }
        links->events = events;
        tgi_wire_note(wire,
                      driver->create_event(&events[links->event_count], TGI_CUDA_EVENT_NO_TIMING),
                      "no event");
        if (wire->status)
            return;
        links->event_capacity++;
    }
    tgi_wire_note(wire, driver->record_event(links->events[links->event_count], stream),
                  "an event is not recorded");
    /* What comes follows the last call, which has read the buffer. */
    for (int i = 0; i < links->count && links->event_count == 0 && !wire->status; i++)
        tgi_wire_note(wire,
                      driver->make_stream_wait(links->items[i].in.stream, links->events[0], 0),
                      "a stream cannot wait for an event");
    links->event_count++;
}

void tgi_links_flush(tgi_dist_wire *wire, void *stream)
{
    const tgi_driver *driver = wire->driver;
    tgi_dist_links *links = wire->links;
    while (!links->nccl && !wire->status && !tgi_staged_is_done(wire) &&
           !tgi_wire_has_fault(wire)) {
        tgi_staged_progress(wire);
        sched_yield();
    }
    for (int i = 0; i < links->count && links->nccl && !wire->status; i++) {
        tgi_link_end *end = &links->items[i].out;
        tgi_wire_note(wire, driver->record_event(end->slots[0].event, end->stream),
                      "an event is not recorded");
        if (!wire->status)
            tgi_wire_note(wire, driver->make_stream_wait(stream, end->slots[0].event, 0),
                          "a stream cannot wait for an event");
    }
}

int tgi_links_check(tgi_dist_wire *wire)
{
    const tgi_dist_links *links = wire->links;
    int error = 0;
    for (int i = 0; i < 2 * links->count && links->nccl && !error; i++) {
        const tgi_dist_link *link = &links->items[i / 2];
        void *comm = i % 2 ? link->in.nccl : link->out.nccl;
        if (comm)
            links->nccl->get_error(comm, &error);
    }
    if (error)
        keep(wire, tgi_nccl_check(links->nccl, error, "a link between two GPUs failed"));
    return error != 0;
}

int tgi_links_have_fault(tgi_dist_wire *wire)
{
    int has_fault = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, TGI_TAG_END, wire->links->comm, &has_fault, MPI_STATUS_IGNORE);
    return has_fault || tgi_links_check(wire);
}

void tgi_links_stop(tgi_dist_wire *wire)
{
    tgi_dist_links *links = wire->links;
    for (int i = 0; i < links->count && !links->is_stopped; i++) {
        MPI_Request request;
        MPI_Isend(NULL, 0, MPI_BYTE, links->items[i].rank, TGI_TAG_END, links->comm, &request);
        MPI_Request_free(&request);
    }
    links->is_stopped = 1;
}

void tgi_links_abort(tgi_dist_links *links)
{
    for (int i = 0; i < 2 * links->count && links->nccl; i++) {
        tgi_dist_link *link = &links->items[i / 2];
        void **comm = i % 2 ? &link->in.nccl : &link->out.nccl;
        if (*comm)
            links->nccl->abort(*comm);
        *comm = NULL;
    }
}

/* Takes what a rank has sent until it stopped. Nothing is kept. */
static void drain(const tgi_dist_links *links, int rank)
{
    int bytes = 0;
    for (int tag = TGI_TAG_PIECES; tag != TGI_TAG_END;) {
        MPI_Message message;
        MPI_Status found;
        MPI_Mprobe(rank, MPI_ANY_TAG, links->comm, &message, &found);
        MPI_Get_count(&found, MPI_BYTE, &bytes);
        char *taken = malloc((size_t)bytes + 1);
        if (!taken) /* the other ranks would wait for ever */
            MPI_Abort(links->comm, 1);
        MPI_Mrecv(taken, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        free(taken);
        tag = found.MPI_TAG;
    }
}

void tgi_links_finish(tgi_dist_wire *wire, tg_status status)
{
    tgi_dist_links *links = wire->links;
    if (status) {
        tgi_links_stop(wire);
        tgi_links_abort(links);
        for (int i = 0; i < links->count; i++)
            drain(links, links->items[i].rank);
    }
    for (int i = 0; i < links->count; i++) {
        tgi_dist_link *link = &links->items[i];
        for (int j = 0; j < TGI_LINK_SLOTS; j++) {
            MPI_Wait(&link->out.slots[j].request, MPI_STATUS_IGNORE);
            link->out.slots[j].is_copied = 0;
        }
        /* A message that was not posted is dropped too. */
        for (int j = 0; j < link->message_capacity; j++) {
            MPI_Wait(&link->messages[j].request, MPI_STATUS_IGNORE);
            link->messages[j].count = 0;
        }
        link->message_count = link->current = 0;
        link->cursor = (tgi_link_cursor){0};
    }
    links->event_count = links->is_stopped = 0;
}
