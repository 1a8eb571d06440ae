/* Multiplies two 2 x 2 matrices that are distributed over all ranks with the installed library. The
 * exit status is 0 if this rank's part of D is right. */
#include <stdio.h>
#include <tilegemm_mpi.h>

int main(int argc, char **argv)
{
    int rank, rank_count, is_wrong = 0;
    double a[4] = {1, 2, 3, 4}, b[4] = {0, 1, 1, 0}, d[4] = {-1, -1, -1, -1};
    const double expected[4] = {3, 4, 1, 2}; /* by columns, as a and b are */
    const tg_dist_layout layout = {.struct_bytes = sizeof layout,
                                   .type = TG_TYPE_FP64,
                                   .row_count = 2,
                                   .col_count = 2,
                                   .row_block = 2,
                                   .col_block = 2};
    const tg_dist_problem problem = {
        .struct_bytes = sizeof problem, .a = &layout, .b = &layout, .d = &layout, .alpha = 1};
    tg_dist_grid *grid = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
    if (tg_dist_create_grid(MPI_COMM_WORLD, rank_count, 1, &grid) ||
        tg_dist_multiply(grid, NULL, &problem, a, b, NULL, d, NULL)) {
        fprintf(stderr, "rank %d: %s\n", rank, tg_dist_get_error_detail());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < 4; i++)
        is_wrong |= d[i] != (rank == 0 ? expected[i] : -1);
    if (rank == 0)
        printf("%s %d\n", tg_get_version(), is_wrong == 0);
    tg_dist_destroy_grid(grid);
    MPI_Finalize();
    return is_wrong;
}
