/*
 * tilegemm_mpi multiplies matrices that are distributed over the processes of MPI:
 *
 *     D = alpha * op(A) * op(B) + beta * C
 *
 * A program links it together with tilegemm and MPI. Each process (rank) holds its part of each
 * matrix and multiplies parts by tilegemm, on the CPU or on a GPU of its own. Structs, statuses and
 * ownership follow the rules of tilegemm.h. All ranks of the grid call the functions marked
 * "collective" in the same order, with the same shapes, layouts, types, alpha and beta. If one rank
 * has a wrong argument or runs out of memory, the call fails on all ranks, and the detail of the
 * others names that rank. Only a NULL grid fails on its rank alone. If a rank dies, mpirun ends the
 * others and says so.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TILEGEMM_MPI_H
#define TILEGEMM_MPI_H

#include <mpi.h>

#include "tilegemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------- grid, since 0.1 -- */

/* A grid has the ranks of a communicator in rows and columns: rank r is in row r / col_count. */
typedef struct tg_dist_grid tg_dist_grid;

/* Makes a grid of all ranks of `comm`, which has row_count * col_count ranks. MPI must be
 * initialized, and all calls on a grid come from the thread that MPI allows. `comm` is duplicated,
 * not kept. Collective over `comm`. On success the caller owns *grid and passes it to
 * tg_dist_destroy_grid. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_FAILURE (MPI failed); then
 * *grid is NULL. */
TG_API tg_status tg_dist_create_grid(MPI_Comm comm, int row_count, int col_count,
                                     tg_dist_grid **grid);

/* Frees the grid; call it before MPI_Finalize. Collective. NULL is allowed. */
TG_API void tg_dist_destroy_grid(tg_dist_grid *grid);

/* Returns the detail of the calling thread's last failed tg_dist call, as tg_get_error_detail does
 * for those of tilegemm.h. */
TG_API const char *tg_dist_get_error_detail(void);

/* ----------------------------------------------------------------------- layout, since 0.1 -- */

/* A tg_dist_layout is a block-cyclic layout, as ScaLAPACK describes one. Rows are cut into blocks
 * of row_block, of which the last may be shorter. Block p of rows is in row (row_source + p) mod
 * (rows of the grid). Columns are dealt in the same way. A rank stores its elements as one local
 * matrix in the order of their global indices. If the blocks span all rows or all columns, or the
 * grid has one row or one column, the layout is one-dimensional. */
typedef struct tg_dist_layout {
    size_t struct_bytes;
    tg_type type;
    int64_t row_count, col_count;    /* 0..2^48; the global matrix has at most 2^56 elements */
    int64_t row_block, col_block;    /* >= 1 */
    int row_source, col_source;      /* row and column of the grid that hold the first block */
    int is_row_major;                /* 0: local columns are contiguous, as ScaLAPACK's are */
    int64_t local_leading_dimension; /* elements from one local column (row if is_row_major) to
                                         the next, on this rank; 0: the least possible */
    int64_t row_start, col_start;    /* 0..2^48; if not 0, the matrix is the submatrix of a larger
                                         one that begins at (row_start, col_start). Blocks and
                                         local matrices are those of the larger one */
} tg_dist_layout;

/* Sets all members to a layout whose first block is in row 0 and column 0 of the grid and whose
 * local matrices are column-major without gaps. `struct_bytes` is sizeof *layout. Errors:
 * INVALID_ARGUMENT; then *layout is untouched. The sizes are checked when the layout is used. */
TG_API tg_status tg_dist_init_layout(tg_dist_layout *layout, size_t struct_bytes, tg_type type,
                                     int64_t row_count, int64_t col_count, int64_t row_block,
                                     int64_t col_block);

/* Sets *rows and *cols to the size of the local matrix of the rank at (grid_row, grid_col), or of
 * its part of the submatrix. Sizes may be 0. Errors: INVALID_ARGUMENT, SIZE_OVERFLOW. */
TG_API tg_status tg_dist_get_local_size(const tg_dist_layout *layout, const tg_dist_grid *grid,
                                        int grid_row, int grid_col, int64_t *rows, int64_t *cols);

/* tg_dist_counts has the bytes that a call moved between this rank and others. The messages by
 * which ranks agree on errors are not counted. */
typedef struct tg_dist_counts {
    size_t struct_bytes;
    int64_t bytes_sent, bytes_received;
} tg_dist_counts;

/* Copies a matrix from one layout to another of the same grid and type, and transposes it if `op`
 * is TG_OPERATION_TRANSPOSE. `source` and `target` are local matrices, which must not overlap.
 * `counts` may be NULL. Collective. Errors: INVALID_ARGUMENT, SIZE_OVERFLOW (a message above 2^31 -
 * 1 rows or columns), OUT_OF_MEMORY, DEVICE_FAILURE. */
TG_API tg_status tg_dist_redistribute(const tg_dist_grid *grid, tg_operation op,
                                      const tg_dist_layout *source_layout, const void *source,
                                      const tg_dist_layout *target_layout, void *target,
                                      tg_dist_counts *counts);

/* ---------------------------------------------------------------------- product, since 0.1 -- */

/* tg_dist_problem describes one product, in the types that tg_problem allows. C has D's layout. */
typedef struct tg_dist_problem {
    size_t struct_bytes;
    const tg_dist_layout *a, *b, *d;
    tg_operation op_a, op_b;
    double alpha, beta;         /* alpha = 0: A and B are not read; beta = 0: C is not read */
    int64_t layer_memory_bytes; /* >= 0; bytes that a rank may use to multiply in layers, which
                                   is done if ranks then send fewer bytes. 0: never. GPUs: 0 */
} tg_dist_problem;

/* Sets all members to D = A B. The problem keeps the pointers to the layouts, which the caller
 * owns. Errors: INVALID_ARGUMENT; then *problem is untouched. */
TG_API tg_status tg_dist_init_problem(tg_dist_problem *problem, size_t struct_bytes,
                                      const tg_dist_layout *a, const tg_dist_layout *b,
                                      const tg_dist_layout *d);

/* Computes the product of the problem. `a`, `b`, `c` and `d` are this rank's local matrices. The
 * contexts (NULL: the default one) of all ranks are on the CPU, or all are on GPUs. `c` is D itself
 * or does not overlap it. An A or B whose layout does not fit D's is first copied to one that does
 * (docs/distributed.md). Parts are sent while others are multiplied. D keeps the bound of
 * tg_precision; its bits depend on grid and layouts. `counts` may be NULL. Collective. Errors:
 * those of tg_multiply and of tg_dist_redistribute; then D is undefined unless an argument was
 * wrong.
 *
 * On GPUs the local matrices are in the GPU's memory. The call begins after the work of the default
 * stream, and D is complete on return. Each process must see all GPUs of its host and use one GPU
 * for all calls of a grid. NCCL or MPI joins ranks of several hosts (docs/distributed.md). A rank
 * receives all of op(A) for its rows and of op(B) for its columns, into memory that the grid
 * keeps. */
TG_API tg_status tg_dist_multiply(const tg_dist_grid *grid, tg_context *context,
                                  const tg_dist_problem *problem, const void *a, const void *b,
                                  const void *c, void *d, tg_dist_counts *counts);

/* Predicts what tg_dist_multiply sends and receives on the rank at (grid_row, grid_col). The caller
 * sets counts->struct_bytes. Nothing is sent, and the call is not collective. Errors:
 * INVALID_ARGUMENT, and those of tg_create_plan. */
TG_API tg_status tg_dist_predict_counts(const tg_dist_grid *grid, const tg_dist_problem *problem,
                                        int grid_row, int grid_col, tg_dist_counts *counts);

/* --------------------------------------------------------------- tensor parallel, since 0.1 -- */

/* The two functions of this section multiply on the ranks of a grid of any form, on GPUs. `problem`
 * is the product of this rank, with pointers to memory of its GPU and a batch of one. One of its
 * matrices has the rows of all ranks, one rank's behind the other's. Each rank chooses how many
 * rows it passes; 0 are allowed. The calls only put work into `stream`, of this rank's GPU, as
 * tg_execute_plan does. They wait for the other ranks' calls, but not for their GPUs, unless MPI
 * joins the ranks. The work begins after that of the grid's last call, on whichever stream. D
 * shares no memory with A and B. Messages and products overlap if that is faster. `counts` may be
 * NULL. Collective. Errors: those of tg_multiply, and UNSUPPORTED. */

/* Computes D = op(A) op(B), where problem->a holds this rank's rows of op(A), and D has the rows of
 * all ranks. B, D, the scales and the epilogue are the rank's own, usually for its columns of a
 * larger product. Scales of A are those of all rows. The rows of op(A) are contiguous on all ranks,
 * or its columns are on all ranks. */
TG_API tg_status tg_dist_all_gather_multiply(const tg_dist_grid *grid, tg_context *context,
                                             const tg_problem *problem, void *stream,
                                             tg_dist_counts *counts);

/* Sets D to this rank's rows of the sum over all ranks of alpha op(A) op(B). A and B are the
 * rank's own, usually for its values of k of a larger product. The sum is formed in the order of
 * the ranks, and the rank that keeps the rows comes last; each addition rounds to D's type once. D
 * has contiguous rows and a type of 16 bits or more. beta is 0, and there is no bias and no
 * activation. */
TG_API tg_status tg_dist_multiply_reduce_scatter(const tg_dist_grid *grid, tg_context *context,
                                                 const tg_problem *problem, void *stream,
                                                 tg_dist_counts *counts);

#ifdef __cplusplus
}
#endif
#endif /* TILEGEMM_MPI_H */
