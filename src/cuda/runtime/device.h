/* Declares an open GPU: its primary context and its loaded images. */
#ifndef TGI_CUDA_DEVICE_H
#define TGI_CUDA_DEVICE_H

#include <pthread.h>

#include "cuda/runtime/staging.h"
#include "model/machine.h"

#define TGI_CUDA_DEVICE_COUNT 64 /* ordinals in use are below this */
#define TGI_CUDA_IMAGE_COUNT 64

typedef struct tgi_cuda_device {
    const tgi_driver *driver;
    int ordinal, handle;
    int user_count; /* contexts that use the device; guarded by the table's lock */
    void *context;  /* primary context, which the CUDA runtime shares */
    char name[64];
    int capability;
    int shared_bytes_per_block;          /* the most shared memory of a block */
    pthread_mutex_t lock;                /* taken to load images, find functions, make maps */
    tgi_cuda_staging *staging;           /* pinned blocks that no copy uses; NULL: none */
    void *modules[TGI_CUDA_IMAGE_COUNT]; /* by image; NULL until loaded */
} tgi_cuda_device;

/* Opens device `ordinal` for one more user and describes it in *machine. Each user passes the
 * device to tgi_cuda_close_device. Returns NULL with the detail and *status set on failure. */
tgi_cuda_device *tgi_cuda_open_device(int ordinal, tgi_machine *machine, tg_status *status);
void tgi_cuda_close_device(tgi_cuda_device *device);

/* Takes the device's pinned blocks, or makes some if another call has them. The device's context is
 * current. Errors: those of tgi_cuda_make_staging. */
tg_status tgi_cuda_take_staging(tgi_cuda_device *device, tgi_cuda_staging **staging);

/* Gives the pinned blocks back; NULL is allowed. The device keeps one set until it is closed.
 * is_idle is 0 if a copy that failed may still use the blocks, which are then freed after it. */
void tgi_cuda_give_staging(tgi_cuda_device *device, tgi_cuda_staging *staging, int is_idle);

/* Makes the device's context current on this thread. *before receives the previous context. */
static inline tg_status tgi_cuda_enter(const tgi_cuda_device *device, void **before)
{
    int error = device->driver->get_current(before);
    if (!error && *before != device->context)
        error = device->driver->set_current(device->context);
    return error ? tgi_driver_fail(device->driver, error,
                                   "the device's context cannot be made current")
                 : TG_STATUS_OK;
}

/* Makes `before` current again. */
static inline void tgi_cuda_leave(const tgi_cuda_device *device, void *before)
{
    if (before != device->context)
        device->driver->set_current(before);
}

/* Lets this thread allocate and load while one of its streams is captured, which would otherwise
 * fail. Neither becomes part of the graph. Returns the mode for tgi_cuda_restore_capture. */
static inline int tgi_cuda_relax_capture(const tgi_cuda_device *device)
{
    int mode = TGI_CUDA_CAPTURE_MODE_RELAXED;
    device->driver->exchange_capture_mode(&mode);
    return mode;
}

static inline void tgi_cuda_restore_capture(const tgi_cuda_device *device, int mode)
{
    device->driver->exchange_capture_mode(&mode);
}

#endif
