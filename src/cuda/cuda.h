/* Inside the CUDA backend: what its files share. */
#ifndef TGI_CUDA_H
#define TGI_CUDA_H

#include "plan/backend.h"

#define TGI_CUDA_OPERAND_ALIGNMENT 16 /* bytes, that the copy engine and accesses by vectors need */

/* A GPU that is open: its primary context, its loaded images (device.c). */
typedef struct tgi_cuda_device tgi_cuda_device;

/* Where a call runs. */
typedef struct tgi_cuda_queue {
    tgi_cuda_device *device;
    void *stream; /* CUstream; NULL: the device's default stream */
} tgi_cuda_queue;

typedef struct tgi_cuda_launch {
    unsigned grid[3], block[3];
    unsigned shared_bytes; /* dynamic shared memory of a block */
    unsigned cluster;      /* blocks of the grid's first dimension that form a cluster; 0: none */
    /* 1: may start before the stream's kernel ahead of it has ended, for which it waits itself by
     * tgi_wait_for_stream: part of what starting costs is hidden. */
    unsigned is_early;
} tgi_cuda_launch;

/* As tgi_backend's propose; type and instruction set already fit, sizes are 1 or more, alpha is not
 * 0. Fills legality and reason, blocking, workspace_bytes and predicted_s; serial_s and sum_order
 * are its caller's. It asks no device: machine->device is NULL where none is there. */
typedef void tgi_cuda_propose_row(const tgi_machine *machine, const tgi_problem *problem,
                                  tgi_proposal *proposal);
/* Puts the kernels of a call into the queue, by tgi_cuda_run, and does not wait for them. */
typedef tg_status tgi_cuda_launch_call(const tgi_cuda_queue *queue, const tgi_call *call);

#define TGI_CUDA_FAMILY(family, code)                                                              \
    tgi_cuda_propose_row tgi_cuda_propose_##code;                                                  \
    tgi_cuda_launch_call tgi_cuda_launch_##code;
#include "cuda/families/families.def"
#undef TGI_CUDA_FAMILY

/* propose.c: the backend's propose, by the family's. */
void tgi_cuda_propose(const tgi_machine *machine, const tgi_problem *problem,
                      tgi_proposal *proposal);

/* A function's name, with its end. */
#define TGI_CUDA_SYMBOL_BYTES 80

/* launch.c, THE launch: function `symbol` (a row's name, or another function) of the embedded image
 * `image` (a row's image), which is loaded at its first use on the device. `arguments[i]` points to
 * the i-th argument of the function, as for cuLaunchKernel.
 * Errors: NO_DEVICE (no image for this chip), OUT_OF_MEMORY, DEVICE_FAILURE. */
tg_status tgi_cuda_run(const tgi_cuda_queue *queue, const char *image, const char *symbol,
                       const tgi_cuda_launch *launch, void **arguments);

/* image.c: architectures of the embedded images, "sm_75 sm_80 ... compute_90"; "none". */
const char *tgi_cuda_architectures(void);

#endif
