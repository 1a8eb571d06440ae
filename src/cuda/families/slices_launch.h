/* Launches the kernels that slice FP32 operands, and describes the tensors of the slices. */
#ifndef TGI_CUDA_SLICES_LAUNCH_H
#define TGI_CUDA_SLICES_LAUNCH_H

#include "cuda/families/slices.h"
#include "cuda/runtime/tensor_map.h"

/* tgi_slice_facts is the part of a kernel's argument that describes the slices of A and of B. */
typedef struct tgi_slice_facts {
    tgi_slice_ranges ranges[2];
    int32_t has_batch[2]; /* 0: every batch entry reads entry 0 */
    int32_t slice_count, first_product;
    void *run_sums;
} tgi_slice_facts;

typedef struct tgi_slices_prepared {
    tgi_slice_args args;   /* pointers are NULL */
    tgi_slice_facts facts; /* pointers are NULL */
    int64_t run_sums;      /* offset in the workspace */
    tgi_slice_places places[2];
    int is_a_in_registers; /* 1: the kernel slices A in registers */
    int is_scaled;         /* 1: each line has a scale */
    tgi_cuda_kernel find_largest, make_slices;
} tgi_slices_prepared;

/* Prepares the kernels and the facts. The slices lie in the workspace from `offset` on. tensor[i]
 * receives the tensor that a map of operand i has. */
void tgi_slices_prepare(const tgi_machine *machine, const tgi_kernel *kernel,
                        const tgi_problem *problem, int split_count, int64_t offset,
                        tgi_tensor tensor[2], tgi_slices_prepared *prepared);

/* Puts the kernels into the queue for the operands at a and b. base[i] receives the address that
 * the kernel reads operand i at: that of its slices, or of A itself. */
tg_status tgi_slices_launch(const tgi_cuda_queue *queue, tgi_slices_prepared *prepared,
                            const void *a, const void *b, char *workspace, const void *base[2]);

/* Returns the facts with pointers to the results of the kernels. */
tgi_slice_facts tgi_slices_find_facts(const tgi_slices_prepared *prepared, char *workspace);

#endif
