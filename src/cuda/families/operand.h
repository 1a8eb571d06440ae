/* Operands in lines at multiples of 16 bytes, as TMA reads them: where they lie, or repacked into
 * the workspace. */
#ifndef TGI_CUDA_OPERAND_H
#define TGI_CUDA_OPERAND_H

#include "core/problem.h"
#include "kernels/tma_map.h"

/* Describes the path of an operand to TMA. Its lines are rows of A or columns of B. */
typedef struct tgi_operand {
    int64_t line_count, k, batch_count;          /* batch_count: entries that differ */
    int64_t line_stride, k_stride, batch_stride; /* elements */
    int64_t elem_bytes;
    int is_across; /* 1: runs of contiguous elements lie across k */
    int is_repacked;
    int is_unaligned;    /* 1: lines begin between units of 16 bytes and are read so (`loose.h`) */
    int64_t pitch_bytes; /* from run to run: where it lies, or in the workspace */
    int64_t batch_bytes; /* from batch entry to batch entry */
} tgi_operand;

/* Runs of elements: `count` of `length`, `stride` elements from run to run, `along` within. */
typedef struct tgi_runs {
    int64_t count, length, stride, along;
} tgi_runs;

tgi_runs tgi_operand_runs(const tgi_operand *operand);

/* Describes A, or B where is_b is 1. can_be_across: the kernel takes runs across k. is_offset: the
 * pointer is no multiple of 16 bytes. */
void tgi_operand_describe(const tgi_problem *problem, int is_b, int can_be_across, int is_offset,
                          tgi_operand *operand);

/* Returns 1 if TMA can go from batch entry to batch entry. */
int tgi_operand_is_batch_fit(const tgi_operand *operand);

/* Returns the bytes of workspace that the operand takes, a multiple of 256; 0 if it is not
 * repacked. */
int64_t tgi_operand_workspace_bytes(const tgi_operand *operand);

#endif
