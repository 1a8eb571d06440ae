/* Counts the requests and sectors of a rung's accesses to a matrix, for model/ladder_traffic.c. */
#ifndef TGI_LADDER_SWEEP_H
#define TGI_LADDER_SWEEP_H

#include <stdint.h>

/*
 * The order in which a block's threads access a part of a matrix, line_count x col_count elements:
 * one element after another, along the lines or down the columns. A request of a warp has
 * request_elems of them.
 */
typedef struct tgi_cover {
    int line_count, col_count, request_elems;
    /* Over 1: a lane has this many neighbouring columns and accesses one at a time, so that request
     * j takes columns j, j + lane_elems, ... */
    int lane_elems;
    int is_by_columns; /* 1: the lanes of a warp run down the columns */
    /* 1: the part is one of D, with a thread for each element, and the matrix has one element for
     * each line of it. All threads of a line access that element. */
    int is_of_line;
    int sector_elems; /* elements of a sector of 32 bytes: 8 or 16 */
} tgi_cover;

/* A matrix as lines: element (l, c) lies at l * line_stride + c * col_stride. The columns of a part
 * follow each other. */
typedef struct tgi_line_grid {
    int64_t line_count, line_stride, col_count, col_stride;
} tgi_line_grid;

typedef struct tgi_sweep {
    int64_t request_count, sector_count;
} tgi_sweep;

/* Counts all requests that cover the matrix once. With is_of_line only the columns of a part below
 * used_col_count have a thread. */
tgi_sweep tgi_model_sweep(const tgi_line_grid *span, const tgi_cover *cover, int used_col_count);

#endif
