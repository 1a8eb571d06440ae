/*
 * Declares the argument of the repack kernels, which copy operands to lines of contiguous elements
 * at multiples of 16 bytes. The host (C11) fills it.
 */
#ifndef TGI_REPACK_ARGS_H
#define TGI_REPACK_ARGS_H

#include <stdint.h>

#define TGI_REPACK_THREADS 256
#define TGI_REPACK_UNIT_BYTES 16
#define TGI_REPACK_TILE 64        /* lines and elements of a tile that is transposed */
#define TGI_REPACK_TASK_LINES 4   /* lines that a warp copies at once */
#define TGI_REPACK_TASK_BYTES 512 /* bytes of each of those lines */

/* A job reads element (line, elem) of batch entry p at p * batch_stride + line * line_stride +
 * elem * elem_stride. In the copy this line begins at byte
 * (p * copy_line_count + line) * pitch_bytes. There are zeros behind the end of a line, and in
 * lines behind the last one. */
typedef struct tgi_repack_job {
    const void *source;
    void *target;                                   /* this and pitch_bytes are multiples of 16 */
    int64_t line_count, elem_count, batch_count;    /* 1 or more */
    int64_t line_stride, elem_stride, batch_stride; /* elements */
    int64_t copy_line_count, copy_bytes;            /* lines of the copy and their bytes, whole
                                                     * units of 16 */
    int64_t pitch_bytes;
    int64_t task_count;  /* tasks of warps or tiles of blocks; 0: no job */
    int32_t is_in_lines; /* 1: warps copy lines; 0: blocks transpose tiles */
} tgi_repack_job;

/* Up to two operands, repacked by one kernel. */
typedef struct tgi_repack_args {
    tgi_repack_job job[2];
    int32_t is_rounded; /* 1: elements are FP32, of which TF32 numbers are made */
} tgi_repack_args;

#endif
