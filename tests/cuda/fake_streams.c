/* SPDX-License-Identifier: MIT */
#include "fake_streams.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct fake_event {
    int64_t recorded, completed; /* numbers of records, in streams and done */
    int query_count;
} fake_event;

typedef enum work_kind {
    WORK_COPY,
    WORK_LAUNCH,
    WORK_RECORD,
    WORK_WAIT,
    WORK_WRITE_WORD,
    WORK_WAIT_FOR_WORD
} work_kind;

typedef struct work {
    work_kind kind;
    int is_done, is_running;
    void *stream;
    void *to;
    const void *from;  /* bytes of a copy, or a launch's own copy of its argument */
    size_t bytes;      /* bytes of a line */
    size_t line_count; /* lines of a copy, each pitch behind the one before */
    size_t to_pitch, from_pitch;
    fake_event *event;
    int64_t number; /* the number of a record, of the one that is waited for, or of a word */
} work;

/* Deferred work of all streams, in the order of the calls. */
static struct {
    work *items;
    int64_t count, capacity;
} queue;

static void finish_event(const fake_event *event, int64_t number);
static void do_what_is_ready(const void *only);

static void copy_lines(const work *item)
{
    for (size_t i = 0; i < item->line_count; i++)
        memcpy((char *)item->to + i * item->to_pitch,
               (const char *)item->from + i * item->from_pitch, item->bytes);
}

static int is_word_there(const work *item)
{
    const uint32_t *word = item->to;
    return (int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - (uint32_t)item->number) >= 0;
}

/* Waits for a word that another process writes, which no test lets take this long. */
static void wait_for_word(const work *item)
{
    const time_t start = time(NULL);
    while (!is_word_there(item)) {
        if (time(NULL) - start > 20) {
            fprintf(stderr, "the fake driver: a word is not written\n");
            abort();
        }
        do_what_is_ready(NULL);
        sched_yield();
    }
}

static void do_work(const work *item)
{
    switch (item->kind) {
    case WORK_COPY:
        copy_lines(item);
        break;
    case WORK_WRITE_WORD:
        __atomic_store_n((uint32_t *)item->to, (uint32_t)item->number, __ATOMIC_RELEASE);
        break;
    case WORK_WAIT_FOR_WORD:
        wait_for_word(item);
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

static void do_item(work *item)
{
    item->is_running = 1;
    do_work(item);
    item->is_running = 0;
    item->is_done = 1;
    if (item->kind == WORK_LAUNCH)
        free((void *)(uintptr_t)item->from);
}

/* Does the work of one stream up to queue.items[last]. */
static void finish_stream_up_to(int64_t last)
{
    void *const stream = queue.items[last].stream;
    for (int64_t i = 0; i <= last; i++) {
        work *item = &queue.items[i];
        if (item->is_done || item->is_running || item->stream != stream)
            continue;
        do_item(item);
    }
}

/* Does the work that waits for nothing, behind earlier work that is done, of all streams, or of
 * `only` and the records of events. */
static void do_what_is_ready(const void *only)
{
    for (int64_t i = 0; i < queue.count; i++) {
        work *item = &queue.items[i];
        int is_ready = !item->is_done && !item->is_running &&
                       (!only || item->stream == only || item->kind == WORK_RECORD);
        if (item->kind == WORK_WAIT)
            is_ready &= item->event->completed >= item->number;
        else if (item->kind == WORK_WAIT_FOR_WORD)
            is_ready &= is_word_there(item);
        for (int64_t j = 0; j < i && is_ready; j++)
            is_ready = queue.items[j].is_done || queue.items[j].stream != item->stream;
        if (is_ready)
            do_item(item);
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
                       .bytes = bytes,
                       .line_count = 1};
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
                      .bytes = bytes,
                      .line_count = 1});
}

int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes)
{
    RETURN_FAILURE();
    return put((work){.kind = WORK_COPY,
                      .to = (void *)(uintptr_t)to,
                      .from = (const void *)(uintptr_t)from,
                      .bytes = bytes,
                      .line_count = 1});
}

/* This struct has the layout of CUDA_MEMCPY2D of cuda.h. */
typedef struct fake_copy {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    uint64_t from;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    int to_type;
    void *to_host;
    uint64_t to;
    void *to_array;
    size_t to_pitch, line_bytes, line_count;
} fake_copy;

int cuMemcpy2DAsync_v2(const fake_copy *copy, void *stream)
{
    RETURN_FAILURE();
    if (copy->line_bytes > copy->from_pitch || copy->line_bytes > copy->to_pitch)
        return error_invalid_value;
    fake_get_driver()->line_copy_count++;
    put((work){.kind = WORK_COPY,
               .stream = stream,
               .to = (void *)(uintptr_t)copy->to,
               .from = (const void *)(uintptr_t)copy->from,
               .bytes = copy->line_bytes,
               .line_count = copy->line_count,
               .to_pitch = copy->to_pitch,
               .from_pitch = copy->from_pitch});
    if (fake_get_driver()->is_deferred == 2)
        do_what_is_ready(stream);
    return 0;
}

int cuStreamWriteValue32_v2(void *stream, uint64_t word, uint32_t value, unsigned flags)
{
    RETURN_FAILURE();
    if (flags) /* as the driver does */
        return error_invalid_value;
    put((work){
        .kind = WORK_WRITE_WORD, .stream = stream, .to = (void *)(uintptr_t)word, .number = value});
    /* The default stream has products, which are put off. */
    if (fake_get_driver()->is_deferred == 2 && stream)
        do_what_is_ready(stream);
    return 0;
}

int cuStreamWaitValue32_v2(void *stream, uint64_t word, uint32_t value, unsigned flags)
{
    RETURN_FAILURE();
    (void)flags;
    return put((work){.kind = WORK_WAIT_FOR_WORD,
                      .stream = stream,
                      .to = (void *)(uintptr_t)word,
                      .number = value});
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

/* Every other query finds that the work is not yet done. So does one while a stream waits for a
 * word. */
int cuEventQuery(void *event)
{
    fake_event *queried = event;
    RETURN_FAILURE();
    for (int64_t i = 0; i < queue.count; i++) {
        const work *item = &queue.items[i];
        if (item->is_done || item->kind != WORK_WAIT_FOR_WORD)
            continue;
        do_what_is_ready(NULL);
        if (!item->is_done)
            return error_not_ready;
    }
    if (queried->completed < queried->recorded && queried->query_count++ % 2 == 0)
        return error_not_ready;
    finish_event(queried, queried->recorded);
    return 0;
}
