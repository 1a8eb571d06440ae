/* Operands in lines at multiples of 16 bytes, as the copy engine reads them: where they lie, or
 * repacked into the workspace. */
#ifndef TGI_CUDA_OPERAND_H
#define TGI_CUDA_OPERAND_H

#include "core/problem.h"
#include "cuda/cuda.h"
#include "kernels/repack/repack_args.h"
#include "kernels/wgmma/wgmma_args.h"

#define TGI_TENSOR_STRIDE_MAX ((int64_t)1 << 40) /* bytes, of a tensor map; strides are less */

/* How an operand reaches the copy engine. Its lines are rows of A or columns of B. */
typedef struct tgi_operand {
    int64_t line_count, k, batch_count;          /* batch_count: entries that differ */
    int64_t line_stride, k_stride, batch_stride; /* elements */
    int64_t elem_bytes;
    int is_across; /* 1: runs of contiguous elements lie across k */
    int is_repacked;
    int is_loose;        /* lines begin between units of 16 bytes and are read so (loose.h) */
    int64_t pitch_bytes; /* from run to run: where it lies, or in the workspace */
    int64_t batch_bytes; /* from batch entry to batch entry */
} tgi_operand;

/* Its runs of elements: `count` of `length`, `stride` elements from run to run, `along` within. */
typedef struct tgi_runs {
    int64_t count, length, stride, along;
} tgi_runs;

tgi_runs tgi_operand_runs(const tgi_operand *operand);

/* Describes A, or B where is_b is 1. can_be_across: the kernel takes runs across k. is_offset: the
 * pointer is no multiple of 16 bytes. */
void tgi_operand_describe(const tgi_problem *problem, int is_b, int can_be_across, int is_offset,
                          tgi_operand *operand);

/* 1 where the copy engine can go from batch entry to batch entry. */
int tgi_operand_is_batch_fit(const tgi_operand *operand);

/* Of the workspace, a multiple of 256; 0 where it is not repacked. */
int64_t tgi_operand_workspace_bytes(const tgi_operand *operand);

/* The job that copies the operand to `target`. */
void tgi_operand_set_job(const tgi_operand *operand, const void *source, void *target,
                         tgi_repack_job *job);

/* Puts the jobs into the queue, in one kernel. */
tg_status tgi_operand_repack(const tgi_cuda_queue *queue, int sm_count, const tgi_repack_args *args,
                             int64_t elem_bytes);

/* What a map is of: count[0] contiguous elements in count[1] runs in count[2] batch entries, from
 * run to run and entry to entry stride_bytes apart. */
typedef struct tgi_tensor {
    const void *data;
    int64_t elem_bytes, count[3], stride_bytes[2];
    int is_swizzled; /* boxes under the 128-byte swizzle, or as they lie */
    int is_rounded;  /* FP32 becomes TF32 on the way, to nearest */
} tgi_tensor;

/* Encodes the tensor's map, of boxes of `elems` elements in `runs` runs. */
tg_status tgi_tensor_encode(const tgi_cuda_queue *queue, const tgi_tensor *tensor, int elems,
                            int runs, tgi_tensor_map *map);

/* Encodes the maps of an operand whose box_lines and edge_lines are set. A run is group_lines of
 * its lines. */
tg_status tgi_tensor_encode_operand(const tgi_cuda_queue *queue, const tgi_tensor *tensor,
                                    int elems, int group_lines, tgi_wgmma_operand *operand);

#endif
