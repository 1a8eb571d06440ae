/* This file adds the partial sums of split-K tasks. */
#include "cpu/cpu.h"
#include "threads/threads.h"

#define REDUCED_COLS 64

typedef struct reduction {
    const tgi_call *call;
    tgi_finish_fn *finish;
    const char *chunk_sums;
    int64_t chunk_count;
} reduction;

/* Reduces REDUCED_COLS columns of one row of D. */
static void reduce_task(void *state, int64_t index, int thread)
{
    const reduction *r = state;
    const tgi_problem *p = r->call->problem;
    int64_t strips = tgi_divide_up(p->n, REDUCED_COLS);
    int64_t row = index / strips, col = index % strips * REDUCED_COLS;
    _Alignas(64) char running[REDUCED_COLS * sizeof(double)];
    (void)thread;
    for (int64_t chunk = 0; chunk < r->chunk_count; chunk++) {
        int64_t offset = (chunk * p->m + row) * p->n + col;
        tgi_finish block = {.rows = 1,
                            .cols = p->n - col < REDUCED_COLS ? p->n - col : REDUCED_COLS,
                            .sums = r->chunk_sums + offset * tgi_type_sum_bytes(p->type),
                            .running = running,
                            .is_first = chunk == 0,
                            .is_last = chunk == r->chunk_count - 1};
        tgi_cpu_finish(r->call, r->finish, 0, row, col, &block);
    }
}

void tgi_cpu_reduce_chunks(const tgi_call *call, tgi_finish_fn *finish, const void *chunk_sums,
                           int64_t chunk_count)
{
    reduction state = {call, finish, chunk_sums, chunk_count};
    const tgi_problem *p = call->problem;
    int64_t count = p->m * tgi_divide_up(p->n, REDUCED_COLS);
    tgi_threads_run(reduce_task, &state, count, tgi_cpu_get_prepared(call)->thread_count);
}
