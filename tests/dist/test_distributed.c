/* Distributed products on the ranks that mpirun starts.
 * usage: test_distributed products|wide|layers|layouts|structs|faults|memory|dies [fake|cuda]
 * The ranks multiply on the CPU, on GPUs of the tests' driver, or on those of this machine. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "distributed_case.h"
#include "../harness/stride.h"
#include "rank_gpu.h"

static int rank, rank_count;
static const char *gpu; /* "fake", "cuda", or NULL */
static tg_context *context;

/* The tests' driver computes FP32 and FP64. */
static int is_fake(void)
{
    return gpu && strcmp(gpu, "fake") == 0;
}

/* Returns the status of the product of a case. On a GPU copies of its matrices are multiplied. */
static tg_status multiply_case(const tg_dist_grid *grid, distributed_case *made, void *c,
                               tg_dist_counts *counts)
{
    if (!gpu)
        return tg_dist_multiply(grid, context, &made->problem, made->local_a, made->local_b, c,
                                made->local_d, counts);
    const int is_in_place = c == made->local_d;
    void *a = move_to_gpu(context, made->local_a, made->bytes_a);
    void *b = move_to_gpu(context, made->local_b, made->bytes_b);
    void *d = move_to_gpu(context, made->local_d, made->bytes_d);
    void *gpu_c = is_in_place || !c ? d : move_to_gpu(context, c, made->bytes_d);
    const tg_status status =
        tg_dist_multiply(grid, context, &made->problem, a, b, gpu_c, d, counts);
    move_from_gpu(context, made->local_d, d, made->bytes_d);
    tg_release_memory(context, a);
    tg_release_memory(context, b);
    if (gpu_c != d)
        tg_release_memory(context, gpu_c);
    return status;
}

static void run_case(distributed_case *made, int is_in_place, int64_t number)
{
    tg_dist_grid *grid = NULL;
    tg_dist_counts counts = {.struct_bytes = sizeof counts}, predicted = counts;
    made->problem.a = &made->a;
    made->problem.b = &made->b;
    made->problem.d = &made->d;
    make_case_operands(made);
    if (is_in_place)
        memcpy(made->local_d, made->local_c, (size_t)made->bytes_d);
    expect(tg_dist_create_grid(MPI_COMM_WORLD, made->grid_rows, made->grid_cols, &grid) == 0,
           "grid", number);
    expect(multiply_case(grid, made, is_in_place ? made->local_d : made->local_c, &counts) ==
               TG_STATUS_OK,
           "multiply", number);
    expect(is_case_right(made), "result", number);
    expect(tg_dist_predict_counts(grid, &made->problem, rank / made->grid_cols,
                                  rank % made->grid_cols, &predicted) == TG_STATUS_OK,
           "prediction", number);
    expect(counts.bytes_sent == predicted.bytes_sent, "bytes sent", counts.bytes_sent);
    expect(counts.bytes_received == predicted.bytes_received, "bytes received",
           counts.bytes_received);
    int64_t mine[2] = {counts.bytes_sent, counts.bytes_received}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(all[0] == all[1], "all that is sent is received", number);
    tg_dist_destroy_grid(grid);
    free_case(made);
}

static void test_products(void)
{
    const int apart = gpu ? 5 : 1;
    for (int64_t i = apart * stride_get_first(); i < 100; i += apart * stride_get()) {
        uint64_t state = (uint64_t)i;
        distributed_case made = draw_case(&state, 90, rank, rank_count, is_fake());
        run_case(&made, (int)(i % 2), i);
    }
}

/* Slabs of several owners and of more than one value of k, and several stripes of D. */
static void test_wide(void)
{
    for (int64_t i = stride_get_first(); i < 12; i += stride_get()) {
        uint64_t state = (uint64_t)i + 1000;
        distributed_case made = draw_case(&state, 1500, rank, rank_count, is_fake());
        const int64_t k = made.problem.op_a ? made.a.row_count : made.a.col_count;
        made.problem.alpha = 1;
        made.a.row_block = made.d.row_block;
        made.a.row_source = made.d.row_source;
        made.a.row_start = made.d.row_start;
        made.a.col_block = 130;
        made.a.local_leading_dimension = made.b.local_leading_dimension = 0;
        made.b.row_block = 200;
        made.problem.op_b = TG_OPERATION_NONE;
        made.b.row_count = k;
        made.b.col_count = made.d.col_count = i < 6 ? 1100 : made.d.col_count;
        made.d.local_leading_dimension = 0;
        made.b.col_block = made.d.col_block;
        made.b.col_source = made.d.col_source;
        made.b.col_start = made.d.col_start;
        if (i < 6) {
            made.d.row_count = 3;
            *(made.problem.op_a ? &made.a.col_count : &made.a.row_count) = 3;
        }
        run_case(&made, 0, i);
    }
}

/* Layers are chosen where they send less and memory allows, and the bytes are those predicted. */
static void test_layers(void)
{
    int layered_count = 0;
    for (int64_t i = 0; i < 24; i++) {
        uint64_t state = (uint64_t)i + 5000;
        distributed_case made = draw_case(&state, 40, rank, rank_count, is_fake());
        tg_dist_counts flat = {.struct_bytes = sizeof flat}, layered = flat;
        tg_dist_grid *grid = NULL;
        made.problem.alpha = 0.5;
        /* Many values of k, and few rows and columns of D. */
        const int64_t k = 300 + i % 3 * 700;
        *(made.problem.op_a ? &made.a.row_count : &made.a.col_count) = k;
        *(made.problem.op_b ? &made.b.col_count : &made.b.row_count) = k;
        made.a.local_leading_dimension = made.b.local_leading_dimension = 0;
        made.problem.a = &made.a;
        made.problem.b = &made.b;
        made.problem.d = &made.d;
        tg_dist_create_grid(MPI_COMM_WORLD, made.grid_rows, made.grid_cols, &grid);
        int64_t sent[3] = {0, 0, 0};
        for (int j = 0; j < rank_count; j++) {
            const int row = j / made.grid_cols, col = j % made.grid_cols;
            made.problem.layer_memory_bytes = 0;
            tg_dist_predict_counts(grid, &made.problem, row, col, &flat);
            made.problem.layer_memory_bytes = 1;
            tg_dist_predict_counts(grid, &made.problem, row, col, &layered);
            expect(layered.bytes_sent == flat.bytes_sent, "no memory for layers", i);
            made.problem.layer_memory_bytes = 1 << 30;
            tg_dist_predict_counts(grid, &made.problem, row, col, &layered);
            sent[0] += flat.bytes_sent;
            sent[1] += layered.bytes_sent;
        }
        expect(sent[1] <= sent[0], "layers send no more", sent[1] - sent[0]);
        layered_count += sent[1] < sent[0];
        tg_dist_destroy_grid(grid);
        run_case(&made, (int)(i % 2), i);
    }
    expect(rank_count == 1 || layered_count > 5, "cases in layers", layered_count);
}

typedef struct moved_state {
    const tg_dist_layout *layout;
    const void *data;
    int is_transposed;
} moved_state;

static int is_moved(void *user, int64_t i, int64_t j, int64_t place)
{
    const moved_state *state = user;
    const tg_type type = state->layout->type;
    return check_get_element(type, state->data, place) ==
           get_case_element(type, 'a', state->is_transposed ? j : i, state->is_transposed ? i : j);
}

static void test_layouts(void)
{
    for (int64_t i = 0; i < 60; i++) {
        uint64_t state = (uint64_t)i;
        distributed_case made = draw_case(&state, 60, rank, rank_count, is_fake());
        const int is_transposed = (int)(i % 2);
        const tg_operation op = is_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        const tg_dist_layout to =
            draw_layout(&state, made.a.type, is_transposed ? made.a.col_count : made.a.row_count,
                        is_transposed ? made.a.row_count : made.a.col_count, &made);
        int64_t bytes, rows, cols;
        tg_dist_grid *grid = NULL;
        void *source = make_local(&made.a, &made, 'a', &bytes);
        void *target = make_local(&to, &made, 0, &bytes);
        moved_state moved = {&to, target, is_transposed};
        tg_dist_create_grid(MPI_COMM_WORLD, made.grid_rows, made.grid_cols, &grid);
        expect(tg_dist_redistribute(grid, op, &made.a, source, &to, target, NULL) == TG_STATUS_OK,
               "redistribute", i);
        expect(visit_local(&to, &made, is_moved, &moved), "elements", i);
        expect(tg_dist_get_local_size(&to, grid, rank / made.grid_cols, rank % made.grid_cols,
                                      &rows, &cols) == TG_STATUS_OK,
               "local size", i);
        tg_dist_destroy_grid(grid);
        free(source);
        free(target);
    }
}

/* A product of 500 x 500 on a grid of 2 x 2, whose A must be converted. */
static distributed_case make_square(void)
{
    distributed_case made = {.rank = rank, .grid_rows = 2, .grid_cols = 2};
    made.a = (tg_dist_layout){.struct_bytes = sizeof made.a,
                              .type = TG_TYPE_FP64,
                              .row_count = 500,
                              .col_count = 500,
                              .row_block = 64,
                              .col_block = 64};
    made.b = made.d = made.a;
    made.problem = (tg_dist_problem){.struct_bytes = sizeof made.problem, .alpha = 1};
    make_case_operands(&made);
    return made;
}

static void expect_failure(tg_status got, tg_status expected, int failing_rank, const char *word)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "rank %d failed", failing_rank);
    expect(got == expected, "status", got);
    expect(strstr(tg_dist_get_error_detail(), word) != NULL, word, failing_rank);
    if (failing_rank >= 0 && failing_rank != rank)
        expect(strstr(tg_dist_get_error_detail(), prefix) != NULL, prefix, failing_rank);
}

static void test_faults(void)
{
    distributed_case made = make_square();
    tg_dist_problem problem = made.problem;
    tg_dist_grid *grid = NULL;
    expect_failure(tg_dist_create_grid(MPI_COMM_WORLD, 3, 2, &grid), TG_STATUS_INVALID_ARGUMENT, -1,
                   "row_count = 3");
    expect_failure(tg_dist_create_grid(MPI_COMM_WORLD, rank == 1 ? 4 : 2, rank == 1 ? 1 : 2, &grid),
                   TG_STATUS_INVALID_ARGUMENT, -1, "row_count");
    expect(tg_dist_create_grid(MPI_COMM_WORLD, 2, 2, &grid) == TG_STATUS_OK, "grid", 0);
    problem.a = &made.a;
    problem.b = &made.b;
    problem.d = &made.d;
#define MULTIPLY(d)                                                                                \
    tg_dist_multiply(grid, context, &problem, made.local_a, made.local_b, NULL, d, NULL)
    expect_failure(MULTIPLY(rank == 2 ? NULL : made.local_d), TG_STATUS_INVALID_ARGUMENT, 2,
                   "d is NULL");
    made.b.row_block = rank == 1 ? 0 : 64;
    expect_failure(MULTIPLY(made.local_d), TG_STATUS_INVALID_ARGUMENT, 1, "row_block of b is 0");
    made.b.row_block = 64;
    made.b.row_start = rank == 1 ? -1 : 0;
    expect_failure(MULTIPLY(made.local_d), TG_STATUS_INVALID_ARGUMENT, 1, "row_start of b is -1");
    made.b.row_start = 0;
    made.b.row_count = made.b.col_count = (int64_t)1 << 48;
    expect_failure(MULTIPLY(made.local_d), TG_STATUS_SIZE_OVERFLOW, 0, "at most 2^56");
    made.b.row_count = made.b.col_count = 500;
    made.b.row_block = rank == 1 ? 32 : 64;
    expect_failure(MULTIPLY(made.local_d), TG_STATUS_INVALID_ARGUMENT, -1, "not the same on all");
    made.b.row_block = 64;
    made.d.local_leading_dimension = rank == 3 ? 7 : 0;
    expect_failure(MULTIPLY(made.local_d), TG_STATUS_INVALID_ARGUMENT, 3,
                   "local_leading_dimension of d is 7");
    made.d.local_leading_dimension = 0;
    problem.alpha = rank ? 1 : 2;
    expect_failure(MULTIPLY(made.local_d), TG_STATUS_INVALID_ARGUMENT, -1, "alpha");
    problem.alpha = 1;
    problem.layer_memory_bytes = -1;
    expect_failure(MULTIPLY(made.local_d), TG_STATUS_INVALID_ARGUMENT, 0, "layer_memory_bytes");
    problem.layer_memory_bytes = 1;
    if (gpu)
        expect_failure(MULTIPLY(made.local_d), TG_STATUS_UNSUPPORTED, 0, "do not multiply in");
    problem.layer_memory_bytes = 0;
    problem.struct_bytes = rank == 3 ? 8 : sizeof problem;
    expect_failure(MULTIPLY(made.local_d), TG_STATUS_INVALID_ARGUMENT, 3, "struct_bytes");
    problem.struct_bytes = sizeof problem;
    expect(MULTIPLY(made.local_d) == TG_STATUS_OK, "the grid works after failures", 0);
    expect(is_case_right(&made), "result", 0);
#undef MULTIPLY
    tg_dist_destroy_grid(grid);
    free_case(&made);
}

/* The constructors set every byte of this version's struct and of a later one's. */
static void test_structs(void)
{
    struct {
        tg_dist_layout known;
        int64_t later;
    } layout;
    tg_dist_problem problem;
    memset(&layout, POISON, sizeof layout);
    expect(tg_dist_init_layout(&layout.known, sizeof layout, TG_TYPE_BF16, 5, 6, 2, 3) ==
               TG_STATUS_OK,
           "layout of a later version", 0);
    expect(layout.later == 0 && layout.known.struct_bytes == sizeof layout &&
               layout.known.row_count == 5 && layout.known.col_block == 3 &&
               layout.known.row_source == 0 && layout.known.local_leading_dimension == 0,
           "members of the layout", 0);
    expect(tg_dist_init_problem(&problem, sizeof problem, &layout.known, NULL, NULL) ==
                   TG_STATUS_OK &&
               problem.a == &layout.known && problem.alpha == 1 && problem.beta == 0,
           "members of the problem", 0);
    expect_failure(tg_dist_init_layout(&layout.known, sizeof(void *), TG_TYPE_BF16, 9, 6, 2, 3),
                   TG_STATUS_INVALID_ARGUMENT, -1, "struct_bytes = 8 for layout");
    expect(layout.known.row_count == 5, "a refused struct is untouched", 0);
    expect_failure(tg_dist_init_problem(NULL, sizeof problem, NULL, NULL, NULL),
                   TG_STATUS_INVALID_ARGUMENT, -1, "problem is NULL");
}

/* Returns the address space that this process has taken, in bytes. */
static rlim_t measure_address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    expect(file && fscanf(file, "%lu", &pages) == 1, "/proc/self/statm", 0);
    if (file)
        fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* One rank lacks the 128 MB of an operand that must be converted. The matrices are never read, as
 * the call fails before. */
static void test_memory(void)
{
    distributed_case made = make_square();
    tg_dist_problem problem = made.problem;
    tg_dist_grid *grid = NULL;
    problem.a = &made.a;
    problem.b = &made.b;
    problem.d = &made.d;
    made.a.row_count = made.a.col_count = made.b.row_count = made.b.col_count = 8000;
    made.d.row_count = made.d.col_count = 8000;
    expect(tg_dist_create_grid(MPI_COMM_WORLD, 2, 2, &grid) == TG_STATUS_OK, "grid", 0);
    if (rank == 1) {
        const rlim_t most = measure_address_space() + ((rlim_t)64 << 20);
        struct rlimit limit = {most, most};
        setrlimit(RLIMIT_AS, &limit);
    }
    expect_failure(tg_dist_multiply(grid, context, &problem, made.local_a, made.local_b, NULL,
                                    made.local_d, NULL),
                   TG_STATUS_OUT_OF_MEMORY, 1, "bytes");
    tg_dist_destroy_grid(grid);
    free_case(&made);
}

/* The others wait for a rank that is gone. mpirun ends them. */
static void test_dies(void)
{
    distributed_case made = make_square();
    tg_dist_grid *grid = NULL;
    tg_dist_create_grid(MPI_COMM_WORLD, 2, 2, &grid);
    if (rank == 1)
        raise(SIGKILL);
    made.problem.a = &made.a;
    made.problem.b = &made.b;
    made.problem.d = &made.d;
    tg_dist_multiply(grid, context, &made.problem, made.local_a, made.local_b, NULL, made.local_d,
                     NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"products", test_products}, {"wide", test_wide},       {"layers", test_layers},
                 {"layouts", test_layouts},   {"structs", test_structs}, {"faults", test_faults},
                 {"memory", test_memory},     {"dies", test_dies}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
    gpu = argc == 3 ? argv[2] : NULL;
    tg_context_options options = {
        .struct_bytes = sizeof options, .device = "cpu", .thread_count = 1};
    if (gpu)
        context = open_rank_gpu(gpu, rank, rank_count);
    else
        expect(tg_create_context(&options, &context) == TG_STATUS_OK, "context", 0);
    int run_count = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc >= 2 && strcmp(argv[1], tests[i].name) == 0) {
            tests[i].run();
            run_count++;
        }
    }
    expect(run_count == 1, "usage: see the first lines of test_distributed.c", 0);
    tg_destroy_context(context);
    MPI_Finalize();
    return failures != 0;
}
