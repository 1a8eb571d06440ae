/* Describes operands as TMA reads them, in lines at multiples of 16 bytes: where they lie, or
 * repacked into the workspace. */
#ifndef TGI_CUDA_OPERAND_H
#define TGI_CUDA_OPERAND_H

#include "core/problem.h"
#include "kernels/tma_map.h"

/* The path of an operand to TMA. Its lines are rows of A or columns of B. */
typedef struct tgi_operand {
    int64_t line_count, k, batch_count; /* batch_count: 1 if all entries are the same */
    int64_t copy_k;                     /* k of the copy in the workspace, with zeros from k on */
    int64_t line_stride, k_stride, batch_stride; /* elements */
    int64_t elem_bytes;
    int is_across; /* 1: runs of contiguous elements lie across k */
    int is_repacked;
    int is_unaligned;    /* 1: lines begin between units of 16 bytes and are read where they lie */
    int64_t pitch_bytes; /* bytes from run to run; in the workspace if repacked */
    int64_t batch_bytes; /* from batch entry to batch entry */
} tgi_operand;

/* tgi_runs describes `count` runs of `length` elements. In elements, `stride` leads from run to run
 * and `along` from element to element. */
typedef struct tgi_runs {
    int64_t count, length, stride, along;
} tgi_runs;

tgi_runs tgi_operand_runs(const tgi_operand *operand);

/* Describes A, or B if is_b is 1. can_be_across is 1 if the kernel takes runs across k. is_offset
 * is 1 if the pointer is not a multiple of 16 bytes. */
void tgi_operand_describe(const tgi_problem *problem, int is_b, int can_be_across, int is_offset,
                          tgi_operand *operand);

/* Returns which rule of tensor maps a repacked operand breaks where it lies, as a clause about
 * `it`. */
const char *tgi_operand_find_fault(const tgi_operand *operand, int is_offset);

/* Extends the copy of a repacked operand with zeros, so that its k is a multiple of `unit`, which
 * is at most 128 bytes of elements. */
void tgi_operand_pad(tgi_operand *operand, int64_t unit);

/* Sets is_unaligned in place of is_repacked if the elements lie in lines and tensor maps can take
 * the strides. */
void tgi_operand_describe_unaligned(tgi_operand *operand);

/* Returns 1 if the batch stride suits a tensor map. */
int tgi_operand_is_batch_fit(const tgi_operand *operand);

/* Returns the bytes of workspace that the operand takes, a multiple of 256; 0 if it is not
 * repacked. */
int64_t tgi_operand_workspace_bytes(const tgi_operand *operand);

/* Returns how many lines of a 16-bit type are repacked. Those of FP8 do not count: the families
 * that read them where they lie take longer than predicted. */
double tgi_operand_count_repacked(const tgi_operand *operand);

#endif
