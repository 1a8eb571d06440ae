/* Compares a distributed product with ScaLAPACK's on the same local matrices, and prints the
 * seconds of both: the shortest of `rounds`, taken in turn. Fails if an element of ours is outside
 * the bound of tg_precision around the product of the same numbers in FP64.
 * usage: beside_pdgemm fp32|fp64 SIZE BLOCK GRID_ROWS GRID_COLS ROUNDS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tilegemm_mpi.h"

int Csys2blacs_handle(MPI_Comm comm);
void Cblacs_gridinit(int *grid, const char *order, int rows, int cols);
void descinit_(int *descriptor, const int *m, const int *n, const int *mb, const int *nb,
               const int *row, const int *col, const int *grid, const int *leading, int *info);

#define DECLARE_PRODUCT(name, number)                                                              \
    void name(const char *op_a, const char *op_b, const int *m, const int *n, const int *k,        \
              const number *alpha, const number *a, const int *ia, const int *ja, const int *da,   \
              const number *b, const int *ib, const int *jb, const int *db, const number *beta,    \
              number *c, const int *ic, const int *jc, const int *dc)
DECLARE_PRODUCT(pdgemm_, double);
DECLARE_PRODUCT(psgemm_, float);

typedef struct comparison {
    tg_type type;
    int size, block, grid_rows, grid_cols, rounds;
    int rank;
    int64_t count; /* elements of a local matrix */
    int descriptor[9];
} comparison;

static void *allocate(int64_t bytes)
{
    void *data = malloc((size_t)bytes + 1);
    if (!data)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return data;
}

static void *make_random(const comparison *of, uint64_t seed)
{
    void *data = allocate(of->count * tg_get_type_bytes(of->type));
    for (int64_t i = 0; i < of->count; i++)
        check_set_element(of->type, data, i, check_next_uniform(&seed));
    return data;
}

/* Returns the numbers, or their magnitudes, in FP64. */
static double *widen(const comparison *of, const void *data, int takes_magnitude)
{
    double *wide = allocate(of->count * (int64_t)sizeof *wide);
    for (int64_t i = 0; i < of->count; i++) {
        const double value = check_get_element(of->type, data, i);
        wide[i] = takes_magnitude ? fabs(value) : value;
    }
    return wide;
}

static void run_scalapack(const comparison *of, tg_type type, const void *a, const void *b, void *d)
{
    const int one = 1, size = of->size, *descriptor = of->descriptor;
    if (type == TG_TYPE_FP64) {
        const double alpha = 1, beta = 0;
        pdgemm_("N", "N", &size, &size, &size, &alpha, a, &one, &one, descriptor, b, &one, &one,
                descriptor, &beta, d, &one, &one, descriptor);
    } else {
        const float alpha = 1, beta = 0;
        psgemm_("N", "N", &size, &size, &size, &alpha, a, &one, &one, descriptor, b, &one, &one,
                descriptor, &beta, d, &one, &one, descriptor);
    }
}

/* Returns AB, or |A||B|, by pdgemm. */
static double *multiply_wide(const comparison *of, const void *a, const void *b,
                             int takes_magnitudes)
{
    double *wide_a = widen(of, a, takes_magnitudes), *wide_b = widen(of, b, takes_magnitudes);
    double *product = allocate(of->count * (int64_t)sizeof *product);
    run_scalapack(of, TG_TYPE_FP64, wide_a, wide_b, product);
    free(wide_a);
    free(wide_b);
    return product;
}

/* Returns 1 on all ranks if one of them has an element outside the bound. */
static int find_fault(const comparison *of, const void *a, const void *b, const void *ours)
{
    double *exact = multiply_wide(of, a, b, 0), *magnitude = multiply_wide(of, a, b, 1);
    const double u = of->type == TG_TYPE_FP64 ? 0x1p-53 : 0x1p-24, s = (of->size + 3) * u;
    const double exact_s = (of->size + 3) * 0x1p-53; /* the reference has an error too */
    int bad = 0, all_bad;
    for (int64_t i = 0; i < of->count; i++) {
        const double bound =
            (s / (1 - s) + exact_s / (1 - exact_s)) * magnitude[i] + u * fabs(exact[i]);
        bad |= !(fabs(check_get_element(of->type, ours, i) - exact[i]) <= bound);
    }
    MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    free(exact);
    free(magnitude);
    return all_bad;
}

/* Opens the grids of both libraries and sets the local sizes. */
static void open_grids(comparison *of, const tg_dist_layout *layout, tg_dist_grid **grid)
{
    int info, zero = 0, blacs = Csys2blacs_handle(MPI_COMM_WORLD);
    int64_t rows, cols;
    Cblacs_gridinit(&blacs, "Row", of->grid_rows, of->grid_cols);
    if (tg_dist_create_grid(MPI_COMM_WORLD, of->grid_rows, of->grid_cols, grid) ||
        tg_dist_get_local_size(layout, *grid, of->rank / of->grid_cols, of->rank % of->grid_cols,
                               &rows, &cols))
        MPI_Abort(MPI_COMM_WORLD, 1);
    const int leading = rows > 1 ? (int)rows : 1;
    of->count = rows * cols;
    descinit_(of->descriptor, &of->size, &of->size, &of->block, &of->block, &zero, &zero, &blacs,
              &leading, &info);
}

/* Returns 1 if our product is wrong. */
static int compare(comparison *of)
{
    tg_dist_grid *grid = NULL;
    tg_context *context = NULL;
    tg_context_options options = {
        .struct_bytes = sizeof options, .device = "cpu", .thread_count = 1};
    const tg_dist_layout layout = {.struct_bytes = sizeof layout,
                                   .type = of->type,
                                   .row_count = of->size,
                                   .col_count = of->size,
                                   .row_block = of->block,
                                   .col_block = of->block};
    const tg_dist_problem problem = {
        .struct_bytes = sizeof problem, .a = &layout, .b = &layout, .d = &layout, .alpha = 1};
    open_grids(of, &layout, &grid);
    if (tg_create_context(&options, &context))
        MPI_Abort(MPI_COMM_WORLD, 1);
    void *a = make_random(of, 2 * (uint64_t)of->rank + 1);
    void *b = make_random(of, 2 * (uint64_t)of->rank + 2);
    void *ours = make_random(of, 0), *theirs = make_random(of, 0);
    double seconds[2] = {INFINITY, INFINITY};
    for (int round = 0; round < 2 * of->rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        if (round % 2)
            run_scalapack(of, of->type, a, b, theirs);
        else if (tg_dist_multiply(grid, context, &problem, a, b, NULL, ours, NULL))
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        seconds[round % 2] = fmin(seconds[round % 2], MPI_Wtime() - start);
    }
    const int is_wrong = find_fault(of, a, b, ours);
    if (of->rank == 0)
        printf("tilegemm_s %.4f scalapack_s %.4f %s\n", seconds[0], seconds[1],
               is_wrong ? "WRONG" : "right");
    free(a);
    free(b);
    free(ours);
    free(theirs);
    tg_destroy_context(context);
    tg_dist_destroy_grid(grid);
    return is_wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 7)
        MPI_Abort(MPI_COMM_WORLD, 2);
    comparison of = {.type = strcmp(argv[1], "fp64") == 0 ? TG_TYPE_FP64 : TG_TYPE_FP32,
                     .size = atoi(argv[2]),
                     .block = atoi(argv[3]),
                     .grid_rows = atoi(argv[4]),
                     .grid_cols = atoi(argv[5]),
                     .rounds = atoi(argv[6])};
    MPI_Comm_rank(MPI_COMM_WORLD, &of.rank);
    const int is_wrong = compare(&of);
    MPI_Finalize();
    return is_wrong;
}
