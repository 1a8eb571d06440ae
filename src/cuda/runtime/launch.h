/* Launches kernels. */
#ifndef TGI_CUDA_LAUNCH_H
#define TGI_CUDA_LAUNCH_H

#include <stdatomic.h>

#include "cuda/runtime/device.h"
#include "cuda/runtime/launch_record.h"
#include "plan/backend.h"

/* Bytes of a function's name, with the NUL. */
#define TGI_CUDA_SYMBOL_BYTES 80

typedef struct tgi_cuda_queue tgi_cuda_queue;
typedef struct tgi_cuda_kernel tgi_cuda_kernel;

/* Runs a kernel as tgi_cuda_run_with does. */
typedef tg_status tgi_cuda_runner(const tgi_cuda_queue *queue, tgi_cuda_kernel *kernel,
                                  void **arguments);

/* A queue says where a call runs. */
struct tgi_cuda_queue {
    tgi_cuda_runner *runner; /* takes the place of the driver; NULL: the driver runs kernels */
    tgi_cuda_device *device;
    void *stream;                 /* CUstream, or NULL for the default stream */
    tgi_bare_launch *bare_launch; /* the call's; NULL: each kernel is launched once */
    tgi_cuda_record *record;      /* record that keeps the launches; NULL: none */
};

/* A kernel and the shape of its launch, without arguments. A plan fills it once. A function whose
 * blocks have over 48 KiB of dynamic shared memory has no other. */
struct tgi_cuda_kernel {
    /* The first launch finds the function, NULL until then, and sets the attributes. What every
     * launch reads comes first. */
    void *_Atomic function;
    unsigned grid[3], block[3];
    unsigned shared_bytes; /* dynamic shared memory of a block */
    unsigned attribute_count;
    tgi_driver_attribute attributes[2];
    unsigned cluster;  /* blocks that form a cluster; 0: none */
    int cluster_along; /* the dimension of the grid along which they lie */
    /* 1: programmatic dependent launch. The kernel may start before the stream's kernel ahead of it
     * has ended, which hides part of the start. It waits by tgi_wait_for_stream. */
    int is_early;
    const char *image;                  /* image of the row; static storage */
    char symbol[TGI_CUDA_SYMBOL_BYTES]; /* name of a function in the image */
};

/* Puts a kernel whose function has one argument, of argument_bytes bytes, into the queue. The
 * device's context is current. Any number of threads may launch one kernel. Errors: those of
 * tgi_cuda_find_function. */
tg_status tgi_cuda_run(const tgi_cuda_queue *queue, tgi_cuda_kernel *kernel, void *argument,
                       size_t argument_bytes);

/* Does the same for a function with several arguments; `arguments[i]` points to the i-th one, as
 * for cuLaunchKernel. The queue's record does not keep such a launch. */
tg_status tgi_cuda_run_with(const tgi_cuda_queue *queue, tgi_cuda_kernel *kernel, void **arguments);

/* Puts the kernels of a record into the queue. Errors: those of tgi_cuda_run. */
tg_status tgi_cuda_run_record(const tgi_cuda_queue *queue, const tgi_cuda_record *record);

#endif
