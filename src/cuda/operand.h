/* Operands that the copy engine reads: as they lie, or repacked into the workspace. */
#ifndef TGI_CUDA_OPERAND_H
#define TGI_CUDA_OPERAND_H

#include "core/problem.h"
#include "cuda/cuda.h"
#include "kernels/repack/args.h"
#include "kernels/tensor_map.h"

/* How an operand reaches the copy engine. Its lines are rows of A or columns of B. */
typedef struct tgi_operand {
    int64_t line_count, k, batch_count;          /* batch_count: entries that differ */
    int64_t line_stride, k_stride, batch_stride; /* elements */
    int64_t elem_bytes;
    int is_across; /* 1: runs of contiguous elements lie across k */
    int is_repacked;
    int64_t pitch_bytes; /* from run to run: where it lies, or in the workspace */
    int64_t batch_bytes; /* from batch entry to batch entry */
} tgi_operand;

/* Describes A, or B where is_b is 1. can_be_across: the kernel takes runs across k. is_rounded:
 * FP32 elements must become TF32 ones. is_offset: the pointer is no multiple of 16 bytes. */
void tgi_operand_describe(const tgi_problem *problem, int is_b, int can_be_across, int is_rounded,
                          int is_offset, tgi_operand *operand);

/* Of the workspace, a multiple of 256; 0 where it is not repacked. */
int64_t tgi_operand_workspace_bytes(const tgi_operand *operand);

/* The job that copies the operand to `target`. */
void tgi_operand_set_job(const tgi_operand *operand, const void *source, void *target,
                         tgi_repack_job *job);

/* Puts the jobs into the queue, in one kernel. */
tg_status tgi_operand_repack(const tgi_cuda_queue *queue, int sm_count, const tgi_repack_args *args,
                             int64_t elem_bytes);

/* Encodes the map of a matrix of `x_count` contiguous elements x `y_count` runs x `z_count` batch
 * entries, read in boxes of box_x x box_y, under the 128-byte swizzle or as they lie. */
tg_status tgi_operand_encode(const tgi_cuda_queue *queue, tgi_tensor_map *map, const void *data,
                             int64_t elem_bytes, const int64_t count[3],
                             const int64_t stride_bytes[2], const int box[2], int is_swizzled);

#endif
