/*
 * The two rungs of the ladder without register tiles are plain C: `sequential`, the textbook triple
 * loop, and `blocked`, the same loops over tiles that stay in cache.
 */
#include <string.h>

#include "core/dtype.h"
#include "cpu/cpu.h"
#include "model/cpu_model.h"

/* Three tiles of 64 x 64 FP32 (A, B, sums) take 48 KiB, about an L1 cache. */
#define TILE 64
/* These cycles are a policy, not a measurement: with them the planner never chooses a kernel that
 * teaches, though for a tiny product it may be as fast as the others. */
#define TEACHING_CYCLES 1e5

/* One tile of the problem adds A(row + i, k0 ..) B(k0 .., col + j) to sums[i][j]. */
typedef struct region {
    const tgi_problem *problem;
    const void *a, *b; /* start of the batch entry */
    int64_t row, col, k0, rows, cols, k;
    void *sums; /* rows x cols accumulators */
} region;
typedef void region_fn(const region *region);

/* Defines dot_<type>, whose loops i, j, p form one sum at a time, and tile_<type>, whose loops
 * i, p, j run along rows of B and of the sums. */
#define DEFINE_LOOPS(type, element, accum, widen)                                                  \
    static void dot_##type(const region *r)                                                        \
    {                                                                                              \
        const tgi_layout *la = &r->problem->a, *lb = &r->problem->b;                               \
        const element *a = (const element *)r->a + r->row * la->row + r->k0 * la->col;             \
        const element *b = (const element *)r->b + r->k0 * lb->row + r->col * lb->col;             \
        for (int64_t i = 0; i < r->rows; i++) {                                                    \
            for (int64_t j = 0; j < r->cols; j++) {                                                \
                accum sum = ((accum *)r->sums)[i * r->cols + j];                                   \
                for (int64_t p = 0; p < r->k; p++)                                                 \
                    sum +=                                                                         \
                        widen(a[i * la->row + p * la->col]) * widen(b[p * lb->row + j * lb->col]); \
                ((accum *)r->sums)[i * r->cols + j] = sum;                                         \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void tile_##type(const region *r)                                                       \
    {                                                                                              \
        const tgi_layout *la = &r->problem->a, *lb = &r->problem->b;                               \
        const element *a = (const element *)r->a + r->row * la->row + r->k0 * la->col;             \
        const element *b = (const element *)r->b + r->k0 * lb->row + r->col * lb->col;             \
        for (int64_t i = 0; i < r->rows; i++) {                                                    \
            for (int64_t p = 0; p < r->k; p++) {                                                   \
                accum left = widen(a[i * la->row + p * la->col]);                                  \
                for (int64_t j = 0; j < r->cols; j++)                                              \
                    ((accum *)r->sums)[i * r->cols + j] +=                                         \
                        left * widen(b[p * lb->row + j * lb->col]);                                \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_LOOPS(fp32, float, float, )
DEFINE_LOOPS(fp64, double, double, )
DEFINE_LOOPS(bf16, uint16_t, float, tgi_fp32_from_bf16)
DEFINE_LOOPS(fp16, uint16_t, float, tgi_fp32_from_fp16)

static region_fn *const dot_functions[] = {dot_fp32, dot_fp64, dot_bf16, dot_fp16};
static region_fn *const tile_functions[] = {tile_fp32, tile_fp64, tile_bf16, tile_fp16};

/* A block has at most tile x tile sums, which lie in the workspace. Stacks may be small. */
#define SUMS_BYTES (TILE * TILE * sizeof(double))

/* Computes D in blocks of at most tile x tile. Within a block k advances by tile_k. */
static void run_blocks(const tgi_call *call, region_fn *function, int64_t tile, int64_t tile_k)
{
    const tgi_problem *p = call->problem;
    const int64_t bytes = tgi_type_bytes(p->type);
    tgi_finish_fn *finish = tgi_cpu_get_prepared(call)->kernels->finish;
    for (int64_t batch = 0; batch < p->batch_count; batch++) {
        for (int64_t row = 0; row < p->m; row += tile) {
            for (int64_t col = 0; col < p->n; col += tile) {
                memset(call->workspace, 0, SUMS_BYTES);
                region r = {.problem = p,
                            .a = tgi_cpu_at(call->a, &p->a, batch, 0, 0, bytes),
                            .b = tgi_cpu_at(call->b, &p->b, batch, 0, 0, bytes),
                            .row = row,
                            .col = col,
                            .rows = p->m - row < tile ? p->m - row : tile,
                            .cols = p->n - col < tile ? p->n - col : tile,
                            .sums = call->workspace};
                for (r.k0 = 0; r.k0 < p->k; r.k0 += tile_k) {
                    r.k = p->k - r.k0 < tile_k ? p->k - r.k0 : tile_k;
                    function(&r);
                }
                tgi_finish block = {.rows = r.rows,
                                    .cols = r.cols,
                                    .sums = call->workspace,
                                    .sums_row = r.cols,
                                    .is_first = 1,
                                    .is_last = 1};
                tgi_cpu_finish(call, finish, batch, row, col, &block);
            }
        }
    }
}

static tg_status launch_sequential(const tgi_call *call)
{
    /* Blocks only limit how many sums are held at a time. Each sum is one dot product over all of
     * k. */
    run_blocks(call, dot_functions[call->problem->type], TILE, call->problem->k);
    return TG_STATUS_OK;
}

static tg_status launch_blocked(const tgi_call *call)
{
    run_blocks(call, tile_functions[call->problem->type], TILE, TILE);
    return TG_STATUS_OK;
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal,
                    double macs_per_cycle)
{
    tgi_cpu_work work = {.macs =
                             (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count,
                         .macs_per_cycle = macs_per_cycle,
                         .memory_bytes = tgi_model_operand_bytes(p),
                         .memory_share = 1.0,
                         .fixed_cycles = TEACHING_CYCLES,
                         .thread_count = 1};
    proposal->is_legal = 1;
    proposal->workspace_bytes = SUMS_BYTES;
    proposal->predicted_s = proposal->serial_s = tgi_model_cpu_seconds(machine, &work);
}

static void propose_sequential(const tgi_machine *machine, const tgi_problem *p,
                               tgi_proposal *proposal)
{
    propose(machine, p, proposal, 0.25); /* each addition waits 4 cycles for the previous one */
}

static void propose_blocked(const tgi_machine *machine, const tgi_problem *p,
                            tgi_proposal *proposal)
{
    propose(machine, p, proposal, tgi_figures_find_cpu()->blocked_macs_per_cycle);
}

const tgi_cpu_family tgi_cpu_sequential = {.propose = propose_sequential,
                                           .launch = launch_sequential};
const tgi_cpu_family tgi_cpu_blocked = {.propose = propose_blocked, .launch = launch_blocked};
