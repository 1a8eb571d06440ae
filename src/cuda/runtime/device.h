/* A GPU that is open, as the files of the backend see it. */
#ifndef TGI_CUDA_DEVICE_H
#define TGI_CUDA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/cuda.h"
#include "cuda/runtime/driver.h"

#define TGI_CUDA_DEVICE_COUNT 64 /* ordinals in use */
#define TGI_CUDA_IMAGE_COUNT 64
#define TGI_CUDA_FUNCTION_COUNT 1024 /* a power of two, several times the functions there are */

/* A kernel of a loaded image. `symbol`, which is `name`, is set last: who sees it sees the rest. */
typedef struct tgi_cuda_function {
    const char *_Atomic symbol;
    char name[TGI_CUDA_SYMBOL_BYTES];
    void *function;
    atomic_uint shared_bytes; /* dynamic shared memory it may use so far */
} tgi_cuda_function;

struct tgi_cuda_device {
    const tgi_driver *driver;
    int ordinal, handle;
    int user_count; /* contexts of the library; under the table's lock */
    void *context;  /* the primary one, shared with the CUDA runtime */
    char name[64];
    int capability;
    pthread_mutex_t lock;                                 /* of loading */
    void *modules[TGI_CUDA_IMAGE_COUNT];                  /* by image; NULL until loaded */
    tgi_cuda_function functions[TGI_CUDA_FUNCTION_COUNT]; /* hashed by symbol */
};

/* Opens device `ordinal` for one more user and describes it in *machine; the device lives until as
 * many tgi_cuda_close_device. NULL with the detail set and *status filled. */
tgi_cuda_device *tgi_cuda_open_device(int ordinal, tgi_machine *machine, tg_status *status);
void tgi_cuda_close_device(tgi_cuda_device *device);

/* Makes the device's context current on this thread, and what was there current again. */
tg_status tgi_cuda_enter(const tgi_cuda_device *device, void **before);
void tgi_cuda_leave(const tgi_cuda_device *device, void *before);

/* image.c: the function, loading its image if it is the first of it. The context is current. */
tg_status tgi_cuda_find_function(tgi_cuda_device *device, const char *image, const char *symbol,
                                 tgi_cuda_function **function);
void tgi_cuda_unload_images(tgi_cuda_device *device);

/* Lets this thread allocate and load while one of its streams is captured, which would otherwise
 * fail; neither becomes part of the graph. Returns the mode to exchange back. */
static inline int tgi_cuda_relax_capture(const tgi_cuda_device *device)
{
    int mode = TGI_CUDA_CAPTURE_MODE_RELAXED;
    device->driver->exchange_capture_mode(&mode);
    return mode;
}

/* memory.c: the backend's functions of these names. */
tg_status tgi_cuda_allocate(const tgi_machine *machine, int64_t size_bytes, void **memory);
void tgi_cuda_release(const tgi_machine *machine, void *memory);
tgi_owner tgi_cuda_find_owner(const tgi_machine *machine, void *stream);
tg_status tgi_cuda_copy_to_device(const tgi_machine *machine, void *device, const void *host,
                                  int64_t size_bytes);
tg_status tgi_cuda_copy_from_device(const tgi_machine *machine, void *host, const void *device,
                                    int64_t size_bytes);

/* timing.c: likewise. */
tg_status tgi_cuda_synchronize(const tgi_machine *machine, void *stream);
tg_status tgi_cuda_time_calls(const tgi_machine *machine, tg_timed_call *call, void *state,
                              int64_t count, void *stream, double *elapsed_s);
tg_status tgi_cuda_measure_peak(const tgi_machine *machine, tg_type type, int thread_count,
                                double *flop_per_s);

#endif
