/* How links are made and released. */
#include <stdlib.h>
#include <string.h>

#include "dist_wire_links.h"

static int prepare_end(const tgi_dist_wire *wire, tgi_link_end *end)
{
    const tgi_driver *driver = wire->driver;
    const int slot_count = wire->links->nccl ? 1 : TGI_LINK_SLOTS;
    int error = driver->create_stream(&end->stream, TGI_CUDA_STREAM_NON_BLOCKING);
    for (int i = 0; i < TGI_LINK_SLOTS; i++)
        end->slots[i].request = MPI_REQUEST_NULL;
    for (int i = 0; i < slot_count && !error; i++) {
        tgi_link_slot *slot = &end->slots[i];
        uint64_t memory = 0;
        if (!wire->links->nccl) {
            error = driver->allocate_pinned(&slot->memory, TGI_LINK_SLOT_BYTES, 0);
        } else {
            error = driver->allocate(&memory, TGI_LINK_SLOT_BYTES);
            slot->memory = (void *)(uintptr_t)memory;
        }
        if (!error)
            error = driver->create_event(&slot->event, TGI_CUDA_EVENT_NO_TIMING);
    }
    return error;
}

static void release_end(const tgi_dist_wire *wire, tgi_link_end *end)
{
    const tgi_driver *driver = wire->driver;
    for (int i = 0; i < TGI_LINK_SLOTS; i++) {
        tgi_link_slot *slot = &end->slots[i];
        if (slot->memory && wire->links->nccl)
            driver->release((uint64_t)(uintptr_t)slot->memory);
        else if (slot->memory)
            driver->release_pinned(slot->memory);
        if (slot->event)
            driver->destroy_event(slot->event);
    }
    if (end->stream)
        driver->destroy_stream(end->stream);
}

/* Returns an end of a link: all ends in the order of the pairs' lower ranks, then of the higher
 * ones, from the lower rank first. Both ranks of an end must be at it, or both would wait. */
static tgi_link_end *find_end(const tgi_dist_wire *wire, int number, int *is_out)
{
    tgi_dist_link *link = &wire->links->items[number / 2];
    *is_out = (link->rank > wire->rank) == (number % 2 == 0);
    return *is_out ? &link->out : &link->in;
}

/* Makes the links of this rank. */
static tg_status make_links(tgi_dist_wire *wire, const tgi_nccl *nccl, int count)
{
    tgi_dist_links *links = calloc(1, sizeof *links);
    if (!links)
        return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for %d links", count);
    *links = (tgi_dist_links){.comm = MPI_COMM_NULL, .nccl = nccl};
    wire->links = links;
    links->items = calloc((size_t)count, sizeof *links->items);
    if (!links->items)
        return tgi_dist_fail(TG_STATUS_OUT_OF_MEMORY, "no memory for %d links", count);
    int error = 0;
    for (int i = 0; i < wire->rank_count && !error; i++) {
        if (!tgi_wire_is_linked(wire, i))
            continue;
        tgi_dist_link *link = &links->items[links->count++];
        link->rank = i;
        error = prepare_end(wire, &link->out);
        if (!error)
            error = prepare_end(wire, &link->in);
    }
    return tgi_wire_check(wire, error, "no memory or streams for links to other hosts");
}

tg_status tgi_links_open(const tg_dist_grid *grid, tgi_dist_wire *wire, const tgi_nccl *nccl,
                         int count)
{
    int has_nccl = nccl != NULL;
    if (count == 0)
        return TG_STATUS_OK;
    tg_status status =
        tgi_dist_check_mpi(MPI_Allreduce(MPI_IN_PLACE, &has_nccl, 1, MPI_INT, MPI_MIN, wire->comm));
    if (!status)
        status = make_links(wire, has_nccl ? nccl : NULL, count);
    status = tgi_dist_agree(grid, status);
    if (!status)
        status =
            tgi_dist_agree(grid, tgi_dist_check_mpi(MPI_Comm_dup(wire->comm, &wire->links->comm)));
    return status;
}

/* Sends one byte. NCCL joins the GPUs at the first message, and both ranks must be at it: in a
 * product each would wait for the other with what it sends. */
static tg_status send_first(const tgi_dist_wire *wire, const tgi_link_end *end, int is_out)
{
    const tgi_nccl *nccl = wire->links->nccl;
    const int error =
        is_out ? nccl->send(end->slots[0].memory, 1, TGI_NCCL_INT8, 1, end->nccl, end->stream)
               : nccl->receive(end->slots[0].memory, 1, TGI_NCCL_INT8, 0, end->nccl, end->stream);
    const tg_status status = tgi_nccl_check(nccl, error, "no first message between two GPUs");
    return status ? status
                  : tgi_wire_check(wire, wire->driver->wait_for_stream(end->stream),
                                   "the first message of NCCL failed");
}

/* Makes the communicator of one direction between two ranks, of which this one is the sender if
 * is_out. The receiver learns that the sender has none from an identity of zeros. */
static tg_status connect_end(const tgi_dist_wire *wire, int other, tgi_link_end *end, int is_out)
{
    static const tgi_nccl_id none;
    const tgi_nccl *nccl = wire->links->nccl;
    tgi_nccl_id id = none;
    tg_status status = TG_STATUS_OK;
    if (is_out) {
        status = tgi_nccl_check(nccl, nccl->get_id(&id), "no identity of a communicator");
        id = status ? none : id;
        MPI_Send(&id, sizeof id, MPI_BYTE, other, TGI_TAG_ID, wire->links->comm);
    } else {
        MPI_Recv(&id, sizeof id, MPI_BYTE, other, TGI_TAG_ID, wire->links->comm, MPI_STATUS_IGNORE);
    }
    if (memcmp(&id, &none, sizeof id) == 0)
        return status ? status
                      : tgi_dist_fail(TG_STATUS_DEVICE_FAILURE,
                                      "NCCL does not join ranks %d and %d", wire->rank, other);
    status = tgi_nccl_check(nccl, nccl->open(&end->nccl, 2, id, is_out ? 0 : 1),
                            "no communicator of two GPUs");
    return status ? status : send_first(wire, end, is_out);
}

tg_status tgi_links_connect(const tg_dist_grid *grid, tgi_dist_wire *wire)
{
    tg_status status = TG_STATUS_OK;
    if (!wire->links || !wire->links->nccl)
        return TG_STATUS_OK;
    /* The other ranks wait for this one after a failure too. */
    for (int i = 0; i < 2 * wire->links->count; i++) {
        int is_out;
        tgi_link_end *end = find_end(wire, i, &is_out);
        if (end->nccl)
            continue;
        const tg_status connected = connect_end(wire, wire->links->items[i / 2].rank, end, is_out);
        status = status ? status : connected;
    }
    status = tgi_dist_agree(grid, status);
    if (status) /* the next call makes all of them: one that only one rank has would make it wait */
        tgi_links_abort(wire->links);
    return status;
}

void tgi_links_close(tgi_dist_wire *wire)
{
    tgi_dist_links *links = wire->links;
    if (!links)
        return;
    for (int i = 0; i < 2 * links->count; i++) {
        int is_out;
        const tgi_link_end *end = find_end(wire, i, &is_out);
        if (end->stream)
            wire->driver->wait_for_stream(end->stream);
        if (end->nccl)
            links->nccl->close(end->nccl);
    }
    for (int i = 0; i < links->count; i++) {
        tgi_dist_link *link = &links->items[i];
        release_end(wire, &link->out);
        release_end(wire, &link->in);
        for (int j = 0; j < link->message_capacity; j++)
            free(link->messages[j].pieces);
        free(link->messages);
    }
    for (int i = 0; i < links->event_capacity; i++)
        wire->driver->destroy_event(links->events[i]);
    if (links->comm != MPI_COMM_NULL)
        MPI_Comm_free(&links->comm);
    free(links->events);
    free(links->items);
    free(links);
    wire->links = NULL;
}
