/* A random distributed product whose operands come from a formula, so that each rank can form any
 * element of them. */
#ifndef DISTRIBUTED_CASE_H
#define DISTRIBUTED_CASE_H

#include "check.h"
#include "tilegemm_mpi.h"

enum { POISON = 0xa5 }; /* a byte of memory that is not written */
enum { UNREAD = 'u' };  /* a matrix of Inf, for a C that must not be read */

typedef struct distributed_case {
    tg_dist_layout a, b, d;
    tg_dist_problem problem;
    int grid_rows, grid_cols, rank;
    void *local_a, *local_b, *local_c, *local_d; /* owned */
    int64_t bytes_a, bytes_b, bytes_d;
} distributed_case;

/* Returns a random whole number from `least` to `most`. */
int64_t draw_number(uint64_t *state, int64_t least, int64_t most);

/* Returns a random layout of a matrix. */
tg_dist_layout draw_layout(uint64_t *state, tg_type type, int64_t rows, int64_t cols,
                           const distributed_case *of);

/* Draws a product with at most k_most values of k, the same one on all ranks. Its types are FP32 or
 * FP64 if is_wide. */
distributed_case draw_case(uint64_t *state, int64_t k_most, int rank, int rank_count, int is_wide);

/* Returns element (i, j) of matrix `which`, as its type holds it. */
double get_case_element(tg_type type, char which, int64_t i, int64_t j);

/* Allocates this rank's part of a matrix and fills it; memory between columns is poisoned. */
void *make_local(const tg_dist_layout *layout, const distributed_case *of, char which,
                 int64_t *bytes);

/* Calls visit(global row, global column, element of `local`) for each element of this rank's
 * portion. */
typedef int visit_element(void *user, int64_t i, int64_t j, int64_t place);
int visit_local(const tg_dist_layout *layout, const distributed_case *of, visit_element *visit,
                void *user);

/* Fills the operands of a case whose problem is set; frees them. */
void make_case_operands(distributed_case *made);
void free_case(distributed_case *made);

/* Returns 1 if this rank's portion of D is within the bound, and what lies between is untouched. */
int is_case_right(const distributed_case *made);

/* Counts what is not true in `failures`, and prints it with this rank's number and the last error's
 * detail. */
extern int failures;
void expect(int is_true, const char *what, int64_t number);

#endif
