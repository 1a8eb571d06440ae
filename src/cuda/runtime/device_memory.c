#include "cuda/runtime/device_memory.h"

#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "cuda/runtime/device.h"

/* Copies from and to pageable memory go through pinned blocks in turn. The processor fills one
 * while another is on the bus. One thread fills no more of it than this, so that the bus begins
 * soon. */
#define STAGE_BYTES ((int64_t)8 << 20)
_Static_assert(STAGE_BYTES <= TGI_CUDA_STAGE_BYTES, "a piece fits in a block");
enum { stage_count = tgi_cuda_stage_count };
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
        snprintf(what, sizeof what,
                 "no %lld bytes of memory could be had on cuda:%d; free some or multiply in "
                 "smaller parts",
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
    /* The default stream cannot be captured. A query of it would end the capture of another. */
    if (!stream || tgi_cuda_enter(device, &before))
        return owner;
    const int error =
        device->driver->get_capture(stream, &capture_status, &capture, NULL, NULL, NULL);
    tgi_cuda_leave(device, before);
    if (!error && capture_status)
        owner.capture = capture + 1;
    return owner;
}

static int copy_in(const tgi_driver *driver, const tgi_cuda_staging *stage, char *device,
                   const char *host, int64_t size_bytes)
{
    int error = TGI_CUDA_SUCCESS;
    int64_t done = 0;
    for (int i = 0; done < size_bytes && !error; i = (i + 1) % stage_count) {
        int64_t piece = size_bytes - done < STAGE_BYTES ? size_bytes - done : STAGE_BYTES;
        error = driver->wait_for_event(stage->events[i]); /* returns at once if none was recorded */
        if (error)
            break;
        memcpy(stage->blocks[i], host + done, (size_t)piece);
        error = driver->copy_to_device((uint64_t)(uintptr_t)(device + done), stage->blocks[i],
                                       (size_t)piece, NULL);
        if (!error)
            error = driver->record_event(stage->events[i], NULL);
        done += piece;
    }
    return error ? error : driver->wait_for_stream(NULL);
}

static int copy_out(const tgi_driver *driver, const tgi_cuda_staging *stage, char *host,
                    const char *device, int64_t size_bytes)
{
    int64_t block_count = (size_bytes + STAGE_BYTES - 1) / STAGE_BYTES;
    int error = TGI_CUDA_SUCCESS;
    /* Block i is on the bus while the processor copies block i - 1 out of pinned memory. */
    for (int64_t i = 0; i <= block_count && !error; i++) {
        int64_t offset = i * STAGE_BYTES, before = offset - STAGE_BYTES;
        int64_t rest = size_bytes - before;
        int slot = (int)(i % stage_count), before_slot = (int)((i + stage_count - 1) % stage_count);
        if (i < block_count) {
            int64_t piece = size_bytes - offset < STAGE_BYTES ? size_bytes - offset : STAGE_BYTES;
            error = driver->copy_from_device(
                stage->blocks[slot], (uint64_t)(uintptr_t)(device + offset), (size_t)piece, NULL);
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

static int copy_staged(const tgi_driver *driver, const tgi_cuda_staging *stage, void *to_device,
                       void *to_host, const void *from, int64_t size_bytes)
{
    return to_device ? copy_in(driver, stage, to_device, from, size_bytes)
                     : copy_out(driver, stage, to_host, from, size_bytes);
}

static tg_status copy(const tgi_machine *machine, void *to_device, void *to_host, const void *from,
                      int64_t size_bytes)
{
    tgi_cuda_device *device = machine->device;
    tgi_cuda_staging *stage = NULL;
    void *before;
    if (size_bytes == 0)
        return TG_STATUS_OK;
    tg_status status = tgi_cuda_enter(device, &before);
    if (status)
        return status;
    int error = TGI_CUDA_SUCCESS;
    if (size_bytes < SMALL_BYTES)
        error = copy_small(device, to_device, to_host, from, size_bytes);
    else if (!(status = tgi_cuda_take_staging(device, &stage)))
        error = copy_staged(device->driver, stage, to_device, to_host, from, size_bytes);
    if (error)
        status = tgi_driver_fail(device->driver, error, "a copy failed, or a kernel before it");
    tgi_cuda_give_staging(device, stage, status == TG_STATUS_OK);
    tgi_cuda_leave(device, before);
    return status;
}

tgi_memory tgi_cuda_find_memory(const tgi_machine *machine, const void *memory)
{
    const tgi_cuda_device *device = machine->device;
    unsigned type = 0;
    if (device->driver->get_pointer_attribute(&type, TGI_CUDA_POINTER_MEMORY_TYPE,
                                              (uint64_t)(uintptr_t)memory))
        return TGI_MEMORY_PAGEABLE;
    return type == TGI_CUDA_MEMORY_HOST ? TGI_MEMORY_PINNED : TGI_MEMORY_DEVICE;
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
