/* Tensor-parallel products on ranks, with GPUs of the tests' driver or of this machine. mpirun
 * starts the ranks; usage: test_tensor gather|scatter|faults fake|cuda */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "distributed_case.h"
#include "rank_gpu.h"
#include "tensor_portion.h"

enum { RANKS_MAX = 8 };

static int rank, rank_count, whole_count, several_count; /* calls of one product, of several */
static tg_context *context;
static tg_dist_grid *grid;

typedef tg_status tensor_product(const tg_dist_grid *grid, tg_context *context,
                                 const tg_problem *problem, void *stream, tg_dist_counts *counts);

/* Notes in which way the fake's GPU formed rows of several ranks. */
static void note_kernels(const char *kernels)
{
    const char *comma = strchr(kernels, ',');
    const int is_sum = strstr(kernels, "scale") != NULL;
    whole_count += comma && (is_sum || !comma[1]);
    several_count += comma && comma[1] && !is_sum;
}

/* Does what must not change a product that is in the stream: writes its A, or multiplies another
 * one, while the other ranks have not yet begun. */
static void disturb(tensor_product *product, const tg_problem *problem, const tg_problem *next,
                    const tensor_portion *a, int64_t number)
{
    if (number % 2) {
        expect(product(grid, context, next, NULL, NULL) == TG_STATUS_OK, "next", number);
        if (rank)
            usleep(3000);
    } else {
        expect(tg_copy_to_device(context, problem->a.data, a->poison, a->bytes) == TG_STATUS_OK,
               "copy", number);
    }
}

/* Puts a copy of a matrix in the GPU's memory into the stream: D = C, without a product. */
static void copy_in_stream(const tensor_portion *a, void *source, void *target)
{
    tg_problem copy =
        tg_make_problem(tg_make_matrix(a->matrix.type, NULL, a->matrix.row_count, 0),
                        tg_make_matrix(a->matrix.type, NULL, 0, a->matrix.col_count), a->matrix);
    copy.c.data = source;
    copy.d.data = target;
    copy.beta = 1;
    expect(tg_multiply(context, &copy) == TG_STATUS_OK, "copy", 0);
}

/* Multiplies copies of the portions on the GPU, and frees A and B. */
static void run_product(tensor_product *product, tg_problem problem, const tensor_portion *a,
                        const tensor_portion *b, const tensor_portion *d, tg_dist_counts *counts,
                        int64_t number)
{
    void *source = move_to_gpu(context, a->matrix.data, a->bytes);
    expect(tg_allocate_memory(context, a->bytes, &problem.a.data) == TG_STATUS_OK, "A", number);
    problem.b.data = move_to_gpu(context, b->matrix.data, b->bytes);
    problem.c.data = problem.d.data = move_to_gpu(context, d->matrix.data, d->bytes);
    tg_problem next = problem;
    next.a.data = move_to_gpu(context, a->poison, a->bytes);
    next.c.data = next.d.data = move_to_gpu(context, d->matrix.data, d->bytes);
    fake_driver *fake = reach_fake_gpu();
    if (fake)
        fake->is_deferred = (int)(number / 2 % 3);
    copy_in_stream(a, source, problem.a.data);
    if (fake)
        fake->kernels[0] = '\0';
    expect(product(grid, context, &problem, NULL, counts) == TG_STATUS_OK, "product", number);
    disturb(product, &problem, &next, a, number);
    expect(tg_synchronize(context, NULL) == TG_STATUS_OK, "end", number);
    const int64_t a_rows = a->matrix.row_count, d_rows = d->matrix.row_count;
    if (fake && number % 2 == 0 && a_rows && d_rows && a_rows != d_rows && d->matrix.col_count)
        note_kernels(fake->kernels);
    move_from_gpu(context, d->matrix.data, problem.d.data, d->bytes);
    tg_release_memory(context, source);
    tg_release_memory(context, next.a.data);
    tg_release_memory(context, next.d.data);
    tg_release_memory(context, problem.a.data);
    tg_release_memory(context, problem.b.data);
    free_tensor_portion(a);
    free_tensor_portion(b);
}

static void expect_counts(const tg_dist_counts *counts, int64_t sent, int64_t number)
{
    int64_t mine[2] = {counts->bytes_sent, counts->bytes_received}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(counts->bytes_sent == sent, "bytes sent", number);
    expect(all[0] == all[1], "all that is sent is received", number);
}

/* Draws the rows of all ranks; returns their number. Some ranks have none. */
static int64_t draw_rows(uint64_t *state, int64_t *rows, int64_t least, int64_t most)
{
    int64_t all = 0;
    for (int i = 0; i < rank_count; i++) {
        rows[i] = least || draw_number(state, 0, 3) ? draw_number(state, least, most) : 0;
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
        const int64_t all = draw_rows(&state, rows, 0, 30),
                      k = i % 5 == 1 ? 60 : draw_number(&state, 0, 40);
        /* One product of all rows is predicted to be faster for many values of k. */
        const int64_t n = i % 5 == 1 ? 900 : draw_number(&state, 0, 30) + 3 * rank;
        const tg_type type = i % 2 ? TG_TYPE_FP64 : TG_TYPE_FP32;
        const int is_col_major = (int)draw_number(&state, 0, 1);
        for (int j = 0; j < rank_count; j++)
            k_counts[j] = k;
        const tensor_portion a = make_tensor_portion(type, rows[rank], k, sum_before(rows, rank), 0,
                                                     'a', is_col_major, draw_number(&state, 0, 5));
        const tensor_portion b = make_tensor_portion(type, k, n, 0, 0, (char)('A' + rank), 0, 0);
        const tensor_portion d = make_tensor_portion(type, all, n, 0, 0, 0, 0, 3);
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
        expect(is_tensor_right(&d, k_counts, rank, 1, 0.5), "result", i);
        expect_counts(&counts, rows[rank] * k * tg_get_type_bytes(type) * (rank_count - 1), i);
        free_tensor_portion(&d);
    }
}

static void test_scatter(void)
{
    for (int64_t i = 0; i < 60; i++) {
        uint64_t state = (uint64_t)i + 77;
        int64_t rows[RANKS_MAX], k_counts[RANKS_MAX];
        /* Every tenth case has rows in two chunks. One product of all rows is predicted to be
         * faster for many values of k, those of each rank's rows for a large D. */
        const int is_large = i % 40 == 10, most = i % 10 ? 30 : 1500;
        const int64_t all = draw_rows(&state, rows, is_large ? 1024 : 0, most);
        const int64_t few = draw_number(&state, 0, i % 10 ? 30 : 4);
        const int64_t n = is_large ? 1300 : i % 5 == 1 ? 100 : few;
        const tg_type type = i % 2 ? TG_TYPE_FP64 : TG_TYPE_FP32;
        for (int j = 0; j < rank_count; j++)
            k_counts[j] = i % 5 == 1 ? 600 : draw_number(&state, is_large, is_large ? 2 : 20);
        const int64_t k = k_counts[rank];
        const tensor_portion a = make_tensor_portion(type, all, k, 0, 0, (char)('a' + rank),
                                                     (int)draw_number(&state, 0, 1), 2);
        const tensor_portion b =
            make_tensor_portion(type, k, n, 0, 0, (char)('A' + rank), rank % 2, 1);
        const tensor_portion d =
            make_tensor_portion(type, rows[rank], n, sum_before(rows, rank), 0, 0, 0, rank % 3);
        tg_problem problem = tg_make_problem(a.matrix, b.matrix, d.matrix);
        problem.alpha = -2;
        tg_dist_counts counts = {.struct_bytes = sizeof counts};
        run_product(tg_dist_multiply_reduce_scatter, problem, &a, &b, &d, &counts, i);
        expect(is_tensor_right(&d, k_counts, 0, rank_count, -2), "result", i);
        expect_counts(&counts, (all - rows[rank]) * n * tg_get_type_bytes(type), i);
        free_tensor_portion(&d);
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

static void refuse_all(const small_product *made, tg_context *cpu)
{
    const tg_problem gather = made->gather, scatter = made->scatter;
    tg_problem problem = gather;
#define GATHER(context) tg_dist_all_gather_multiply(grid, context, &problem, NULL, NULL)
#define SCATTER() tg_dist_multiply_reduce_scatter(grid, context, &problem, NULL, NULL)
    expect_refusal(GATHER(rank == 1 ? cpu : context), TG_STATUS_UNSUPPORTED,
                   "pass a context of a GPU");
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
    problem = gather;
    problem.op_a = (tg_operation)(rank == 1 ? 7 : TG_OPERATION_NONE);
    expect_refusal(GATHER(context), TG_STATUS_INVALID_ARGUMENT, "op_a is 7");
    problem = gather;
    problem.a.data = rank == 1 ? NULL : gather.a.data;
    expect_refusal(GATHER(context), TG_STATUS_INVALID_ARGUMENT, "a is NULL");
    problem = gather;
    problem.b.data = rank == 1 ? NULL : gather.b.data;
    expect_refusal(GATHER(context), TG_STATUS_INVALID_ARGUMENT, "b is NULL");
    problem = gather;
    problem.b.col_count = rank == 1 ? 4 : 5;
    expect_refusal(GATHER(context), TG_STATUS_INVALID_ARGUMENT, "4");
    problem = gather;
    problem.bias = rank == 1 ? TG_BIAS_ROW : TG_BIAS_NONE;
    expect_refusal(GATHER(context), TG_STATUS_INVALID_ARGUMENT, "bias_data is NULL");
    problem = gather;
    problem.d.data = rank == 1 ? (float *)gather.b.data + 39 : gather.d.data;
    expect_refusal(GATHER(context), TG_STATUS_OVERLAP, "d shares memory with b");
    problem.d.data = rank == 1 ? (float *)gather.a.data + 95 : gather.d.data;
    expect_refusal(GATHER(context), TG_STATUS_OVERLAP, "d shares memory with a");
    problem = scatter;
    problem.d.data = rank == 1 ? (float *)scatter.a.data + 90 : scatter.d.data;
    expect_refusal(SCATTER(), TG_STATUS_OVERLAP, "d shares memory with a");
    problem = scatter;
    problem.a.data = rank == 1 ? NULL : scatter.a.data;
    expect_refusal(SCATTER(), TG_STATUS_INVALID_ARGUMENT, "a is NULL");
    problem = scatter;
    problem.d.data = problem.c.data = rank == 1 ? NULL : scatter.d.data;
    expect_refusal(SCATTER(), TG_STATUS_INVALID_ARGUMENT, "d is NULL");
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

static tg_status multiply_small(small_product *made);

/* Mistakes are found before the ranks exchange anything: their buffers stay as they are. */
static void test_refusals(small_product *made)
{
    tg_context *cpu = NULL;
    expect(tg_create_context(NULL, &cpu) == TG_STATUS_OK, "context", 0);
    expect(multiply_small(made) == TG_STATUS_OK, "before the refusals", 0);
    const int allocate_count = reach_fake_gpu()->allocate_count;
    refuse_all(made, cpu);
    expect(tg_dist_all_gather_multiply(grid, context, &made->gather, NULL, NULL) == TG_STATUS_OK,
           "after the refusals", 0);
    expect(reach_fake_gpu()->allocate_count == allocate_count, "the same buffers", 0);
    tg_destroy_context(cpu);
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
    static const char *const symbols[] = {"cuMemAlloc_v2",
                                          "cuIpcGetMemHandle",
                                          "cuIpcOpenMemHandle_v2",
                                          "cuMemcpy2DAsync_v2",
                                          "cuStreamWriteValue32_v2",
                                          "cuStreamWaitValue32_v2",
                                          "cuStreamCreate",
                                          "cuEventCreate",
                                          "cuEventRecord",
                                          "cuStreamWaitEvent",
                                          "cuLaunchKernelEx",
                                          "cuEventQuery",
                                          "cuDevicePrimaryCtxRetain",
                                          "cuMemHostAlloc"};
    const int is_linked = getenv("TILEGEMM_WIRE") != NULL;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        tg_status status = TG_STATUS_DEVICE_FAILURE;
        for (int call = 1; status; call += 1 + call / 4) {
            fake_driver *fake = reach_fake_gpu();
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
            /* Ranks that are joined by MPI share no memory and wait for no words in it, and they
             * alone take pinned memory. */
            if (call == 1 && !strstr(symbols[i], is_linked ? "cuIpc" : "cuMemHost") &&
                !(is_linked && strstr(symbols[i], "WaitValue")))
                expect(status != TG_STATUS_OK, symbols[i], 0);
        }
    }
}

static void test_faults(void)
{
    static small_product made;
    make_small(&made);
    reach_fake_gpu()->is_deferred = 2; /* a rank may wait for one that has failed */
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
    if (argc == 3 && strcmp(argv[1], "faults") && reach_fake_gpu() && rank_count > 1)
        expect(whole_count > 0 && several_count > 0, "both ways to multiply", whole_count);
    tg_dist_destroy_grid(grid);
    tg_destroy_context(context);
    if (reach_fake_gpu()) {
        expect(reach_fake_gpu()->live_allocation_count == 0, "memory that is left", 0);
        expect(reach_fake_gpu()->shared_count == 0, "memory of others that is open", 0);
    }
    MPI_Finalize();
    return failures != 0;
}
