/* Parallel tasks, and what follows them where k was split among tasks. */
#include <omp.h>

#include "cpu/cpu.h"

void tgi_cpu_run_tasks(tgi_cpu_task *task, void *state, int64_t count, int thread_count)
{
    if (thread_count <= 1 || count <= 1) {
        for (int64_t i = 0; i < count; i++)
            task(state, i, 0);
        return;
    }
#pragma omp parallel num_threads(thread_count)
    {
        int thread = omp_get_thread_num();
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++)
            task(state, i, thread);
    }
}

#define REDUCED_COLS 64

typedef struct reduction {
    const tgi_call *call;
    tgi_finish_fn *finish;
    const char *chunk_sums;
    int64_t chunk_count;
} reduction;

static void reduce_row(void *state, int64_t row, int thread)
{
    const reduction *r = state;
    const tgi_problem *p = r->call->problem;
    double running[REDUCED_COLS];
    (void)thread;
    for (int64_t col = 0; col < p->n; col += REDUCED_COLS) {
        for (int64_t chunk = 0; chunk < r->chunk_count; chunk++) {
            int64_t offset = (chunk * p->m + row) * p->n + col;
            tgi_finish block = {.rows = 1,
                                .cols = p->n - col < REDUCED_COLS ? p->n - col : REDUCED_COLS,
                                .sums = r->chunk_sums + offset * tgi_cpu_accum_bytes(p),
                                .running = running,
                                .is_first = chunk == 0,
                                .is_last = chunk == r->chunk_count - 1};
            tgi_cpu_finish(r->call, r->finish, 0, row, col, &block);
        }
    }
}

void tgi_cpu_reduce_chunks(const tgi_call *call, tgi_finish_fn *finish, const void *chunk_sums,
                           int64_t chunk_count)
{
    reduction state = {call, finish, chunk_sums, chunk_count};
    tgi_cpu_run_tasks(reduce_row, &state, call->problem->m, call->blocking->thread_count);
}
