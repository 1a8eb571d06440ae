/* Products of ranks that mpirun starts and the streams of their GPUs, which are of the tests'
 * driver: several streams, what is complete on return, and the caller's context.
 * usage: test_rank_streams fake */
#include <dlfcn.h>

#include "distributed_case.h"
#include "rank_gpu.h"

enum { RANKS_MAX = 8, ROWS = 12, K = 60, N = 900, CALLS = 5 };

static int rank, rank_count;
static tg_context *context;
static tg_dist_grid *grid;
static int (*create_stream)(void **, unsigned);
static int (*destroy_stream)(void *);
static int (*set_current)(void *);

static void find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&create_stream = dlsym(library, "cuStreamCreate");
    *(void **)&destroy_stream = dlsym(library, "cuStreamDestroy_v2");
    *(void **)&set_current = dlsym(library, "cuCtxSetCurrent");
}

/* Calls in separate streams share the buffers, and the last stream is waited for first. */
static void test_several_streams(int is_scatter, int64_t n)
{
    static float a[CALLS][ROWS * RANKS_MAX * K], b[K * N], d[CALLS][ROWS * RANKS_MAX * N];
    const int64_t all = ROWS * rank_count, a_rows = is_scatter ? all : ROWS;
    const int64_t d_rows = is_scatter ? ROWS : all;
    void *streams[CALLS];
    for (int i = 0; i < CALLS * ROWS * RANKS_MAX * K; i++)
        a[i / (ROWS * RANKS_MAX * K)][i % (ROWS * RANKS_MAX * K)] =
            (float)(i / (ROWS * RANKS_MAX * K) + 1);
    for (int i = 0; i < K * N; i++)
        b[i] = 1;
    for (int i = 0; i < CALLS; i++) {
        const tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a[i], a_rows, K),
                                                   tg_make_matrix(TG_TYPE_FP32, b, K, n),
                                                   tg_make_matrix(TG_TYPE_FP32, d[i], d_rows, n));
        expect(create_stream(&streams[i], 1) == 0, "stream", i);
        const tg_status status =
            is_scatter ? tg_dist_multiply_reduce_scatter(grid, context, &problem, streams[i], NULL)
                       : tg_dist_all_gather_multiply(grid, context, &problem, streams[i], NULL);
        expect(status == TG_STATUS_OK, is_scatter ? "scatter" : "gather", n);
    }
    for (int i = CALLS - 1; i >= 0; i--)
        expect(tg_synchronize(context, streams[i]) == TG_STATUS_OK, "end", i);
    for (int i = 0; i < CALLS; i++) {
        const float expected = (float)((i + 1) * K * (is_scatter ? rank_count : 1));
        int64_t wrong = 0;
        for (int64_t j = 0; j < d_rows * n; j++)
            wrong += d[i][j] != expected;
        expect(wrong == 0, "elements that are wrong", wrong);
        destroy_stream(streams[i]);
    }
}

/* A product without any k is complete on return, as others are. */
static void test_completion(void)
{
    float d[2] = {3, 5};
    tg_dist_layout a, b, layout;
    tg_dist_problem problem;
    tg_dist_init_layout(&a, sizeof a, TG_TYPE_FP32, 2, 0, 2, 1);
    tg_dist_init_layout(&b, sizeof b, TG_TYPE_FP32, 0, rank_count, 1, 1);
    tg_dist_init_layout(&layout, sizeof layout, TG_TYPE_FP32, 2, rank_count, 2, 1);
    tg_dist_init_problem(&problem, sizeof problem, &a, &b, &layout);
    problem.beta = 2;
    expect(tg_dist_multiply(grid, context, &problem, NULL, NULL, d, d, NULL) == TG_STATUS_OK,
           "product without k", 0);
    expect(d[0] == 6 && d[1] == 10, "complete on return", (int64_t)d[0]);
    tg_synchronize(context, NULL);
}

int main(int argc, char **argv)
{
    static int contexts[2]; /* their addresses stand for contexts of the caller */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
    context = open_rank_gpu("fake", rank, rank_count);
    find_driver();
    expect(tg_dist_create_grid(MPI_COMM_WORLD, 1, rank_count, &grid) == 0, "grid", 0);
    reach_fake_gpu()->is_deferred = 2;
    set_current(&contexts[0]);
    for (int i = 0; i < 4; i++) { /* many columns are multiplied at once */
        test_several_streams(i % 2, i < 2 ? N : 5);
        expect(reach_fake_gpu()->current == &contexts[0], "context after calls", i);
    }
    test_completion();
    set_current(&contexts[1]);
    tg_dist_destroy_grid(grid);
    expect(reach_fake_gpu()->current == &contexts[1], "context after the grid's end", 0);
    tg_destroy_context(context);
    MPI_Finalize();
    return failures != 0;
}
