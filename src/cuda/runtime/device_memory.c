#include "cuda/runtime/device_memory.h"

#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "cuda/runtime/device.h"

/* Copies from and to pageable memory alternate between two pinned blocks. The processor fills one
 * while the other is on the bus. */
#define STAGE_BYTES ((int64_t)8 << 20)
enum { stage_count = 2 };
/* Smaller copies use the driver's own staging, which is quicker than pinning memory. */
#define SMALL_BYTES ((int64_t)1 << 20)

tg_status tgi_cuda_allocate(const tgi_machine *machine, int64_t size_bytes, void **memory)
{
    const tgi_cuda_device *device = machine->device;
    uint64_t address = 0;
    char what[128];
    void *before;
    *memory = NULL;
    tg_status status = tgi_cuda_enter(device, &before);
    if (status)
        return status;
    const int mode = tgi_cuda_relax_capture(device);
    int error = device->driver->allocate(&address, (size_t)size_bytes);
    if (error) {
        snprintf(
            what, sizeof what,
            "no %lld bytes of memory could be had on cuda:%d; free some or multiply in smaller "
            "parts",
            (long long)size_bytes, device->ordinal);
        status = tgi_driver_fail(device->driver, error, what);
    } else {
        *memory = (void *)(uintptr_t)address;
    }
    tgi_cuda_restore_capture(device, mode);
    tgi_cuda_leave(device, before);
    return status;
}

void tgi_cuda_release(const tgi_machine *machine, void *memory)
{
    const tgi_cuda_device *device = machine->device;
    void *before;
    if (!memory || tgi_cuda_enter(device, &before))
        return;
    const int mode = tgi_cuda_relax_capture(device);
    device->driver->release((uint64_t)(uintptr_t)memory);
    tgi_cuda_restore_capture(device, mode);
    tgi_cuda_leave(device, before);
}

tgi_owner tgi_cuda_find_owner(const tgi_machine *machine, void *stream)
{
    static _Thread_local char thread; /* its address identifies this thread's default stream */
    const tgi_cuda_device *device = machine->device;
    const int is_of_thread = (uintptr_t)stream == TGI_CUDA_STREAM_PER_THREAD;
    tgi_owner owner = {.stream = (uint64_t)(is_of_thread ? (uintptr_t)&thread : (uintptr_t)stream)};
    int capture_status = 0;
    uint64_t capture = 0;
    void *before;
    if (tgi_cuda_enter(device, &before))
        return owner;
    /* The default stream cannot be captured. A query of it would end the capture of another. */
    int error =
        stream ? device->driver->get_capture(stream, &capture_status, &capture, NULL, NULL, NULL)
               : TGI_CUDA_SUCCESS;
    tgi_cuda_leave(device, before);
    if (!error && capture_status)
        owner.capture = capture + 1;
    return owner;
}

typedef struct staging {
    const tgi_cuda_device *device;
    char *blocks[stage_count];
    void *events[stage_count]; /* recorded when a block has left the bus */
} staging;

static void close_staging(staging *stage)
{
    const tgi_driver *driver = stage->device->driver;
    for (int i = 0; i < stage_count; i++) {
        if (stage->events[i])
            driver->destroy_event(stage->events[i]);
        if (stage->blocks[i])
            driver->release_pinned(stage->blocks[i]);
    }
}

static int open_staging(staging *stage, const tgi_cuda_device *device, int64_t size_bytes)
{
    int64_t block_bytes = size_bytes < STAGE_BYTES ? size_bytes : STAGE_BYTES;
    int error = TGI_CUDA_SUCCESS;
    memset(stage, 0, sizeof *stage);
    stage->device = device;
    for (int i = 0; i < stage_count && !error; i++) {
        void *block = NULL;
        error = device->driver->allocate_pinned(&block, (size_t)block_bytes, 0);
        stage->blocks[i] = block;
        if (!error)
            error = device->driver->create_event(&stage->events[i], 0);
    }
    return error;
}

static int copy_in(const staging *stage, char *device, const char *host, int64_t size_bytes)
{
    const tgi_driver *driver = stage->device->driver;
    int error = TGI_CUDA_SUCCESS;
    int64_t done = 0;
    for (int i = 0; done < size_bytes && !error; i = (i + 1) % stage_count) {
        int64_t part = size_bytes - done < STAGE_BYTES ? size_bytes - done : STAGE_BYTES;
        error = driver->wait_for_event(stage->events[i]); /* returns at once if none was recorded */
        if (error)
            break;
        memcpy(stage->blocks[i], host + done, (size_t)part);
        error = driver->copy_to_device((uint64_t)(uintptr_t)(device + done), stage->blocks[i],
                                       (size_t)part, NULL);
        if (!error)
            error = driver->record_event(stage->events[i], NULL);
        done += part;
    }
    return error ? error : driver->wait_for_stream(NULL);
}

static int copy_out(const staging *stage, char *host, const char *device, int64_t size_bytes)
{
    const tgi_driver *driver = stage->device->driver;
    int64_t block_count = (size_bytes + STAGE_BYTES - 1) / STAGE_BYTES;
    int error = TGI_CUDA_SUCCESS;
    /* Block i is on the bus while the processor copies block i - 1 out of pinned memory. */
    for (int64_t i = 0; i <= block_count && !error; i++) {
        int64_t offset = i * STAGE_BYTES, before = offset - STAGE_BYTES;
        int64_t rest = size_bytes - before;
        int slot = (int)(i % stage_count), before_slot = (int)((i + 1) % stage_count);
        if (i < block_count) {
            int64_t part = size_bytes - offset < STAGE_BYTES ? size_bytes - offset : STAGE_BYTES;
            error = driver->copy_from_device(
                stage->blocks[slot], (uint64_t)(uintptr_t)(device + offset), (size_t)part, NULL);
            if (!error)
                error = driver->record_event(stage->events[slot], NULL);
        }
        if (i > 0 && !error)
            error = driver->wait_for_event(stage->events[before_slot]);
        if (i > 0 && !error)
            memcpy(host + before, stage->blocks[before_slot],
                   (size_t)(rest < STAGE_BYTES ? rest : STAGE_BYTES));
    }
    return error;
}

/* Copies to `to_device` or to `to_host`, whichever is not NULL. */
static int copy_small(const tgi_cuda_device *device, void *to_device, void *to_host,
                      const void *from, int64_t size_bytes)
{
    int error = to_device ? device->driver->copy_to_device((uint64_t)(uintptr_t)to_device, from,
                                                           (size_t)size_bytes, NULL)
                          : device->driver->copy_from_device(to_host, (uint64_t)(uintptr_t)from,
                                                             (size_t)size_bytes, NULL);
    return error ? error : device->driver->wait_for_stream(NULL);
}

static int copy_staged(const staging *stage, void *to_device, void *to_host, const void *from,
                       int64_t size_bytes)
{
    return to_device ? copy_in(stage, to_device, from, size_bytes)
                     : copy_out(stage, to_host, from, size_bytes);
}

static tg_status copy(const tgi_machine *machine, void *to_device, void *to_host, const void *from,
                      int64_t size_bytes)
{
    const tgi_cuda_device *device = machine->device;
    staging stage;
    void *before;
    if (size_bytes == 0)
        return TG_STATUS_OK;
    tg_status status = tgi_cuda_enter(device, &before);
    if (status)
        return status;
    int error = TGI_CUDA_SUCCESS;
    if (size_bytes < SMALL_BYTES) {
        error = copy_small(device, to_device, to_host, from, size_bytes);
    } else if ((error = open_staging(&stage, device, size_bytes))) {
        char what[96];
        close_staging(&stage);
        snprintf(what, sizeof what, "no %d x %lld bytes of pinned memory for a copy could be had",
                 stage_count, (long long)STAGE_BYTES);
        status = tgi_driver_fail(device->driver, error, what);
        tgi_cuda_leave(device, before);
        return status;
    } else {
        error = copy_staged(&stage, to_device, to_host, from, size_bytes);
        close_staging(&stage);
    }
    tgi_cuda_leave(device, before);
    return error ? tgi_driver_fail(device->driver, error, "a copy failed, or a kernel before it")
                 : TG_STATUS_OK;
}

tg_status tgi_cuda_copy_to_device(const tgi_machine *machine, void *device, const void *host,
                                  int64_t size_bytes)
{
    return copy(machine, device, NULL, host, size_bytes);
}

tg_status tgi_cuda_copy_from_device(const tgi_machine *machine, void *host, const void *device,
                                    int64_t size_bytes)
{
    return copy(machine, NULL, host, device, size_bytes);
}
