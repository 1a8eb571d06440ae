/* What tensor-parallel products share: each rank multiplies on its GPU, and rows of one matrix are
 * dealt to the ranks in their order. */
#ifndef TGI_DIST_TENSOR_H
#define TGI_DIST_TENSOR_H

#include "dist_wire.h"

/* What every rank tells the others of its rows of the dealt matrix, A or D. */
typedef struct tgi_tensor_shape {
    int64_t status; /* what the checks of the rank gave */
    int64_t rows, width, type;
    int64_t is_along, is_across; /* lines to send can be rows; they can be columns */
    int64_t is_whole;            /* the rank prefers one product of all rows */
    int64_t whole_rows;          /* rows of the matrix that is not dealt: those of all ranks */
    int64_t first;               /* the rank's first row; each rank finds it */
} tgi_tensor_shape;

/* A tensor-parallel product on this rank. */
typedef struct tgi_tensor_work {
    const tg_dist_grid *grid;
    tg_context *context;
    tg_problem problem; /* the caller's, with op(A) as A */
    void *stream;
    tg_device_info device;
    tgi_tensor_shape *shapes; /* of all ranks */
    int64_t row_count;        /* rows of all ranks */
    int rank_count;
    int is_along;  /* lines to send are rows on all ranks; else they are columns */
    int64_t start; /* bytes of a buffer before what a call uses */
    tg_dist_counts counts;
} tgi_tensor_work;

/* Checks the caller's matrices and fills in what this rank tells the others of them. */
typedef tg_status tgi_tensor_check(const tgi_tensor_work *work, tgi_tensor_shape *mine);

/* Puts the copies and the products of this rank into the stream. */
typedef tg_status tgi_tensor_run(tgi_tensor_work *work);

/* A kind of product. */
typedef struct tgi_tensor_kind {
    const char *dealt, *whole; /* name the matrix whose rows are dealt, and that with all rows */
    tgi_tensor_check *check;
    tgi_tensor_run *run;
} tgi_tensor_kind;

/* Makes a call. Collective: the ranks exchange their shapes, and run if all of them passed their
 * checks. Sets the caller's counts. */
tg_status tgi_tensor_call(const tg_dist_grid *grid, tg_context *context, const tg_problem *problem,
                          void *stream, tg_dist_counts *counts, const tgi_tensor_kind *kind);

/* Returns the problem of some rows of `whole`, from `row` on. `a` is the first of these rows of A,
 * which lies as that of `whole` does. */
tg_problem tgi_tensor_take_rows(const tg_problem *whole, const void *a, int64_t row,
                                int64_t row_count);
const void *tgi_tensor_find_row(const tg_matrix *matrix, int64_t row);

/* Adds the predicted seconds of a product of so many rows. */
tg_status tgi_tensor_predict(const tgi_tensor_work *work, int64_t row_count, double *seconds);

/* Puts a product into the stream. */
tg_status tgi_tensor_multiply(const tgi_tensor_work *work, const tg_problem *problem);

/* Returns a place in this rank's buffer. */
char *tgi_tensor_find_buffer(const tgi_tensor_work *work, int64_t place);

#endif
