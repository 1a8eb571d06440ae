/* The launch of every kernel. */
#ifndef TGI_CUDA_LAUNCH_H
#define TGI_CUDA_LAUNCH_H

#include <stdatomic.h>

#include "cuda/runtime/device.h"
#include "plan/backend.h"

/* Bytes of a function's name, with its end. */
#define TGI_CUDA_SYMBOL_BYTES 80

/* A queue says where a call runs. */
typedef struct tgi_cuda_queue tgi_cuda_queue;
struct tgi_cuda_queue {
    tgi_cuda_device *device;
    void *stream;                 /* CUstream; NULL: the device's default stream */
    tgi_bare_launch *bare_launch; /* a call's; NULL: kernels are launched once */
};

/* A kernel and the shape of its launch: all but the arguments. A plan fills it once. A function is
 * launched with the same amount of shared memory by every plan. */
typedef struct tgi_cuda_kernel {
    const char *image;                  /* a row's image; static storage */
    char symbol[TGI_CUDA_SYMBOL_BYTES]; /* a row's name, or another function of the image */
    unsigned grid[3], block[3];
    unsigned shared_bytes; /* dynamic shared memory of a block */
    unsigned cluster;      /* blocks of the grid's first dimension that form a cluster; 0: none */
    /* 1: may start before the stream's kernel ahead of it has ended, for which it waits itself by
     * tgi_wait_for_stream: part of what starting costs is hidden. */
    int is_early;
    void *_Atomic function; /* NULL until the first launch */
} tgi_cuda_kernel;

/* Puts the kernel into the queue. `arguments[i]` points to the i-th argument of the function, as
 * for cuLaunchKernel. The device's context is current. Any number of threads may launch one kernel.
 * Errors: those of tgi_cuda_find_function. */
tg_status tgi_cuda_run(const tgi_cuda_queue *queue, tgi_cuda_kernel *kernel, void **arguments);

#endif
