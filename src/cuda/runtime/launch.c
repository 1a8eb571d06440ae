#include "cuda/runtime/launch.h"

#include <stdio.h>

#include "core/status.h"
#include "cuda/runtime/image.h"
#include "plan/clock.h"

/* Dynamic shared memory that a kernel may use without opting in to more. */
#define SHARED_BYTES_FREE (48u << 10)

#define EARLY_VERSION 12030

static tg_status fail_launch(const tgi_cuda_device *device, const tgi_cuda_kernel *kernel,
                             int error)
{
    char what[320];
    snprintf(what, sizeof what,
             "kernel %.90s failed to launch on cuda:%d with grid %u x %u x %u, block %u x %u x %u, "
             "%u bytes of shared memory",
             kernel->symbol, device->ordinal, kernel->grid[0], kernel->grid[1], kernel->grid[2],
             kernel->block[0], kernel->block[1], kernel->block[2], kernel->shared_bytes);
    return tgi_driver_fail(device->driver, error, what);
}

/* Returns 1 if kernels of the image may start early. Only code for chips with this feature contains
 * the wait that an early start needs. Older drivers cannot capture such a launch. */
static int can_start_early(const tgi_cuda_device *device, const char *image)
{
    return tgi_cuda_image_uses(image, device->capability, TGI_FEATURE_EARLY_LAUNCH) &&
           device->driver->version >= EARLY_VERSION;
}

static void set_attributes(const tgi_cuda_device *device, tgi_cuda_kernel *kernel)
{
    if (kernel->is_early && can_start_early(device, kernel->image))
        kernel->attributes[kernel->attribute_count++] =
            (tgi_driver_attribute){.name = TGI_CUDA_LAUNCH_EARLY, .value.is_on = 1};
    if (kernel->cluster > 1) {
        tgi_driver_attribute *cluster = &kernel->attributes[kernel->attribute_count++];
        *cluster = (tgi_driver_attribute){.name = TGI_CUDA_LAUNCH_CLUSTER, .value.size = {1, 1, 1}};
        cluster->value.size[kernel->cluster_along] = kernel->cluster;
    }
}

/* Finds the kernel's function and sets its attributes. The function is opted in to all shared
 * memory that a block may have, as other plans may launch it with more. Threads that bind at the
 * same time take turns, and the first one binds. */
static tg_status bind(tgi_cuda_device *device, tgi_cuda_kernel *kernel, void **function)
{
    tg_status status = TG_STATUS_OK;
    pthread_mutex_lock(&device->lock);
    *function = atomic_load_explicit(&kernel->function, memory_order_relaxed);
    if (!*function) {
        const int mode = tgi_cuda_relax_capture(device);
        int error = TGI_CUDA_SUCCESS;
        status = tgi_cuda_find_function(device, kernel->image, kernel->symbol, function);
        if (!status && kernel->shared_bytes > SHARED_BYTES_FREE)
            error = device->driver->set_function_attribute(
                *function, TGI_CUDA_FUNCTION_SHARED_BYTES, device->shared_bytes_per_block);
        if (error)
            status = fail_launch(device, kernel, error);
        if (!status) {
            set_attributes(device, kernel);
            atomic_store_explicit(&kernel->function, *function, memory_order_release);
        }
        tgi_cuda_restore_capture(device, mode);
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Launches the kernel as often as the call asks, and adds up the time. */
static __attribute__((noinline)) int launch_bare(const tgi_cuda_queue *queue,
                                                 const tgi_driver_launch *asked, void *function,
                                                 void **arguments)
{
    const tgi_driver *driver = queue->device->driver;
    tgi_bare_launch *bare = queue->bare_launch;
    int error = TGI_CUDA_SUCCESS;
    const double start_s = tgi_clock_read_s();
    for (int64_t i = 0; i < bare->launch_count && !error; i++)
        error = driver->launch(asked, function, arguments, NULL);
    bare->elapsed_s += tgi_clock_read_s() - start_s;
    return error;
}

/* Launches the kernel by the driver. */
static inline __attribute__((always_inline)) tg_status
launch(const tgi_cuda_queue *queue, tgi_cuda_kernel *kernel, void **arguments)
{
    tgi_cuda_device *device = queue->device;
    void *function = atomic_load_explicit(&kernel->function, memory_order_acquire);
    if (!function) {
        tg_status status = bind(device, kernel, &function);
        if (status)
            return status;
    }
    const tgi_driver_launch asked = {
        .grid = {kernel->grid[0], kernel->grid[1], kernel->grid[2]},
        .block = {kernel->block[0], kernel->block[1], kernel->block[2]},
        .shared_bytes = kernel->shared_bytes,
        .stream = queue->stream,
        .attributes = kernel->attributes,
        .attribute_count = kernel->attribute_count};
    const int error = queue->bare_launch
                          ? launch_bare(queue, &asked, function, arguments)
                          : device->driver->launch(&asked, function, arguments, NULL);
    return error ? fail_launch(device, kernel, error) : TG_STATUS_OK;
}

tg_status tgi_cuda_run_with(const tgi_cuda_queue *queue, tgi_cuda_kernel *kernel, void **arguments)
{
    return queue->runner ? queue->runner(queue, kernel, arguments)
                         : launch(queue, kernel, arguments);
}

tg_status tgi_cuda_run(const tgi_cuda_queue *queue, tgi_cuda_kernel *kernel, void *argument,
                       size_t argument_bytes)
{
    void *arguments[] = {argument};
    if (queue->record)
        tgi_cuda_record_add(queue->record, kernel, argument, argument_bytes);
    return tgi_cuda_run_with(queue, kernel, arguments);
}

tg_status tgi_cuda_run_record(const tgi_cuda_queue *queue, const tgi_cuda_record *record)
{
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < record->launch_count && !status; i++) {
        void *arguments[] = {record->launches[i].argument};
        status = launch(queue, record->launches[i].kernel, arguments);
    }
    return status;
}
