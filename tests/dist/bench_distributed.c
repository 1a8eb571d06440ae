/* Times products of the ranks that mpirun starts, beside the same product on one of them.
 * usage: bench_distributed multiply|all_gather|reduce_scatter cpu|cuda TYPE ROWS COLS ROUNDS
 *                          MxNxK...   (all after a grid of ROWS x COLS ranks)
 * Rank 0 prints a line of JSON for each shape: the shortest of the rounds in seconds, the rate, the
 * speed beside one rank over the number of ranks, and the bytes that each rank sent. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tilegemm_mpi.h"

enum { RANKS_MAX = 64, FILL_BYTES = 1 << 24 };

/* The product that is timed, on this rank. */
typedef struct bench {
    const char *product;
    tg_type type;
    int is_gpu, grid_rows, grid_cols, rank, rank_count, rounds;
    int64_t m, n, k;
    tg_context *context;
    tg_dist_grid *grid;
    char *fill; /* FILL_BYTES of random numbers in [-1, 1) */
} bench;

static void require(tg_status status)
{
    if (!status)
        return;
    fprintf(stderr, "%s %s\n", tg_get_error_detail(), tg_dist_get_error_detail());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Allocates a matrix of random numbers, whose size is rounded up to whole fills. */
static void *make_matrix(const bench *of, int64_t rows, int64_t cols)
{
    const int64_t bytes = rows * cols * tg_get_type_bytes(of->type);
    void *memory = NULL;
    require(tg_allocate_memory(of->context, bytes + FILL_BYTES, &memory));
    for (int64_t at = 0; at < bytes; at += FILL_BYTES)
        require(tg_copy_to_device(of->context, (char *)memory + at, of->fill, FILL_BYTES));
    return memory;
}

static tg_matrix view(const bench *of, int64_t rows, int64_t cols)
{
    return tg_make_matrix(of->type, make_matrix(of, rows, cols), rows, cols);
}

static void release(const bench *of, const tg_problem *problem)
{
    tg_release_memory(of->context, problem->a.data);
    tg_release_memory(of->context, problem->b.data);
    tg_release_memory(of->context, problem->d.data);
}

/* Returns the rows or columns that portion `portion` of `portions` has. */
static int64_t share(int64_t count, int portions, int portion)
{
    const int64_t block = (count + portions - 1) / portions, start = block * portion;
    return start >= count ? 0 : count - start < block ? count - start : block;
}

/* Returns the seconds of one product on rank 0 alone. */
static double time_alone(const bench *of)
{
    double seconds = INFINITY;
    if (of->rank == 0) {
        const tg_problem problem =
            tg_make_problem(view(of, of->m, of->k), view(of, of->k, of->n), view(of, of->m, of->n));
        for (int round = 0; round < of->rounds; round++) {
            const double start = MPI_Wtime();
            require(tg_multiply(of->context, &problem));
            require(tg_synchronize(of->context, NULL));
            seconds = fmin(seconds, MPI_Wtime() - start);
        }
        release(of, &problem);
    }
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds;
}

/* The product of this rank, and its layouts. */
typedef struct bench_product {
    tg_problem problem;
    tg_dist_layout a, b, d;
    tg_dist_problem distributed;
} bench_product;

/* Makes a layout of one block a rank, row-major. */
static tg_dist_layout make_layout(const bench *of, int64_t rows, int64_t cols)
{
    const int64_t row_block = (rows + of->grid_rows - 1) / of->grid_rows;
    const int64_t col_block = (cols + of->grid_cols - 1) / of->grid_cols;
    tg_dist_layout layout;
    require(tg_dist_init_layout(&layout, sizeof layout, of->type, rows, cols,
                                row_block > 0 ? row_block : 1, col_block > 0 ? col_block : 1));
    layout.is_row_major = 1;
    return layout;
}

static bench_product make_product(const bench *of)
{
    const int row = of->rank / of->grid_cols, col = of->rank % of->grid_cols;
    bench_product product = {.problem = {.struct_bytes = 0}};
    int64_t m = of->m, n = of->n, a_k = of->k, b_k = of->k, d_m = of->m;
    if (strcmp(of->product, "multiply") == 0) {
        product.a = make_layout(of, of->m, of->k);
        product.b = make_layout(of, of->k, of->n);
        product.d = make_layout(of, of->m, of->n);
        m = d_m = share(of->m, of->grid_rows, row);
        n = share(of->n, of->grid_cols, col);
        a_k = share(of->k, of->grid_cols, col);
        b_k = share(of->k, of->grid_rows, row);
    } else if (strcmp(of->product, "all_gather") == 0) {
        m = share(of->m, of->rank_count, of->rank);
        n = share(of->n, of->rank_count, of->rank);
    } else {
        a_k = b_k = share(of->k, of->rank_count, of->rank);
        d_m = share(of->m, of->rank_count, of->rank);
    }
    product.problem = tg_make_problem(view(of, m, a_k), view(of, b_k, n), view(of, d_m, n));
    return product;
}

static void run_once(const bench *of, bench_product *product, tg_dist_counts *counts)
{
    const tg_problem *problem = &product->problem;
    if (strcmp(of->product, "multiply") == 0) {
        require(tg_dist_init_problem(&product->distributed, sizeof product->distributed,
                                     &product->a, &product->b, &product->d));
        require(tg_dist_multiply(of->grid, of->context, &product->distributed, problem->a.data,
                                 problem->b.data, NULL, problem->d.data, counts));
        return;
    }
    require(strcmp(of->product, "all_gather") == 0
                ? tg_dist_all_gather_multiply(of->grid, of->context, problem, NULL, counts)
                : tg_dist_multiply_reduce_scatter(of->grid, of->context, problem, NULL, counts));
    require(tg_synchronize(of->context, NULL));
}

/* Returns the seconds of the slowest rank, in the shortest round. */
static double time_together(const bench *of, tg_dist_counts *counts)
{
    bench_product product = make_product(of);
    double seconds = INFINITY;
    for (int round = 0; round < of->rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        run_once(of, &product, counts);
        double mine = MPI_Wtime() - start, slowest;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        seconds = fmin(seconds, slowest);
    }
    release(of, &product.problem);
    return seconds;
}

static void run_shape(const bench *of)
{
    tg_dist_counts counts = {.struct_bytes = sizeof counts};
    int64_t sent[RANKS_MAX];
    char shape[80];
    const double alone_s = time_alone(of), seconds = time_together(of, &counts);
    MPI_Gather(&counts.bytes_sent, 1, MPI_INT64_T, sent, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (of->rank)
        return;
    snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)of->m, (long long)of->n,
             (long long)of->k);
    json_t *bytes = json_array();
    for (int i = 0; i < of->rank_count; i++) {
        json_t *count = json_integer(sent[i]);
        json_array_append(bytes, count);
        json_decref(count);
    }
    json_t *line = json_pack(
        "{s:s, s:s, s:s, s:s, s:[i,i], s:f, s:f, s:f, s:f, s:o}", "product", of->product, "device",
        of->is_gpu ? "cuda" : "cpu", "type", tg_get_type_name(of->type), "shape", shape, "grid",
        of->grid_rows, of->grid_cols, "seconds", seconds, "tflop_per_s",
        2e-12 * (double)of->m * (double)of->n * (double)of->k / seconds, "one_rank_seconds",
        alone_s, "efficiency", alone_s / seconds / of->rank_count, "bytes_sent", bytes);
    char *text = json_dumps(line, JSON_REAL_PRECISION(5));
    puts(text);
    fflush(stdout);
    free(text);
    json_decref(line);
}

static void open_bench(bench *of)
{
    char device[24] = "cpu";
    int count = 0;
    if (of->is_gpu)
        require(tg_count_devices("cuda", &count));
    if (count)
        snprintf(device, sizeof device, "cuda:%d", of->rank % count);
    const tg_context_options options = {
        .struct_bytes = sizeof options, .device = device, .thread_count = !of->is_gpu};
    require(tg_create_context(&options, &of->context));
    require(tg_dist_create_grid(MPI_COMM_WORLD, of->grid_rows, of->grid_cols, &of->grid));
    uint64_t state = (uint64_t)of->rank + 1;
    of->fill = malloc(FILL_BYTES);
    if (!of->fill)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int64_t i = 0; i < FILL_BYTES / tg_get_type_bytes(of->type); i++)
        check_set_element(of->type, of->fill, i, check_next_uniform(&state));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    tg_problem problem;
    if (argc < 8) {
        fprintf(stderr, "usage: see the first lines of bench_distributed.c\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bench of = {.product = argv[1],
                .is_gpu = strcmp(argv[2], "cuda") == 0,
                .grid_rows = atoi(argv[4]),
                .grid_cols = atoi(argv[5]),
                .rounds = atoi(argv[6])};
    MPI_Comm_rank(MPI_COMM_WORLD, &of.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &of.rank_count);
    if (strcmp(of.product, "multiply") && strcmp(of.product, "all_gather") &&
        strcmp(of.product, "reduce_scatter")) {
        fprintf(stderr, "no product %s; usage: see the first lines of bench_distributed.c\n",
                of.product);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 7; i < argc; i++) {
        char text[96];
        snprintf(text, sizeof text, "%s:%s", argv[i], argv[3]);
        require(tg_parse_problem(text, &problem, sizeof problem));
        of.type = problem.a.type;
        of.m = problem.d.row_count;
        of.n = problem.d.col_count;
        of.k = problem.a.col_count;
        if (!of.grid)
            open_bench(&of);
        run_shape(&of);
    }
    tg_dist_destroy_grid(of.grid);
    tg_destroy_context(of.context);
    free(of.fill);
    MPI_Finalize();
    return 0;
}
