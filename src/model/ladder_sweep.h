/* Counts the requests and sectors of a rung's accesses to a matrix, for model/ladder_traffic.c. */
#ifndef TGI_LADDER_SWEEP_H
#define TGI_LADDER_SWEEP_H

#include <stdint.h>

/*
 * The way of a block's threads through a part of a matrix of line_count x col_count elements: one
 * element after another, request_elems of them in a request of a warp, along the lines or down the
 * columns.
 */
typedef struct tgi_cover {
    int line_count, col_count, request_elems;
    int lane_elems;    /* over 1: each lane has so many neighbours and asks for them one by one, so
                     * that request j takes columns j, j + lane_elems, ... of all */
    int is_by_columns; /* 1: the lanes of a warp run down the columns */
    /* The elements are those of D, and each of their threads asks for one of its line: all that
     * are in a line of the part for the same, which stands in the matrix once. */
    int is_of_line;
    int sector_elems; /* elements of 32 bytes: 8 or 16 */
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
