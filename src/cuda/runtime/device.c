/* Opens each device once in a process. A device's primary context is retained while a context of
 * the library uses it. */
#include "cuda/runtime/device.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static tgi_cuda_device *devices[TGI_CUDA_DEVICE_COUNT];

static int64_t get_attribute(const tgi_cuda_device *device, int attribute)
{
    int value = 0;
    if (device->driver->get_attribute(&value, attribute, device->handle))
        return 0;
    return value;
}

static void describe(const tgi_cuda_device *device, tgi_machine *machine)
{
    size_t memory_bytes = 0;
    memset(machine, 0, sizeof *machine);
    memcpy(machine->name, device->name, sizeof machine->name);
    machine->features = tgi_arch_find(device->capability)->features;
    machine->isa = tgi_kernels_last_isa("cuda", machine->features);
    machine->thread_count = 1;
    machine->l2_bytes = get_attribute(device, TGI_CUDA_ATTRIBUTE_L2_BYTES);
    machine->device = (void *)(uintptr_t)device;
    tgi_gpu *gpu = &machine->gpu;
    gpu->ordinal = device->ordinal;
    gpu->capability = device->capability;
    gpu->l2_bytes = machine->l2_bytes;
    gpu->sm_count = (int)get_attribute(device, TGI_CUDA_ATTRIBUTE_SM_COUNT);
    gpu->threads_per_sm = (int)get_attribute(device, TGI_CUDA_ATTRIBUTE_THREADS_PER_SM);
    gpu->blocks_per_sm = (int)get_attribute(device, TGI_CUDA_ATTRIBUTE_BLOCKS_PER_SM);
    gpu->registers_per_sm = (int)get_attribute(device, TGI_CUDA_ATTRIBUTE_REGISTERS_PER_SM);
    gpu->shared_bytes_per_sm = get_attribute(device, TGI_CUDA_ATTRIBUTE_SHARED_BYTES_PER_SM);
    gpu->shared_bytes_per_block = device->shared_bytes_per_block;
    gpu->clock_hz = 1e3 * (double)get_attribute(device, TGI_CUDA_ATTRIBUTE_CLOCK_KHZ);
    /* The memory bus makes two transfers a clock. */
    gpu->memory_bytes_per_s = 2e3 *
                              (double)get_attribute(device, TGI_CUDA_ATTRIBUTE_MEMORY_CLOCK_KHZ) *
                              (double)get_attribute(device, TGI_CUDA_ATTRIBUTE_MEMORY_BUS_BITS) / 8;
    gpu->mma_share = tgi_arch_find_mma_share(device->capability, device->name);
    gpu->fp64_share = tgi_arch_find_fp64_share(
        device->capability, (double)get_attribute(device, TGI_CUDA_ATTRIBUTE_FP64_RATIO));
    device->driver->name_bus(gpu->bus, (int)sizeof gpu->bus, device->handle);
    if (!device->driver->get_device_bytes(&memory_bytes, device->handle))
        gpu->memory_bytes = (int64_t)memory_bytes;
}

static tg_status check_ordinal(const tgi_driver *driver, int ordinal)
{
    int count = 0;
    int error = driver->count_devices(&count);
    if (error)
        return tgi_driver_fail(driver, error, "cuDeviceGetCount");
    if (count > TGI_CUDA_DEVICE_COUNT)
        count = TGI_CUDA_DEVICE_COUNT;
    if (count == 0) {
        return tgi_status_fail(TG_STATUS_NO_DEVICE,
                               "no CUDA device: the driver sees none; look at nvidia-smi and at "
                               "CUDA_VISIBLE_DEVICES, or pass device = \"cpu\"");
    }
    if (ordinal >= count) {
        return tgi_status_fail(TG_STATUS_NO_DEVICE,
                               "device = cuda:%d, but the driver sees %d CUDA device%s; pass "
                               "cuda:0..cuda:%d",
                               ordinal, count, count == 1 ? "" : "s", count - 1);
    }
    return TG_STATUS_OK;
}

/* Finds name, compute capability and primary context of a device that has no user yet. */
static tg_status open_first(tgi_cuda_device *device)
{
    const tgi_driver *driver = device->driver;
    char what[64];
    int error = driver->get_device(&device->handle, device->ordinal);
    if (!error)
        error = driver->name_device(device->name, (int)sizeof device->name, device->handle);
    if (error) {
        snprintf(what, sizeof what, "cuda:%d cannot be asked for its name", device->ordinal);
        return tgi_driver_fail(driver, error, what);
    }
    device->capability = (int)(10 * get_attribute(device, TGI_CUDA_ATTRIBUTE_CAPABILITY_MAJOR) +
                               get_attribute(device, TGI_CUDA_ATTRIBUTE_CAPABILITY_MINOR));
    if (device->capability < 75) {
        return tgi_status_fail(
            TG_STATUS_NO_DEVICE,
            "cuda:%d, %s, has compute capability %d.%d and the kernels need 7.5; "
            "pass another device",
            device->ordinal, device->name, device->capability / 10, device->capability % 10);
    }
    device->shared_bytes_per_block =
        (int)get_attribute(device, TGI_CUDA_ATTRIBUTE_SHARED_BYTES_OPTIN);
    error = driver->retain_context(&device->context, device->handle);
    if (error) {
        snprintf(what, sizeof what, "cuda:%d gives no context", device->ordinal);
        return tgi_driver_fail(driver, error, what);
    }
    pthread_mutex_init(&device->lock, NULL);
    return TG_STATUS_OK;
}

/* Opens the device for one more user. The table is locked. */
static tgi_cuda_device *open_locked(const tgi_driver *driver, int ordinal, tg_status *status)
{
    tgi_cuda_device *device = devices[ordinal];
    if (!device) {
        device = tgi_alloc_object(sizeof *device);
        *status = device ? TG_STATUS_OK : TG_STATUS_OUT_OF_MEMORY;
        if (!device)
            return NULL;
        device->driver = driver;
        device->ordinal = ordinal;
        if ((*status = open_first(device))) {
            tgi_alloc_free(device);
            return NULL;
        }
        devices[ordinal] = device;
    }
    device->user_count++;
    return device;
}

tgi_cuda_device *tgi_cuda_open_device(int ordinal, tgi_machine *machine, tg_status *status)
{
    const tgi_driver *driver = tgi_driver_open(status);
    if (!driver || (*status = check_ordinal(driver, ordinal)))
        return NULL;
    pthread_mutex_lock(&table_lock);
    tgi_cuda_device *device = open_locked(driver, ordinal, status);
    pthread_mutex_unlock(&table_lock);
    if (device)
        describe(device, machine);
    return device;
}

static void unload_images(const tgi_cuda_device *device)
{
    for (int i = 0; i < TGI_CUDA_IMAGE_COUNT; i++) {
        if (device->modules[i])
            device->driver->unload_module(device->modules[i]);
    }
}

void tgi_cuda_close_device(tgi_cuda_device *device)
{
    void *before = NULL;
    pthread_mutex_lock(&table_lock);
    if (--device->user_count == 0) {
        devices[device->ordinal] = NULL;
        /* At the end of the process the driver may be gone, and its memory with it. */
        if (tgi_cuda_enter(device, &before) == TG_STATUS_OK) {
            unload_images(device);
            tgi_cuda_free_staging(device->driver, device->staging);
            tgi_cuda_leave(device, before);
        }
        device->driver->release_context(device->handle);
        pthread_mutex_destroy(&device->lock);
        tgi_alloc_free(device);
    }
    pthread_mutex_unlock(&table_lock);
}

tg_status tgi_cuda_take_staging(tgi_cuda_device *device, tgi_cuda_staging **staging)
{
    pthread_mutex_lock(&device->lock);
    *staging = device->staging;
    device->staging = NULL;
    pthread_mutex_unlock(&device->lock);
    return *staging ? TG_STATUS_OK : tgi_cuda_make_staging(device->driver, staging);
}

void tgi_cuda_give_staging(tgi_cuda_device *device, tgi_cuda_staging *staging, int is_idle)
{
    pthread_mutex_lock(&device->lock);
    const int is_kept = staging && is_idle && !device->staging;
    if (is_kept)
        device->staging = staging;
    pthread_mutex_unlock(&device->lock);
    if (!is_kept)
        tgi_cuda_free_staging(device->driver, staging);
}
