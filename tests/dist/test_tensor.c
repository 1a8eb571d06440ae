/* Tensor-parallel products on the ranks that mpirun starts, with GPUs of the tests' driver or of
 * this machine.
 * usage: test_tensor gather|scatter|faults fake|cuda */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distributed_case.h"
#include "rank_gpu.h"

enum { RANKS_MAX = 8 };

static int rank, rank_count, failures;
static tg_context *context;
static tg_dist_grid *grid;

static void expect(int is_true, const char *what, int64_t number)
{
    if (is_true)
        return;
    failures++;
    fprintf(stderr, "rank %d: %s (%lld): %s\n", rank, what, (long long)number,
            tg_dist_get_error_detail());
}

/* A matrix of which this rank has the rows from first_row on, or the columns from first_col on. */
typedef struct part {
    tg_matrix matrix;
    int64_t first_row, first_col, bytes;
} part;

/* Makes the part, row-major or column-major with gaps, and fills it by the formula of `which`. */
static part make_part(tg_type type, int64_t rows, int64_t cols, int64_t first_row,
                      int64_t first_col, char which, int is_col_major, int64_t gap)
{
    part made = {.matrix = tg_make_matrix(type, NULL, rows, cols),
                 .first_row = first_row,
                 .first_col = first_col};
    made.matrix.row_stride = is_col_major ? 1 : cols + gap;
    made.matrix.col_stride = is_col_major ? rows + gap : 1;
    made.bytes = ((rows + gap) * (cols + gap) + 8) * 8;
    made.matrix.data = malloc((size_t)made.bytes);
    if (!made.matrix.data)
        abort();
    memset(made.matrix.data, POISON, (size_t)made.bytes);
    for (int64_t i = 0; i < rows && which; i++)
        for (int64_t j = 0; j < cols; j++)
            check_set_element(type, made.matrix.data,
                              i * made.matrix.row_stride + j * made.matrix.col_stride,
                              get_case_element(type, which, first_row + i, first_col + j));
    return made;
}

/* Returns 1 if D is alpha A B within the bound, where A and B are those of `terms` ranks from
 * first_term on, and if nothing beside D's rows was written. */
static int is_right(const part *d, const int64_t *k_counts, int first_term, int terms, double alpha)
{
    const tg_matrix *m = &d->matrix;
    for (int64_t i = 0; i < m->row_count; i++) {
        for (int64_t j = 0; j < m->row_stride; j++) {
            const double got = check_get_element(m->type, m->data, i * m->row_stride + j);
            long double exact = 0, magnitude = 0;
            int64_t k_count = 0;
            if (j >= m->col_count) {
                const unsigned char *byte = (const unsigned char *)m->data +
                                            (i * m->row_stride + j) * tg_get_type_bytes(m->type);
                if (*byte != POISON)
                    return 0;
                continue;
            }
            for (int term = first_term; term < first_term + terms; term++) {
                for (int64_t k = 0; k < k_counts[term]; k++) {
                    const long double product =
                        (long double)get_case_element(m->type, terms > 1 ? (char)('a' + term) : 'a',
                                                      d->first_row + i, k) *
                        get_case_element(m->type, (char)('A' + term), k, d->first_col + j);
                    exact += alpha * product;
                    magnitude += fabsl(alpha * product);
                }
                k_count += k_counts[term];
            }
            const double unit = m->type == TG_TYPE_FP64 ? 0x1p-53 : 0x1p-24;
            if (!(fabsl(got - exact) <= (k_count + 3 + terms) * unit * magnitude))
                return 0;
        }
    }
    return 1;
}

typedef tg_status tensor_product(const tg_dist_grid *grid, tg_context *context,
                                 const tg_problem *problem, void *stream, tg_dist_counts *counts);

/* Multiplies copies of the parts on the GPU, and frees A and B. */
static void run_product(tensor_product *product, tg_problem problem, const part *a, const part *b,
                        const part *d, tg_dist_counts *counts, int64_t number)
{
    problem.a.data = move_to_gpu(context, a->matrix.data, a->bytes);
    problem.b.data = move_to_gpu(context, b->matrix.data, b->bytes);
    problem.c.data = problem.d.data = move_to_gpu(context, d->matrix.data, d->bytes);
    if (reach_fake_gpu())
        reach_fake_gpu()->is_deferred = number % 4 < 2 ? 0 : 2;
    expect(product(grid, context, &problem, NULL, counts) == TG_STATUS_OK, "product", number);
    expect(tg_synchronize(context, NULL) == TG_STATUS_OK, "end", number);
    move_from_gpu(context, d->matrix.data, problem.d.data, d->bytes);
    tg_release_memory(context, problem.a.data);
    tg_release_memory(context, problem.b.data);
    free(a->matrix.data);
    free(b->matrix.data);
}

static void expect_counts(const tg_dist_counts *counts, int64_t sent, int64_t number)
{
    int64_t mine[2] = {counts->bytes_sent, counts->bytes_received}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(counts->bytes_sent == sent, "bytes sent", number);
    expect(all[0] == all[1], "all that is sent is received", number);
}

/* Draws the rows of all ranks; returns their number. Some ranks have none. */
static int64_t draw_rows(uint64_t *state, int64_t *rows, int64_t most)
{
    int64_t all = 0;
    for (int i = 0; i < rank_count; i++) {
        rows[i] = draw_number(state, 0, 3) ? draw_number(state, 0, most) : 0;
        all += rows[i];
    }
    return all;
}

static int64_t sum_before(const int64_t *counts, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += counts[i];
    return sum;
}

static void test_gather(void)
{
    for (int64_t i = 0; i < 60; i++) {
        uint64_t state = (uint64_t)i;
        int64_t rows[RANKS_MAX], k_counts[RANKS_MAX];
        const int64_t all = draw_rows(&state, rows, 30), k = draw_number(&state, 0, 40);
        const int64_t n = draw_number(&state, 0, 30) + 3 * rank;
        const tg_type type = i % 2 ? TG_TYPE_FP64 : TG_TYPE_FP32;
        const int is_col_major = (int)draw_number(&state, 0, 1);
        for (int j = 0; j < rank_count; j++)
            k_counts[j] = k;
        const part a = make_part(type, rows[rank], k, sum_before(rows, rank), 0, 'a', is_col_major,
                                 draw_number(&state, 0, 5));
        const part b = make_part(type, k, n, 0, 0, (char)('A' + rank), 0, 0);
        const part d = make_part(type, all, n, 0, 0, 0, 0, 3);
        tg_problem problem = tg_make_problem(a.matrix, b.matrix, d.matrix);
        if (i % 3 == 0) { /* A is passed as the transpose of its transpose */
            problem.op_a = TG_OPERATION_TRANSPOSE;
            problem.a.row_count = a.matrix.col_count;
            problem.a.col_count = a.matrix.row_count;
            problem.a.row_stride = a.matrix.col_stride;
            problem.a.col_stride = a.matrix.row_stride;
        }
        problem.alpha = 0.5;
        tg_dist_counts counts = {.struct_bytes = sizeof counts};
        run_product(tg_dist_all_gather_multiply, problem, &a, &b, &d, &counts, i);
        expect(is_right(&d, k_counts, rank, 1, 0.5), "result", i);
        expect_counts(&counts, rows[rank] * k * tg_get_type_bytes(type) * (rank_count - 1), i);
        free(d.matrix.data);
    }
}

static void test_scatter(void)
{
    for (int64_t i = 0; i < 60; i++) {
        uint64_t state = (uint64_t)i + 77;
        int64_t rows[RANKS_MAX], k_counts[RANKS_MAX];
        /* Every tenth case has rows that go in two chunks. */
        const int64_t all = draw_rows(&state, rows, i % 10 ? 30 : 1500);
        const int64_t n = draw_number(&state, 0, i % 10 ? 30 : 4);
        const tg_type type = i % 2 ? TG_TYPE_FP64 : TG_TYPE_FP32;
        for (int j = 0; j < rank_count; j++)
            k_counts[j] = draw_number(&state, 0, 20);
        const int64_t k = k_counts[rank];
        const part a =
            make_part(type, all, k, 0, 0, (char)('a' + rank), (int)draw_number(&state, 0, 1), 2);
        const part b = make_part(type, k, n, 0, 0, (char)('A' + rank), rank % 2, 1);
        const part d = make_part(type, rows[rank], n, sum_before(rows, rank), 0, 0, 0, rank % 3);
        tg_problem problem = tg_make_problem(a.matrix, b.matrix, d.matrix);
        problem.alpha = -2;
        tg_dist_counts counts = {.struct_bytes = sizeof counts};
        run_product(tg_dist_multiply_reduce_scatter, problem, &a, &b, &d, &counts, i);
        expect(is_right(&d, k_counts, 0, rank_count, -2), "result", i);
        expect_counts(&counts, (all - rows[rank]) * n * tg_get_type_bytes(type), i);
        free(d.matrix.data);
    }
}

/* The matrices of a small product of each kind: 12 rows a rank, k = 8 and n = 5. */
typedef struct small_product {
    float a[12 * RANKS_MAX * 8], b[8 * 5], d[12 * RANKS_MAX * 5];
    tg_problem gather, scatter;
} small_product;

static void make_small(small_product *made)
{
    const int64_t all = 12 * rank_count;
    for (size_t i = 0; i < sizeof made->a / sizeof made->a[0]; i++)
        made->a[i] = 1;
    for (size_t i = 0; i < sizeof made->b / sizeof made->b[0]; i++)
        made->b[i] = 1;
    memset(made->d, POISON, sizeof made->d);
    const tg_matrix b = tg_make_matrix(TG_TYPE_FP32, made->b, 8, 5);
    made->gather = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, made->a, 12, 8), b,
                                   tg_make_matrix(TG_TYPE_FP32, made->d, all, 5));
    made->scatter = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, made->a, all, 8), b,
                                    tg_make_matrix(TG_TYPE_FP32, made->d, 12, 5));
}

static void expect_refusal(tg_status got, tg_status expected, const char *word)
{
    expect(got == expected, "status", got);
    expect(strstr(tg_dist_get_error_detail(), word) != NULL, word, got);
}

static void test_refusals(small_product *made)
{
    const tg_problem gather = made->gather, scatter = made->scatter;
    tg_problem problem = gather;
    tg_context *cpu = NULL;
#define GATHER(context) tg_dist_all_gather_multiply(grid, context, &problem, NULL, NULL)
#define SCATTER() tg_dist_multiply_reduce_scatter(grid, context, &problem, NULL, NULL)
    expect(tg_create_context(NULL, &cpu) == TG_STATUS_OK, "context", 0);
    expect_refusal(GATHER(rank == 1 ? cpu : context), TG_STATUS_UNSUPPORTED,
                   "pass a context of a GPU");
    tg_destroy_context(cpu);
    problem.d.row_count = rank == 1 ? 11 : gather.d.row_count;
    problem.c.row_count = problem.d.row_count;
    expect_refusal(GATHER(context), TG_STATUS_INVALID_ARGUMENT, "d has 11 rows");
    problem = gather;
    problem.a.col_count = problem.b.row_count = rank == 1 ? 7 : 8;
    expect_refusal(GATHER(context), TG_STATUS_INVALID_ARGUMENT, "the width of what is sent");
    problem = gather;
    problem.a.col_stride = rank == 1 ? 2 : 1;
    expect_refusal(GATHER(context), TG_STATUS_UNSUPPORTED, "strides 8 and 2");
    problem = gather;
    problem.a.row_stride = rank == 1 ? 1 : 8;
    problem.a.col_stride = rank == 1 ? 12 : 1;
    expect_refusal(GATHER(context), TG_STATUS_INVALID_ARGUMENT, "contiguous columns");
    problem = gather;
    problem.batch_count = 2;
    expect_refusal(GATHER(context), TG_STATUS_UNSUPPORTED, "batch_count is 2");
    problem = scatter;
    problem.beta = rank == 1;
    expect_refusal(SCATTER(), TG_STATUS_UNSUPPORTED, "beta, bias and activation");
    problem = scatter;
    problem.d.col_stride = 2;
    expect_refusal(SCATTER(), TG_STATUS_UNSUPPORTED, "whose rows are contiguous");
    problem = scatter;
    problem.d.type = problem.c.type = TG_TYPE_FP8_E4M3;
    expect_refusal(SCATTER(), TG_STATUS_UNSUPPORTED, "in which sums are not kept");
    problem = scatter;
    problem.a.row_count = rank == 1 ? 11 : scatter.a.row_count;
    expect_refusal(SCATTER(), TG_STATUS_INVALID_ARGUMENT, "op(a) has 11 rows");
#undef GATHER
#undef SCATTER
}

/* Multiplies in all three ways; returns the first failure, which all ranks see. */
static tg_status multiply_small(small_product *made)
{
    tg_dist_layout a, b, d;
    tg_dist_problem problem;
    tg_status status = tg_dist_all_gather_multiply(grid, context, &made->gather, NULL, NULL);
    if (!status)
        status = tg_dist_multiply_reduce_scatter(grid, context, &made->scatter, NULL, NULL);
    /* A is dealt along k, so it is gathered. */
    tg_dist_init_layout(&a, sizeof a, TG_TYPE_FP32, 6, 8 * rank_count, 6, 8);
    tg_dist_init_layout(&b, sizeof b, TG_TYPE_FP32, 8 * rank_count, rank_count, 8, 1);
    tg_dist_init_layout(&d, sizeof d, TG_TYPE_FP32, 6, rank_count, 6, 1);
    tg_dist_init_problem(&problem, sizeof problem, &a, &b, &d);
    if (!status)
        status = tg_dist_multiply(grid, context, &problem, made->a, made->a, NULL, made->d, NULL);
    return status;
}

/* Each function of the driver fails on rank 1 at many of its calls. All ranks see a failure, none
 * waits for ever, and the next product is right. */
static void test_failures(small_product *made)
{
    static const char *const symbols[] = {
        "cuMemAlloc_v2",           "cuIpcGetMemHandle",       "cuIpcOpenMemHandle_v2",
        "cuMemcpy2DAsync_v2",      "cuStreamWriteValue32_v2", "cuStreamWaitValue32_v2",
        "cuStreamCreate",          "cuEventCreate",           "cuEventRecord",
        "cuStreamWaitEvent",       "cuLaunchKernelEx",        "cuEventQuery",
        "cuDevicePrimaryCtxRetain"};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        tg_status status = TG_STATUS_DEVICE_FAILURE;
        for (int call = 1; status; call += 1 + call / 4) {
            fake_driver *fake = reach_fake_gpu();
            fake->is_deferred = 2;
            tg_dist_destroy_grid(grid);
            expect(tg_dist_create_grid(MPI_COMM_WORLD, 1, rank_count, &grid) == 0, "grid", call);
            if (rank == 1) {
                snprintf(fake->failing, sizeof fake->failing, "%s", symbols[i]);
                fake->failing_call = call;
                fake->error = 999;
            }
            status = multiply_small(made);
            int statuses[2] = {(int)status, -(int)status}, most[2];
            MPI_Allreduce(statuses, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
            expect(most[0] == -most[1], "one status on all ranks", call);
            if (status)
                expect_refusal(status, TG_STATUS_DEVICE_FAILURE, "(999)");
            fake->failing[0] = '\0';
            expect(multiply_small(made) == TG_STATUS_OK, symbols[i], call);
            expect(made->d[0] == (float)(8 * rank_count), "result", call);
            expect(call < 200, "calls", call);
            if (call == 1)
                expect(status != TG_STATUS_OK, symbols[i], 0);
        }
    }
}

static void test_faults(void)
{
    static small_product made;
    make_small(&made);
    test_refusals(&made);
    test_failures(&made);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"gather", test_gather}, {"scatter", test_scatter}, {"faults", test_faults}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
    context = open_rank_gpu(argc == 3 ? argv[2] : "fake", rank, rank_count);
    expect(tg_dist_create_grid(MPI_COMM_WORLD, 1, rank_count, &grid) == 0, "grid", 0);
    int run_count = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc == 3 && strcmp(argv[1], tests[i].name) == 0) {
            tests[i].run();
            run_count++;
        }
    }
    expect(run_count == 1, "usage: see the first lines of test_tensor.c", 0);
    tg_dist_destroy_grid(grid);
    tg_destroy_context(context);
    if (reach_fake_gpu()) {
        expect(reach_fake_gpu()->live_allocation_count == 0, "memory that is left", 0);
        expect(reach_fake_gpu()->shared_count == 0, "memory of others that is open", 0);
    }
    MPI_Finalize();
    return failures != 0;
}
