/* SPDX-License-Identifier: MIT */
#include "fake_streams.h"

#include <stdlib.h>
#include <string.h>

typedef struct fake_event {
    int64_t recorded, completed; /* numbers of records, in streams and done */
    int query_count;
} fake_event;

typedef enum work_kind { WORK_COPY, WORK_LAUNCH, WORK_RECORD, WORK_WAIT } work_kind;

typedef struct work {
    work_kind kind;
    int is_done;
    void *stream;
    void *to;
    const void *from; /* bytes of a copy, or a launch's own copy of its argument */
    size_t bytes;
    fake_event *event;
    int64_t number; /* the number of a record, or of the one that is waited for */
} work;

/* Deferred work of all streams, in the order of the calls. */
static struct {
    work *items;
    int64_t count, capacity;
} queue;

static void finish_event(const fake_event *event, int64_t number);

static void do_work(const work *item)
{
    switch (item->kind) {
    case WORK_COPY:
        memcpy(item->to, item->from, item->bytes);
        break;
    case WORK_LAUNCH:
        fake_get_driver()->compute(item->from);
        break;
    case WORK_RECORD:
        item->event->completed = item->number;
        break;
    case WORK_WAIT:
        finish_event(item->event, item->number);
        break;
    }
}

/* Does the work of one stream up to queue.items[last]. */
static void finish_stream_up_to(int64_t last)
{
    void *const stream = queue.items[last].stream;
    for (int64_t i = 0; i <= last; i++) {
        work *item = &queue.items[i];
        if (item->is_done || item->stream != stream)
            continue;
        item->is_done = 1;
        do_work(item);
        if (item->kind == WORK_LAUNCH)
            free((void *)(uintptr_t)item->from);
    }
}

/* Does the work that a record of an event comes behind, if it is still to do. */
static void finish_event(const fake_event *event, int64_t number)
{
    for (int64_t i = 0; i < queue.count && event->completed < number; i++) {
        const work *item = &queue.items[i];
        if (item->kind == WORK_RECORD && item->event == event && item->number == number)
            finish_stream_up_to(i);
    }
}

void fake_finish_streams(void)
{
    for (int64_t i = 0; i < queue.count; i++) {
        if (!queue.items[i].is_done)
            finish_stream_up_to(i);
    }
    queue.count = 0;
}

/* Does the work at once, or keeps it until somebody waits for it. is_in is 1 for a copy to the
 * device. */
static int put_at(work item, int is_in)
{
    if (!fake_get_driver()->is_deferred) {
        do_work(&item);
        return 0;
    }
    if (queue.count == queue.capacity) {
        queue.capacity = 2 * queue.capacity + 64;
        queue.items = realloc(queue.items, (size_t)queue.capacity * sizeof *queue.items);
        if (!queue.items)
            abort();
    }
    if (item.kind == WORK_LAUNCH) {
        const size_t argument_bytes = fake_get_driver()->argument_bytes;
        void *argument = malloc(argument_bytes);
        if (!argument)
            abort();
        item.from = memcpy(argument, item.from, argument_bytes);
    }
    queue.items[queue.count++] = item;
    if (fake_get_driver()->is_deferred == 2 && is_in)
        finish_stream_up_to(queue.count - 1);
    return 0;
}

static int put(work item)
{
    return put_at(item, 0);
}

void fake_put_launch(void *stream, const void *argument)
{
    put((work){.kind = WORK_LAUNCH, .stream = stream, .from = argument});
}

static void count_direct(const void *host)
{
    fake_driver *fake = fake_get_driver();
    fake->direct_copy_count += (uintptr_t)host - (uintptr_t)fake->pinned >= fake->pinned_bytes;
}

int cuMemcpyHtoDAsync_v2(uint64_t device, const void *host, size_t bytes, void *stream)
{
    RETURN_FAILURE();
    count_direct(host);
    const work copy = {.kind = WORK_COPY,
                       .stream = stream,
                       .to = (void *)(uintptr_t)device,
                       .from = host,
                       .bytes = bytes};
    return put_at(copy, 1);
}

int cuMemcpyDtoHAsync_v2(void *host, uint64_t device, size_t bytes, void *stream)
{
    RETURN_FAILURE();
    count_direct(host);
    return put((work){.kind = WORK_COPY,
                      .stream = stream,
                      .to = host,
                      .from = (const void *)(uintptr_t)device,
                      .bytes = bytes});
}

int cuStreamCreate(void **stream, unsigned flags)
{
    RETURN_FAILURE();
    (void)flags;
    *stream = malloc(1);
    return *stream ? 0 : error_out_of_memory;
}

int cuStreamDestroy_v2(void *stream)
{
    fake_finish_streams();
    free(stream);
    return 0;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    fake_event *waited = event;
    RETURN_FAILURE();
    (void)flags;
    return put(
        (work){.kind = WORK_WAIT, .stream = stream, .event = waited, .number = waited->recorded});
}

int cuStreamSynchronize(void *stream)
{
    RETURN_FAILURE();
    for (int64_t i = queue.count; i-- > 0;) {
        if (queue.items[i].stream == stream) {
            finish_stream_up_to(i);
            break;
        }
    }
    __atomic_fetch_add(&fake_get_driver()->wait_count, 1, __ATOMIC_RELAXED);
    return 0;
}

int cuEventCreate(void **event, unsigned flags)
{
    RETURN_FAILURE();
    (void)flags;
    *event = calloc(1, sizeof(fake_event));
    return *event ? 0 : error_out_of_memory;
}

int cuEventDestroy_v2(void *event)
{
    fake_finish_streams();
    free(event);
    return 0;
}

int cuEventRecord(void *event, void *stream)
{
    fake_event *recorded = event;
    RETURN_FAILURE();
    return put((work){
        .kind = WORK_RECORD, .stream = stream, .event = recorded, .number = ++recorded->recorded});
}

int cuEventSynchronize(void *event)
{
    RETURN_FAILURE();
    finish_event(event, ((fake_event *)event)->recorded);
    return 0;
}

/* Every other query finds that the work is not yet done. */
int cuEventQuery(void *event)
{
    fake_event *queried = event;
    RETURN_FAILURE();
    if (queried->completed < queried->recorded && queried->query_count++ % 2 == 0)
        return error_not_ready;
    finish_event(queried, queried->recorded);
    return 0;
}
