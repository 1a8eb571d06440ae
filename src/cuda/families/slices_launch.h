/* Launches the kernels that slice FP32 operands, and describes the tensors of the slices. */
#ifndef TGI_CUDA_SLICES_LAUNCH_H
#define TGI_CUDA_SLICES_LAUNCH_H

#include "cuda/families/slices.h"
#include "cuda/runtime/tensor_map.h"
#include "kernels/wgmma/wgmma_args.h"

typedef struct tgi_slices_prepared {
    tgi_slice_args args; /* pointers are NULL */
    int64_t run_sums;    /* offset in the workspace */
    tgi_slice_places places[2];
    int is_a_in_registers; /* 1: the kernel slices A in registers */
    int is_scaled;         /* 1: each line has a scale */
    tgi_cuda_kernel find_largest, make_slices;
} tgi_slices_prepared;

/* Prepares the kernels for a problem of so many split-K parts. The slices lie in the workspace from
 * `offset` on. ranges[i] receives the ranges of operand i but their addresses, and tensor[i] the
 * tensor of its map. */
void tgi_slices_prepare(const tgi_machine *machine, const tgi_kernel *kernel,
                        const tgi_problem *problem, int64_t k_part_count, int64_t offset,
                        tgi_slice_ranges *ranges[2], tgi_tensor tensor[2],
                        tgi_slices_prepared *prepared);

/* Prepares the kernels for the problem of `args`, and fills its fields that describe slices. Its
 * TMA boxes are already set. */
void tgi_slices_prepare_args(const tgi_machine *machine, const tgi_kernel *kernel, int64_t offset,
                             tgi_wgmma_args *args, tgi_tensor tensor[2],
                             tgi_slices_prepared *prepared);

/* Puts the kernels into the queue for the operands at a and b. base[i] receives the address of what
 * the multiplying kernel reads: operand i's slices, or A itself where it slices A in registers. */
tg_status tgi_slices_launch(const tgi_cuda_queue *queue, tgi_slices_prepared *prepared,
                            const void *a, const void *b, char *workspace, const void *base[2]);

/* Sets the pointers of ranges[i] to the results of the kernels. */
void tgi_slices_complete(const tgi_slices_prepared *prepared, char *workspace,
                         tgi_slice_ranges *ranges[2]);
void tgi_slices_complete_args(const tgi_slices_prepared *prepared, char *workspace,
                              tgi_wgmma_args *args);

#endif
