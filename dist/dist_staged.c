/* Sends parcels by way of pinned memory and MPI. Two slots of a link are in use at once: one is
 * copied while the other is sent. */
#include "dist_wire_links.h"

/* Hands MPI what has been copied, in order. */
static void send_copied(tgi_dist_wire *wire, tgi_dist_link *link)
{
    tgi_link_end *end = &link->out;
    for (int i = 0; i < TGI_LINK_SLOTS && !wire->status; i++) {
        tgi_link_slot *slot = &end->slots[(end->parcel_count + i) % TGI_LINK_SLOTS];
        if (slot->request != MPI_REQUEST_NULL) {
            int is_sent;
            MPI_Test(&slot->request, &is_sent, MPI_STATUS_IGNORE);
        }
        if (!slot->is_copied)
            continue;
        const int error = wire->driver->query_event(slot->event);
        if (error == TGI_CUDA_ERROR_NOT_READY)
            break;
        tgi_wire_note(wire, error, "a copy to pinned memory failed");
        if (wire->status)
            break;
        slot->is_copied = 0;
        wire->status =
            tgi_dist_check_mpi(MPI_Isend(slot->memory, (int)slot->bytes, MPI_BYTE, link->rank,
                                         TGI_TAG_PARCEL, wire->links->comm, &slot->request));
    }
}

/* Starts copies to the slots that are free. */
static void start_copies(tgi_dist_wire *wire, tgi_dist_link *link)
{
    const tgi_driver *driver = wire->driver;
    tgi_link_end *end = &link->out;
    while (link->current < link->message_count && !wire->status) {
        const tgi_link_message *message = &link->messages[link->current];
        tgi_link_slot *slot = &end->slots[end->parcel_count % TGI_LINK_SLOTS];
        tgi_dist_piece parcel;
        if (slot->is_copied || slot->request != MPI_REQUEST_NULL)
            return;
        if (!tgi_link_take(message->pieces, message->count, &link->cursor, &parcel)) {
            link->current++;
            link->cursor = (tgi_link_cursor){0};
            continue;
        }
        tgi_wire_note(wire,
                      driver->make_stream_wait(end->stream, wire->links->events[message->event], 0),
                      "a stream cannot wait for an event");
        parcel.to = 0;
        parcel.to_pitch = parcel.line_bytes;
        tgi_dist_copy(wire, slot->memory, &parcel, end->stream);
        if (!wire->status)
            tgi_wire_note(wire, driver->record_event(slot->event, end->stream),
                          "an event is not recorded");
        slot->bytes = parcel.line_bytes * parcel.line_count;
        slot->is_copied = 1;
        end->parcel_count++;
    }
}

void tgi_staged_progress(tgi_dist_wire *wire)
{
    const tgi_dist_links *links = wire->links;
    for (int i = 0; i < links->count && !links->nccl; i++) {
        send_copied(wire, &links->items[i]);
        start_copies(wire, &links->items[i]);
    }
}

int tgi_staged_is_done(const tgi_dist_wire *wire)
{
    for (int i = 0; i < wire->links->count; i++) {
        const tgi_dist_link *link = &wire->links->items[i];
        if (link->current < link->message_count)
            return 0;
        for (int j = 0; j < TGI_LINK_SLOTS; j++)
            if (link->out.slots[j].is_copied)
                return 0;
    }
    return 1;
}

void tgi_staged_receive(tgi_dist_wire *wire, tgi_dist_link *link, const tgi_dist_piece *pieces,
                        int count)
{
    const tgi_driver *driver = wire->driver;
    tgi_link_end *end = &link->in;
    tgi_link_cursor cursor = {0};
    tgi_dist_piece parcel;
    MPI_Message message;
    int bytes;
    while (!wire->status && tgi_link_take(pieces, count, &cursor, &parcel) &&
           tgi_links_take(wire, link->rank, TGI_TAG_PARCEL, &message, &bytes)) {
        tgi_link_slot *slot = &end->slots[end->parcel_count++ % TGI_LINK_SLOTS];
        tgi_wire_note(wire, driver->wait_for_event(slot->event), "a copy failed");
        const tg_status taken = tgi_dist_check_mpi(
            MPI_Mrecv(slot->memory, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        if (!wire->status)
            wire->status = taken;
        parcel.from = slot->memory;
        parcel.from_pitch = parcel.line_bytes;
        tgi_dist_copy(wire, (void *)(uintptr_t)wire->buffers[wire->rank], &parcel, end->stream);
        if (!wire->status)
            tgi_wire_note(wire, driver->record_event(slot->event, end->stream),
                          "an event is not recorded");
    }
}
