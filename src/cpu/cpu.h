/* The files of the CPU backend share these declarations. */
#ifndef TGI_CPU_H
#define TGI_CPU_H

#include "core/checked.h"
#include "cpu/isa.h"
#include "model/figures.h"
#include "plan/backend.h"

/* If chunks of k are tasks, their partial sums take at most this many bytes. */
#define TGI_CHUNK_SUMS_BYTES ((int64_t)6 << 20)

/* A thread keeps this many rows of running sums if D cannot hold them. */
#define TGI_ROWS_KEPT 256

/* Blocks of the workspace start on cache lines. */
#define TGI_ALIGN_BYTES 64

/* A family of CPU kernels is one entry of the table in cpu_backend.c. */
typedef struct tgi_cpu_family {
    /* These functions are called like those of tgi_backend, for a row whose type and instruction
     * set fit. */
    void (*propose)(const tgi_machine *machine, const tgi_problem *problem, tgi_proposal *proposal);
    tgi_launch_fn *launch;
    /* A family that does not keep a tgi_cpu_prepared in its plans fills a block of its own, zeroed,
     * of prepared_bytes. For other families both members are zero. */
    int64_t prepared_bytes;
    void (*prepare)(const tgi_problem *problem, const tgi_proposal *proposal, void *prepared);
} tgi_cpu_family;

/* The data that most families keep in a plan, as the `prepared` of a call. */
typedef struct tgi_cpu_prepared {
    const tgi_isa_kernels *kernels; /* functions of the row's instruction set, for A's type */
    tgi_copy_fn *pack_b;            /* packs B's type */
    tgi_decision decision;
    int thread_count;
} tgi_cpu_prepared;

static inline const tgi_cpu_prepared *tgi_cpu_get_prepared(const tgi_call *call)
{
    return call->prepared;
}

extern const tgi_cpu_family tgi_cpu_sequential, tgi_cpu_blocked, tgi_cpu_direct, tgi_cpu_packed,
    tgi_cpu_rank, tgi_cpu_dot;

/* A chunk has at most this many values of k. Long chunks read and write D less often. A micropanel
 * of B, which is chunk x 192 bytes, must still stay in L2 while the row tiles pass. */
#define TGI_CHUNK_K 1024

/* Returns the number of products that are summed before they are added to the running sum. A tile
 * element holds k_per_elem products. All kernels that sum one product after another use this
 * length, so that they agree bit by bit. The result is a multiple of 8 or k itself. */
int64_t tgi_cpu_chunk_k(int64_t k, int64_t k_per_elem);

/* Returns the same for tiles, in whole steps of theirs, or k itself. */
int64_t tgi_cpu_find_chunk(const tgi_problem *p, const tgi_tile_set *tiles);

/* Returns the functions for a row of the table, or of an instruction set for a type. */
const tgi_isa_kernels *tgi_cpu_select(const tgi_kernel *kernel);
const tgi_isa_kernels *tgi_cpu_select_type(tgi_isa isa, tg_type type);

/* Returns the multiply-adds that one core finishes in a cycle with the row's instruction set. */
double tgi_cpu_macs_per_cycle(const tgi_kernel *kernel);

/* Returns 1 if D can hold running sums and be written by vectors. */
static inline int tgi_cpu_is_d_plain(const tgi_problem *problem)
{
    return problem->d.col == 1 &&
           tgi_type_bytes(problem->d_type) == tgi_type_sum_bytes(problem->type);
}

/* Columns of a page and more are each on pages of their own, and more of them than this exceed the
 * TLB. A byte of those takes so many cycles more where tiles read it in place from memory. */
#define TGI_NEAR_STEPS 128
#define TGI_FAR_STEP_CYCLES 0.08

/* Returns the cycles that tiles lose for a batch entry because they read an A along m in place.
 * Each value of k touches a line of another row, often of another page. */
static inline double tgi_cpu_count_strided_cycles(const tgi_problem *problem)
{
    const int64_t elems = problem->a.col == 1 ? 0 : problem->m * problem->k;
    return tgi_figures_find_cpu()->strided_a_cycles *
           (double)(elems * tgi_type_bytes(problem->type));
}

/* Returns the cycles that they lose more if that A lies in memory. */
static inline double tgi_cpu_count_far_cycles(const tgi_problem *problem)
{
    const int64_t far_k = problem->k - TGI_NEAR_STEPS;
    const int64_t elems = problem->a.col == 1 || far_k <= 0 ? 0 : problem->m * far_k;
    return TGI_FAR_STEP_CYCLES * (double)(elems * tgi_type_bytes(problem->type));
}

/* Returns 1 if tiles apply all operands that the epilogue uses: C and the bias. */
static inline int tgi_cpu_do_tiles_know(const tgi_epilogue *epilogue)
{
    const unsigned known = 1u << TGI_OPERAND_c | 1u << TGI_OPERAND_bias;
    return (tgi_epilogue_find_used(epilogue) & TGI_OPERANDS_EPILOGUE & ~known) == 0;
}

/* Returns the first entry of portion `index` of 0 .. extent, which is split into `portions` at
 * multiples of `multiple`. */
static inline int64_t tgi_cpu_find_portion(int64_t extent, int64_t portions, int64_t index,
                                           int64_t multiple)
{
    if (portions == 1) /* a division takes as long as a tile's products of several values of k */
        return index > 0 ? extent : 0;
    int64_t multiples = tgi_divide_up(extent, multiple);
    int64_t entry = (multiples * index / portions) * multiple;
    return entry < extent ? entry : extent;
}

/* Returns the address of element (row, col) of batch entry `batch`, or NULL if `data` is NULL. */
static inline const void *tgi_cpu_at(const void *data, const tgi_layout *layout, int64_t batch,
                                     int64_t row, int64_t col, int64_t element_bytes)
{
    int64_t offset = batch * layout->batch + row * layout->row + col * layout->col;
    return data ? (const char *)data + offset * element_bytes : NULL;
}

/* Makes *transposed the call that computes D^T = B^T A^T; *problem becomes its problem. */
void tgi_cpu_transpose_call(const tgi_call *call, tgi_problem *problem, tgi_call *transposed);

/* Finishes a block of sums at (row, col) of D, see tgi_finish. If `running` is NULL, running sums
 * go to D itself. */
void tgi_cpu_finish(const tgi_call *call, tgi_finish_fn *finish, int64_t batch, int64_t row,
                    int64_t col, tgi_finish *block);

/* Computes D of a call that forms no product: it runs the epilogue on sums that are all zero. */
tg_status tgi_cpu_run_epilogue_alone(const tgi_call *call);

/* Adds the sums of all chunks of k in the order of k and writes D. `chunk_sums` holds chunk_count x
 * m x n accumulators. */
void tgi_cpu_reduce_chunks(const tgi_call *call, tgi_finish_fn *finish, const void *chunk_sums,
                           int64_t chunk_count);

/* Fills in the processor's name, instruction set, caches and core count. */
void tgi_cpu_detect(tgi_machine *machine);

tg_status tgi_cpu_measure_peak(const tgi_machine *machine, tg_type type, int thread_count,
                               double *flop_per_s);

#endif
