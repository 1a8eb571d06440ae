/* A rank's matrices of a tensor-parallel product. */
#ifndef TENSOR_PORTION_H
#define TENSOR_PORTION_H

#include "tilegemm.h"

/* A matrix of which this rank has the rows from first_row on, or the columns from first_col on. */
typedef struct tensor_portion {
    tg_matrix matrix;
    int64_t first_row, first_col, bytes;
    void *poison; /* as many bytes */
} tensor_portion;

/* Makes the portion, row-major or column-major with gaps, and fills it by the formula of `which`,
 * or with poison if that is 0. */
tensor_portion make_tensor_portion(tg_type type, int64_t rows, int64_t cols, int64_t first_row,
                                   int64_t first_col, char which, int is_col_major, int64_t gap);
void free_tensor_portion(const tensor_portion *made);

/* Returns 1 if D is alpha A B within the bound, where A and B are those of `terms` ranks from
 * first_term on, and if nothing beside D's rows was written. */
int is_tensor_right(const tensor_portion *d, const int64_t *k_counts, int first_term, int terms,
                    double alpha);

#endif
