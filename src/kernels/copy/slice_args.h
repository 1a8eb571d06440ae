/*
 * Declares how FP32 operands lie in the workspace as slices, sums of 2 or 3 numbers of 16 bits, and
 * the argument of the kernels that make them. The host (C11) fills it.
 *
 * A chunk is 32 values of k. For each batch entry and chunk the slices follow one another, largest
 * first, each with all lines (rows of A, columns of B) in groups of eight. A group is 512 bytes, in
 * which unit u (0..3) of line r (0..7), eight elements of k, lies at 64 r + 16 (u ^ r / 2). That is
 * how the matrix instruction reads it from shared memory under the 64-byte swizzle, so that TMA
 * copies whole groups as they are. Lines and values of k after the last are zeros.
 */
#ifndef TGI_SLICES_ARGS_H
#define TGI_SLICES_ARGS_H

#include <stdint.h>

#define TGI_CHUNK_ELEMS 32
#define TGI_CHUNK_BYTES 64 /* bytes of a line of a slice */
#define TGI_RUN_CHUNKS                                                                             \
    32 /* chunks whose sums are added before they are added to those of earlier
                            * chunks */
#define TGI_GROUP_LINES 8
#define TGI_GROUP_BYTES 512
#define TGI_RANGE_LINES 64
#define TGI_SLICE_THREADS 256 /* a warp for each group of TGI_RANGE_LINES */

/* A range has the bits of the largest magnitude, and of the least that is not 0, of some elements.
 * They are 0 and UINT32_MAX if there is none. Infinity and NaN are larger than any number. */
typedef struct tgi_range {
    uint32_t largest, least;
} tgi_range;

/* A job reads element (line, k) of batch entry p at p * batch_stride + line * line_stride + k *
 * k_stride. A task is TGI_RANGE_LINES lines and chunks_per_segment chunks of a batch entry. */
typedef struct tgi_slice_job {
    const float *source;
    int64_t line_stride, k_stride, batch_stride;
    int64_t line_count, k, batch_count;
    int64_t chunk_count, chunks_per_segment;
    int32_t block_count, segment_count; /* blocks of lines, segments of chunks */
    int32_t has_vectors;                /* 1: elements along k are contiguous, in units of 16
                                         * bytes */
    /* The results. Range (p * block_count + b) * segment_count + s is that of batch entry p, block
     * b and segment s. FP16 also has the largest magnitude of each line and segment, and the power
     * of two by which each line's sums are multiplied. */
    char *slices;
    tgi_range *ranges;
    uint32_t *line_largest; /* (p * line_count + line) * segment_count + s */
    float *line_scale;      /* p * line_count + line */
} tgi_slice_job;

typedef struct tgi_slice_args {
    tgi_slice_job job[2]; /* the jobs of A and of B */
    int32_t slice_count;  /* 1..3 */
} tgi_slice_args;

/* The ranges of an FP32 operand's slices, by blocks of lines and segments of k. If family wgmma
 * slices rows of A in registers, the kernel finds their ranges, which have a segment for each
 * split. */
typedef struct tgi_slice_ranges {
    tgi_range *ranges;
    const float *line_scale; /* NULL: there are no scales */
    int32_t block_lines, block_count, segment_count;
} tgi_slice_ranges;

#define TGI_REGISTER_ROWS 16 /* block_lines of rows of A in registers: the rows of a warp */

/* Products of slices are numbered, the smallest first. With two slices an operand there are the
 * last three of them. With three there are all, of which the last six suffice for FP32. */
#define TGI_SLICE_PRODUCTS 9

#endif
