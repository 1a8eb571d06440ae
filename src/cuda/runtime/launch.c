/* THE launch of every kernel, and what it says where it fails. */
#include <stdio.h>

#include "core/status.h"
#include "cuda/runtime/device.h"

/* Dynamic shared memory that a kernel may use without being allowed more. */
#define SHARED_BYTES_FREE (48u << 10)

#define EARLY_CAPABILITY 90
#define EARLY_VERSION 12030

static tg_status fail_launch(const tgi_cuda_queue *queue, const char *symbol,
                             const tgi_cuda_launch *launch, int error)
{
    char what[320];
    snprintf(what, sizeof what,
             "kernel %.90s failed to launch on cuda:%d with grid %u x %u x %u, block %u x %u x %u, "
             "%u bytes of shared memory",
             symbol, queue->device->ordinal, launch->grid[0], launch->grid[1], launch->grid[2],
             launch->block[0], launch->block[1], launch->block[2], launch->shared_bytes);
    return tgi_driver_fail(queue->device->driver, error, what);
}

/* Two threads that allow different sizes at once must not end with the smaller one. */
static int allow_shared_bytes(tgi_cuda_device *device, tgi_cuda_function *function, unsigned bytes)
{
    int error = TGI_CUDA_SUCCESS;
    pthread_mutex_lock(&device->lock);
    if (atomic_load(&function->shared_bytes) < bytes) {
        error = device->driver->set_function_attribute(function->function,
                                                       TGI_CUDA_FUNCTION_SHARED_BYTES, (int)bytes);
        if (!error)
            atomic_store(&function->shared_bytes, bytes);
    }
    pthread_mutex_unlock(&device->lock);
    return error;
}

/* Images for chips that can hold the wait; older drivers cannot capture such a launch. */
static int can_start_early(const tgi_cuda_device *device)
{
    return device->capability >= EARLY_CAPABILITY && device->driver->version >= EARLY_VERSION;
}

tg_status tgi_cuda_run(const tgi_cuda_queue *queue, const char *image, const char *symbol,
                       const tgi_cuda_launch *launch, void **arguments)
{
    tgi_cuda_device *device = queue->device;
    tgi_cuda_function *function = NULL;
    tg_status status = tgi_cuda_find_function(device, image, symbol, &function);
    if (status)
        return status;
    int error = TGI_CUDA_SUCCESS;
    if (launch->shared_bytes > SHARED_BYTES_FREE &&
        atomic_load_explicit(&function->shared_bytes, memory_order_acquire) < launch->shared_bytes)
        error = allow_shared_bytes(device, function, launch->shared_bytes);
    tgi_driver_attribute attributes[2];
    unsigned attribute_count = 0;
    if (launch->is_early && can_start_early(device))
        attributes[attribute_count++] =
            (tgi_driver_attribute){.name = TGI_CUDA_LAUNCH_EARLY, .value.is_on = 1};
    if (launch->cluster > 1)
        attributes[attribute_count++] = (tgi_driver_attribute){
            .name = TGI_CUDA_LAUNCH_CLUSTER, .value.size = {launch->cluster, 1, 1}};
    const tgi_driver_launch asked = {
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .shared_bytes = launch->shared_bytes,
        .stream = queue->stream,
        .attributes = attributes,
        .attribute_count = attribute_count};
    if (!error)
        error = device->driver->launch(&asked, function->function, arguments, NULL);
    return error ? fail_launch(queue, symbol, launch, error) : TG_STATUS_OK;
}
