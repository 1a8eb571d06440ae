/* Launches the kernel that repacks operands into the workspace, one launch for both. */
#ifndef TGI_CUDA_REPACK_LAUNCH_H
#define TGI_CUDA_REPACK_LAUNCH_H

#include "cuda/families/operand.h"
#include "cuda/runtime/launch.h"
#include "kernels/copy/repack_args.h"

/* A job whose task_count is 0 has nothing to do. */
typedef struct tgi_repack_prepared {
    tgi_repack_args args; /* a launch fills in source and target */
    tgi_cuda_kernel kernel;
} tgi_repack_prepared;

/* Adds the job that copies the operand. */
void tgi_repack_add(const tgi_operand *operand, tgi_repack_job *job);

/* Prepares the kernel for the jobs that were added. Elements have elem_bytes bytes. */
void tgi_repack_prepare(int sm_count, int64_t elem_bytes, tgi_repack_prepared *prepared);

/* Puts the kernel into the queue. Job i copies from source[i] to target[i]. */
tg_status tgi_repack_launch(const tgi_cuda_queue *queue, tgi_repack_prepared *prepared,
                            const void *const source[2], void *const target[2]);

#endif
