/*
 * Products of matrices that are distributed over the processes of MPI:
 *
 *     D = alpha * op(A) * op(B) + beta * C
 *
 * Library tilegemm_mpi, which is linked with tilegemm and MPI. Each process (rank) holds its part
 * of each matrix and multiplies parts by tilegemm, on the CPU or on a GPU of its own. Structs,
 * statuses and ownership follow the rules of tilegemm.h. Functions marked "collective" are called
 * by all ranks of the grid in one order, with the same shapes, layouts, types, alpha and beta. If
 * the arguments of one rank are wrong, or if it has no memory, the call fails on all of them: the
 * detail of the others names the rank. Only a NULL grid fails on its rank alone. If a rank dies,
 * mpirun ends the others and says so.
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

/* The ranks of a communicator as rows and columns: rank r is in row r / col_count. */
typedef struct tg_dist_grid tg_dist_grid;

/* Makes a grid of all ranks of `comm`, row_count * col_count in number. Collective over `comm`,
 * which is duplicated, not kept. MPI is initialized; all calls on a grid come from the thread that
 * MPI allows. On success the caller owns *grid and passes it to tg_dist_destroy_grid. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_FAILURE (MPI failed); then *grid is NULL. */
TG_API tg_status tg_dist_create_grid(MPI_Comm comm, int row_count, int col_count,
                                     tg_dist_grid **grid);

/* Frees the grid before MPI_Finalize. Collective. NULL is allowed. */
TG_API void tg_dist_destroy_grid(tg_dist_grid *grid);

/* Returns the detail of the calling thread's last failed tg_dist call, as tg_get_error_detail does
 * for those of tilegemm.h. */
TG_API const char *tg_dist_get_error_detail(void);

/* ----------------------------------------------------------------------- layout, since 0.1 -- */

/* A block-cyclic layout, as ScaLAPACK describes one. Rows are cut into blocks of row_block, the
 * last one shorter. Block p is in row (row_source + p) mod (rows of the grid); columns alike. A
 * rank stores its elements as one local matrix in the order of their global indices. Blocks that
 * reach over all rows or all columns, or a grid of one row or column, make a layout
 * one-dimensional. */
typedef struct tg_dist_layout {
    size_t struct_bytes;
    tg_type type;
    int64_t row_count, col_count;    /* 0..2^48, the global matrix of at most 2^56 elements */
    int64_t row_block, col_block;    /* >= 1 */
    int row_source, col_source;      /* row and column of the grid that hold the first block */
    int is_row_major;                /* 0: local columns are contiguous, as ScaLAPACK's are */
    int64_t local_leading_dimension; /* elements between local columns (rows if is_row_major);
                                         of this rank alone; 0: the least possible */
    int64_t row_start, col_start; /* 0..2^48; if not 0, the matrix is a submatrix of the one whose
                                         blocks are dealt: its element (0, 0) is (row_start,
                                         col_start) of that one, whose local matrices are passed */
} tg_dist_layout;

/* Sets all members to a layout whose first block is in row 0 and column 0 of the grid and whose
 * local matrices are column-major without gaps. `struct_bytes` is sizeof *layout. Errors:
 * INVALID_ARGUMENT; then *layout is untouched. The sizes are checked when the layout is used. */
TG_API tg_status tg_dist_init_layout(tg_dist_layout *layout, size_t struct_bytes, tg_type type,
                                     int64_t row_count, int64_t col_count, int64_t row_block,
                                     int64_t col_block);

/* Sets *rows and *cols to the size of the local matrix of the rank in that place of the grid, or of
 * its part of the submatrix; it may be 0. Errors: INVALID_ARGUMENT, SIZE_OVERFLOW. */
TG_API tg_status tg_dist_get_local_size(const tg_dist_layout *layout, const tg_dist_grid *grid,
                                        int grid_row, int grid_col, int64_t *rows, int64_t *cols);

/* Bytes that a call moved between this rank and others. The messages of the agreement on errors do
 * not count. */
typedef struct tg_dist_counts {
    size_t struct_bytes;
    int64_t bytes_sent, bytes_received;
} tg_dist_counts;

/* Copies a matrix from one layout to another of the same grid and type, transposed where `op` says
 * so. `source` and `target` are local matrices, which do not overlap. `counts` may be NULL.
 * Collective. Errors: INVALID_ARGUMENT, SIZE_OVERFLOW (a message above 2^31 - 1 rows or columns),
 * OUT_OF_MEMORY, DEVICE_FAILURE. */
TG_API tg_status tg_dist_redistribute(const tg_dist_grid *grid, tg_operation op,
                                      const tg_dist_layout *source_layout, const void *source,
                                      const tg_dist_layout *target_layout, void *target,
                                      tg_dist_counts *counts);

/* ---------------------------------------------------------------------- product, since 0.1 -- */

/* One product. Types are those that tg_problem allows. C has D's layout. */
typedef struct tg_dist_problem {
    size_t struct_bytes;
    const tg_dist_layout *a, *b, *d;
    tg_operation op_a, op_b;
    double alpha, beta;         /* alpha = 0: A and B are not read; beta = 0: C is not read */
    int64_t layer_memory_bytes; /* >= 0; bytes that a rank may take to multiply in layers, as is
                                   done where the ranks then send fewer bytes. 0: never. GPUs: 0 */
} tg_dist_problem;

/* Sets all members to D = A B. The layouts are kept as pointers. Errors: INVALID_ARGUMENT; then
 * *problem is untouched. */
TG_API tg_status tg_dist_init_problem(tg_dist_problem *problem, size_t struct_bytes,
                                      const tg_dist_layout *a, const tg_dist_layout *b,
                                      const tg_dist_layout *d);

/* Multiplies, with the local matrices of this rank. `context` (NULL: the default one) is of the CPU
 * on all ranks, or of a GPU on all of them. `c` is D itself or does not overlap it. An A or B whose
 * layout does not fit D's is first copied to one that does (docs/distributed.md). Parts are sent
 * while others are multiplied. D keeps the bound of tg_precision; its bits depend on grid and
 * layouts. `counts` may be NULL. Collective. Errors: those of tg_multiply and of
 * tg_dist_redistribute; then D is undefined unless an argument was wrong.
 *
 * On GPUs the local matrices are in the GPU's memory, follow the work of the default stream, and D
 * is complete on return. Each process sees all GPUs of its host, and one GPU serves all calls of a
 * grid. Ranks of several hosts are joined by NCCL or MPI (docs/distributed.md). A rank receives
 * op(A) of its rows and op(B) of its columns, whole, into memory that the grid keeps. */
TG_API tg_status tg_dist_multiply(const tg_dist_grid *grid, tg_context *context,
                                  const tg_dist_problem *problem, const void *a, const void *b,
                                  const void *c, void *d, tg_dist_counts *counts);

/* Sets *counts, whose struct_bytes is set, to what tg_dist_multiply sends and receives on the rank
 * in that place of the grid. Nothing is sent, and the call is not collective. Errors:
 * INVALID_ARGUMENT, and those of tg_create_plan. */
TG_API tg_status tg_dist_predict_counts(const tg_dist_grid *grid, const tg_dist_problem *problem,
                                        int grid_row, int grid_col, tg_dist_counts *counts);

/* --------------------------------------------------------------- tensor parallel, since 0.1 -- */

/* Two products of the ranks of a grid of any form, on GPUs. `problem` is the product of this rank,
 * with pointers to memory of its GPU and a batch of one. The rows of one of its matrices are those
 * of all ranks, one rank's behind the other's, as many of each as it passes; 0 are allowed. The
 * calls only put work into `stream`, of this rank's GPU, as tg_execute_plan does; they wait for the
 * other ranks' calls, not for their GPUs, unless MPI joins the ranks. The work follows that of the
 * grid's last call, whichever stream that took. D shares no memory with A and B. Messages and
 * products overlap where that is faster. `counts` may be NULL. Collective. Errors: those of
 * tg_multiply, and UNSUPPORTED. */

/* D = op(A) op(B), where problem->a is this rank's rows of op(A), and D has those of all ranks. B,
 * D, the scales and the epilogue are the rank's own: columns of a larger product, usually. Scales
 * of A are those of all rows. The rows of op(A), or its columns, are contiguous, on all ranks the
 * same ones. */
TG_API tg_status tg_dist_all_gather_multiply(const tg_dist_grid *grid, tg_context *context,
                                             const tg_problem *problem, void *stream,
                                             tg_dist_counts *counts);

/* D is this rank's rows of the sum over the ranks of alpha op(A) op(B). A and B are the rank's own:
 * steps of k of a larger product, usually. The sum is formed in the order of the ranks, the rank
 * that keeps the rows last; each addition rounds to D's type once. D has 16 bits or more an element
 * and contiguous rows; beta is 0, and there is no bias and no activation. */
TG_API tg_status tg_dist_multiply_reduce_scatter(const tg_dist_grid *grid, tg_context *context,
                                                 const tg_problem *problem, void *stream,
                                                 tg_dist_counts *counts);

#ifdef __cplusplus
}
#endif
#endif /* TILEGEMM_MPI_H */
