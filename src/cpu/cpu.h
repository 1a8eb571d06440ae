/* Inside the CPU backend: what its files share. */
#ifndef TGI_CPU_H
#define TGI_CPU_H

#include "cpu/isa.h"
#include "plan/backend.h"

/* Sums of all chunks of k, kept apart where chunks are tasks, take at most this. */
#define TGI_CHUNK_SUMS_BYTES ((int64_t)6 << 20)

/* Rows of running sums that a thread keeps where D cannot hold them. */
#define TGI_ROWS_KEPT 256

/* Blocks of the workspace start on cache lines. */
#define TGI_ALIGN_BYTES 64

/* A family of CPU kernels: one entry of the table in cpu_backend.c. */
typedef struct tgi_cpu_family {
    /* As tgi_backend's functions; type and instruction set already fit. */
    void (*propose)(const tgi_machine *machine, const tgi_problem *problem, tgi_proposal *proposal);
    void (*execute)(const tgi_call *call);
} tgi_cpu_family;

extern const tgi_cpu_family tgi_cpu_sequential, tgi_cpu_blocked, tgi_cpu_direct, tgi_cpu_packed,
    tgi_cpu_rank, tgi_cpu_dot;

/* Steps of k in a chunk at most. Long chunks save passes over D, which lies in memory; a panel of
 * B, chunk x 192 bytes, still stays in L2 while row tiles go by. */
#define TGI_CHUNK_K 1024

/* Products of k summed before the running sum is touched, for tile elements that hold k_per_elem of
 * them: the same for every kernel that sums one by one, so that these agree bit by bit. A multiple
 * of 8 unless it is k itself. */
int64_t tgi_cpu_chunk_k(int64_t k, int64_t k_per_elem);

/* The functions for a row of the table; those of its instruction set for another input type. */
const tgi_isa_kernels *tgi_cpu_select(const tgi_kernel *kernel);
const tgi_isa_kernels *tgi_cpu_select_type(const tgi_kernel *kernel, tg_type type);

/* Multiply-adds of accumulators that one core of the instruction set finishes in a cycle. */
double tgi_cpu_macs_per_cycle(const tgi_kernel *kernel);

/* Bytes of an accumulator of the problem: 8 for FP64, else 4. */
static inline int64_t tgi_cpu_accum_bytes(const tgi_problem *problem)
{
    return problem->type == TG_TYPE_FP64 ? 8 : 4;
}

/* 1 if D can hold running sums and be written by vectors. */
static inline int tgi_cpu_is_d_plain(const tgi_problem *problem)
{
    return problem->d.col == 1 && tgi_type_bytes(problem->d_type) == tgi_cpu_accum_bytes(problem);
}

/* 1 if the epilogue is linear: alpha and beta alone. */
static inline int tgi_cpu_is_linear(const tgi_problem *problem)
{
    return problem->bias == TG_BIAS_NONE && problem->activation == TG_ACTIVATION_NONE &&
           !tgi_problem_has_scale(problem);
}

static inline int64_t tgi_cpu_divide_up(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static inline int64_t tgi_cpu_align_up(int64_t size, int64_t step)
{
    return tgi_cpu_divide_up(size, step) * step;
}

/* Part `index` of `parts` of 0 .. extent, cut at multiples of `step`: its first entry. */
static inline int64_t tgi_cpu_cut(int64_t extent, int64_t parts, int64_t index, int64_t step)
{
    int64_t steps = tgi_cpu_divide_up(extent, step);
    int64_t cut = (steps * index / parts) * step;
    return cut < extent ? cut : extent;
}

/* Element (row, col) of batch entry `batch`; NULL of NULL. */
static inline const void *tgi_cpu_at(const void *data, const tgi_layout *layout, int64_t batch,
                                     int64_t row, int64_t col, int64_t element_bytes)
{
    int64_t offset = batch * layout->batch + row * layout->row + col * layout->col;
    return data ? (const char *)data + offset * element_bytes : NULL;
}

/* Finishes a block of sums at (row, col) of D, see tgi_finish; running sums go to D itself where
 * `running` is NULL. */
void tgi_cpu_finish(const tgi_call *call, tgi_finish_fn *finish, int64_t batch, int64_t row,
                    int64_t col, tgi_finish *block);

/* D from the sums of all chunks of k, chunk_count x m x n accumulators, added in the order of k. */
void tgi_cpu_reduce_chunks(const tgi_call *call, tgi_finish_fn *finish, const void *chunk_sums,
                           int64_t chunk_count);

/* Runs task(state, index, thread) for index 0 .. count - 1 on up to thread_count threads; `thread`
 * is below thread_count. */
typedef void tgi_cpu_task(void *state, int64_t index, int thread);
void tgi_cpu_run_tasks(tgi_cpu_task *task, void *state, int64_t count, int thread_count);

/* Names what the machine has: processor, instruction set, caches, cores. */
void tgi_cpu_detect(tgi_machine *machine);

tg_status tgi_cpu_measure_peak(const tgi_machine *machine, tg_type type, int thread_count,
                               double *flop_per_s);

#endif
