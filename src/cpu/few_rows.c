/*
 * Families `rank` and `dot` multiply at most TGI_SKINNY_ROWS rows of A. Their speed is the speed of
 * reading B. A task is a strip of columns and a range of k. The sums of a strip stay in L1. Few
 * columns beside an A along m are few rows of the transposed problem, for `rank`.
 */
#include <string.h>

#include "cpu/blocking.h"
#include "threads/threads.h"

/* The sums of a strip, m x columns, fit in an L1 cache. Wide strips give long reads of B. */
#define STRIP_BYTES 32768

/* Columns of at most so many bytes have passed before `dot` could prefetch the next ones, so that a
 * small B is prefetched first. */
#define SHORT_COLUMN_BYTES 256

/* `dot` forms six columns at once with AVX-512 and three without, so that six are whole groups. */
#define DOT_GROUP_COLS 6

/* Beside more rows than these `dot` waits for memory longer, by this share of its products' time.
 */
#define DOT_NEAR_ROWS 8
#define DOT_FAR_SHARE 0.5

/* If operands come from memory, `dot` loses so many cycles for an element of B beside few rows
 * of the caller's D, and one thread of `rank` for a byte of D, whose lines come after the products.
 * Beside a longer k than this one they count little. */
#define DOT_FAR_B_CYCLES 0.25
#define RANK_FAR_D_CYCLES 0.5
#define RANK_FAR_K 64

/* An L1 of so many bytes does not hold the sums of a strip and the rows of B that are added to
 * them. A Zen 4 reaches this share of the rate of `rank` in FP32 and FP64 with more than
 * SMALL_L1_ROWS rows. If k has several chunks it waits for B anyway, and the limit is
 * SMALL_L1_LONG_ROWS. Other processors with AVX-512 and such an L1 were not measured. */
#define SMALL_L1_BYTES 32768
#define SMALL_L1_SHARE 0.37
#define SMALL_L1_ROWS 2
#define SMALL_L1_LONG_ROWS 6

typedef struct skinny_run {
    const tgi_call *call;
    const tgi_strip_decision *decision;
    const tgi_isa_kernels *kernels;
    tgi_skinny_fn *function;
    int64_t chunk_count, strip_count;
    /* Bytes of a thread's copy of A for a chunk, and of its sums of a strip, which it has twice. */
    int64_t a_bytes, strip_bytes;
    char *thread_blocks;
    char *chunk_sums; /* chunk_count x m x n sums if k is split */
} skinny_run;

/* Returns 1 if the kernels can read A in place: accumulators that are contiguous along k. */
static int is_a_ready(const tgi_problem *p)
{
    return tgi_type_bytes(p->type) == tgi_type_sum_bytes(p->type) && p->a.col == 1;
}

static void set_sizes(const tgi_problem *p, const tgi_strip_decision *decision, skinny_run *run)
{
    int64_t bytes = tgi_type_sum_bytes(p->type);
    run->chunk_count = tgi_divide_up(p->k, decision->kc);
    run->strip_count = tgi_divide_up(p->n, decision->strip_cols);
    run->a_bytes = is_a_ready(p) ? 0 : tgi_round_up(p->m * decision->kc * bytes, TGI_ALIGN_BYTES);
    run->strip_bytes = tgi_round_up(p->m * decision->strip_cols * bytes, TGI_ALIGN_BYTES);
}

static int64_t count_chunk_sums_bytes(const tgi_problem *p, const tgi_strip_decision *decision,
                                      const skinny_run *run)
{
    return decision->k_splits > 1
               ? tgi_round_up(run->chunk_count * p->m * p->n * tgi_type_sum_bytes(p->type),
                              TGI_ALIGN_BYTES)
               : 0;
}

/* Points the run at the chunk's columns of A: in place, or widened into the thread's block. */
static void read_a(const skinny_run *run, int64_t batch, int64_t k0, int64_t k, char *block,
                   tgi_skinny *s)
{
    const tgi_problem *p = run->call->problem;
    const void *a = tgi_cpu_at(run->call->a, &p->a, batch, 0, k0, tgi_type_bytes(p->type));
    s->a = a;
    s->a_row = p->a.row;
    if (run->a_bytes == 0)
        return;
    tgi_copy copy = {.target = block,
                     .target_stride = k,
                     .source = a,
                     .outer = p->m,
                     .inner = k,
                     .outer_stride = p->a.row,
                     .inner_stride = p->a.col};
    run->kernels->widen(&copy);
    s->a = block;
    s->a_row = k;
}

static void run_strip(void *state, int64_t index, int thread)
{
    const skinny_run *run = state;
    const tgi_problem *p = run->call->problem;
    const tgi_strip_decision *decision = run->decision;
    const int64_t bytes = tgi_type_sum_bytes(p->type), k_splits = decision->k_splits;
    int64_t k_split = index % k_splits, strip = index / k_splits % run->strip_count;
    int64_t batch = index / k_splits / run->strip_count, col = strip * decision->strip_cols;
    int64_t cols = p->n - col < decision->strip_cols ? p->n - col : decision->strip_cols;
    char *a_block = run->thread_blocks + thread * (run->a_bytes + 2 * run->strip_bytes);
    char *sums = a_block + run->a_bytes, *running = sums + run->strip_bytes;
    int64_t first = tgi_cpu_find_portion(run->chunk_count, k_splits, k_split, 1);
    int64_t last = tgi_cpu_find_portion(run->chunk_count, k_splits, k_split + 1, 1);
    tgi_skinny s = {
        .m = p->m, .n = cols, .is_far = decision->is_b_far, .sums = sums, .sums_row = cols};
    s.b_stride = run->function == run->kernels->rank ? p->b.row : p->b.col;
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t k0 = chunk * decision->kc;
        s.k = p->k - k0 < decision->kc ? p->k - k0 : decision->kc;
        read_a(run, batch, k0, s.k, a_block, &s);
        s.b = tgi_cpu_at(run->call->b, &p->b, batch, k0, col, tgi_type_bytes(p->type));
        if (run->chunk_sums) {
            s.sums = run->chunk_sums + (chunk * p->m * p->n + col) * bytes;
            s.sums_row = p->n;
        }
        for (int64_t i = 0; i < p->m; i++)
            memset((char *)s.sums + i * s.sums_row * bytes, 0, (size_t)(cols * bytes));
        run->function(&s);
        if (run->chunk_sums)
            continue;
        tgi_finish block = {.rows = p->m,
                            .cols = cols,
                            .sums = sums,
                            .sums_row = cols,
                            .running = running,
                            .running_row = cols,
                            .is_first = chunk == 0,
                            .is_last = chunk == run->chunk_count - 1};
        tgi_cpu_finish(run->call, run->kernels->finish, batch, 0, col, &block);
    }
}

/* Returns 1 if `rank` computes D^T = B^T A^T: D has few columns, and A lies along m. */
static int must_transpose(const tgi_problem *p)
{
    return p->n <= TGI_SKINNY_ROWS && p->n < p->m && p->a.row == 1;
}

static tg_status run_strips(const tgi_call *call, int is_rank)
{
    const tgi_problem *p = call->problem;
    const tgi_cpu_prepared *prepared = call->prepared;
    const tgi_strip_decision *decision = &prepared->decision.strip;
    skinny_run run = {.call = call, .decision = decision, .kernels = prepared->kernels};
    run.function = is_rank ? run.kernels->rank : run.kernels->dot;
    set_sizes(p, decision, &run);
    int64_t sums_bytes = count_chunk_sums_bytes(p, decision, &run);
    run.chunk_sums = sums_bytes ? call->workspace : NULL;
    run.thread_blocks = (char *)call->workspace + sums_bytes;
    int64_t count = p->batch_count * run.strip_count * decision->k_splits;
    if (!is_rank && count == 1 && p->k * tgi_type_bytes(p->type) <= SHORT_COLUMN_BYTES) {
        const tgi_prefetch_block b_block =
            tgi_cpu_find_block(&p->b, p->k, p->n, tgi_type_bytes(p->type));
        tgi_cpu_prefetch_block(call->b, &b_block);
    }
    tgi_threads_run(run_strip, &run, count, prepared->thread_count);
    if (sums_bytes) {
        tgi_cpu_reduce_chunks(call, run.kernels->finish, run.chunk_sums, run.chunk_count);
    }
    return TG_STATUS_OK;
}

static tg_status launch_rank(const tgi_call *call)
{
    if (!must_transpose(call->problem))
        return run_strips(call, 1);
    tgi_problem problem;
    tgi_call transposed;
    tgi_cpu_transpose_call(call, &problem, &transposed);
    return run_strips(&transposed, 1);
}

static tg_status launch_dot(const tgi_call *call)
{
    return run_strips(call, 0);
}

static int64_t count_strips(const tgi_problem *p)
{
    int64_t cols = STRIP_BYTES / tgi_type_sum_bytes(p->type) / p->m;
    return tgi_divide_up(p->n, cols);
}

/* Splits D into at most `strip_count` strips of whole groups of columns and, if that leaves threads
 * without one, k into ranges of chunks. Returns the products of a column and a value of k that the
 * slowest thread has for a row. */
static int64_t split_strips(const tgi_problem *p, int64_t strip_count, int group_cols,
                            int thread_count, tgi_strip_decision *decision)
{
    const int64_t cols = tgi_divide_up(p->n, strip_count), kc = decision->kc;
    const int64_t chunk_count = tgi_divide_up(p->k, kc);
    const double sums_bytes =
        (double)chunk_count * (double)(p->m * p->n * tgi_type_sum_bytes(p->type));
    decision->strip_cols = tgi_round_up(cols, group_cols);
    decision->k_splits = 1;
    const int64_t strips = p->batch_count * tgi_divide_up(p->n, decision->strip_cols);
    if (p->batch_count == 1 && strips < thread_count &&
        sums_bytes <= (double)TGI_CHUNK_SUMS_BYTES) {
        const int64_t splits = thread_count / strips;
        decision->k_splits = splits < chunk_count ? splits : chunk_count;
    }
    const int64_t rounds = tgi_divide_up(strips * decision->k_splits, thread_count);
    const int64_t chunks = tgi_divide_up(chunk_count, decision->k_splits);
    return rounds * (p->n < decision->strip_cols ? p->n : decision->strip_cols) *
           (chunks == chunk_count ? p->k : chunks * kc);
}

/* Splits the problem for `thread_count` threads. Strips are tasks. If there are fewer of them than
 * threads, ranges of k are tasks too, or strips are narrower, whichever ends first. Strips that are
 * as wide as sums in L1 allow read B in longer runs. */
static void choose_strips(const tgi_problem *p, int64_t kc, int thread_count, int group_cols,
                          tgi_strip_decision *decision)
{
    const int64_t strips = count_strips(p);
    const int64_t wanted = tgi_divide_up(thread_count, p->batch_count);
    tgi_strip_decision wide = {.kc = kc};
    decision->kc = kc;
    const int64_t narrow_count =
        split_strips(p, tgi_round_up(strips, wanted), group_cols, thread_count, decision);
    if (wanted > 1 && split_strips(p, strips, group_cols, thread_count, &wide) <= narrow_count)
        *decision = wide;
}

/* Terms of cold operands are measured of single products of FP32 and FP64, whose rows of D are
 * contiguous. */
static int is_measured(const tgi_problem *p)
{
    return p->batch_count == 1 && p->d.col == 1 &&
           tgi_type_bytes(p->type) == tgi_type_sum_bytes(p->type);
}

/* Return the cycles that `dot`, and one thread of `rank`, lose where operands come from memory. */
static double count_far_dot_cycles(const tgi_problem *p, double product_cycles)
{
    return (p->m > DOT_NEAR_ROWS ? DOT_FAR_SHARE * product_cycles : 0.0) +
           (is_measured(p) ? DOT_FAR_B_CYCLES * (double)(p->k * p->n) : 0.0);
}

static double count_far_rank_cycles(const tgi_problem *p)
{
    return is_measured(p) && p->k <= RANK_FAR_K
               ? RANK_FAR_D_CYCLES * (double)(p->m * p->n * tgi_type_bytes(p->d_type))
               : 0.0;
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal,
                    int64_t kc, int is_dot, double peak_share, double entry_cycles)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_isa_kernels *kernels = tgi_cpu_select(kernel);
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    const int is_converted = tgi_type_bytes(p->type) < tgi_type_sum_bytes(p->type);
    double macs_per_cycle =
        tgi_cpu_macs_per_cycle(kernel) * peak_share * (is_converted ? f->strips_narrow_share : 1.0);
    proposal->is_legal = 1;
    if (tgi_problem_is_empty(p) || tgi_problem_is_scale_only(p))
        return;
    double lanes = kernels->tiles->vector_elems;
    double strips = (double)count_strips(p);
    double chunks = (double)(tgi_divide_up(p->k, kc)) * (double)p->batch_count;
    double copied_elems =
        p->a.col == 1 ? 0.0 : (double)p->m * (double)p->k * (double)p->batch_count;
    tgi_cpu_work work = {
        .macs = (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count,
        .macs_per_cycle = macs_per_cycle,
        .memory_bytes = tgi_model_operand_bytes(p),
        .memory_share = 1.0,
        /* Each row of each chunk is cleared, finished and written by calls of its own. An A along m
         * is transposed. */
        .fixed_cycles = f->strips_call_cycles + entry_cycles * (double)p->batch_count +
                        f->direct_copied_cycles * copied_elems +
                        chunks * ((strips + (double)p->m) * f->strips_row_cycles +
                                  f->strips_sums_cycles * (double)(p->m * p->n) / lanes),
        .thread_count = 1};
    if (is_dot)
        work.cold_cycles = count_far_dot_cycles(p, work.macs / macs_per_cycle);
    proposal->serial_s = tgi_model_cpu_seconds(machine, &work);
    const int thread_count = tgi_cpu_count_threads(machine, proposal->serial_s);
    proposal->thread_count = thread_count;
    if (!is_dot && thread_count == 1)
        work.cold_cycles = count_far_rank_cycles(p);
    const int group_cols = is_dot ? DOT_GROUP_COLS : TGI_ALIGN_BYTES / (int)tgi_type_bytes(p->type);
    choose_strips(p, kc, thread_count, group_cols, &proposal->decision.strip);
    proposal->decision.strip.is_b_far = p->k * p->n * tgi_type_bytes(p->type) > machine->l2_bytes;
    const tgi_strip_decision *strip = &proposal->decision.strip;
    const int64_t tasks = p->batch_count * tgi_divide_up(p->n, strip->strip_cols) * strip->k_splits;
    work.thread_count = tasks < thread_count ? (int)tasks : thread_count;
    proposal->predicted_s = tgi_model_cpu_seconds(machine, &work);

    skinny_run run = {0};
    set_sizes(p, &proposal->decision.strip, &run);
    proposal->workspace_bytes = count_chunk_sums_bytes(p, &proposal->decision.strip, &run) +
                                thread_count * (run.a_bytes + 2 * run.strip_bytes);
}

/* Returns the share of rank_share that the machine reaches. */
static double find_l1_share(const tgi_machine *machine, const tgi_problem *p)
{
    const int is_small = machine->l1_bytes > 0 && machine->l1_bytes <= SMALL_L1_BYTES &&
                         machine->features & TGI_FEATURE_AVX512;
    const int is_converted = tgi_type_bytes(p->type) < tgi_type_sum_bytes(p->type);
    const int64_t rows = p->k > TGI_CHUNK_K ? SMALL_L1_LONG_ROWS : SMALL_L1_ROWS;
    return is_small && !is_converted && p->m > rows ? SMALL_L1_SHARE : 1.0;
}

static void propose_rank(const tgi_machine *machine, const tgi_problem *given,
                         tgi_proposal *proposal)
{
    tgi_problem oriented = *given;
    const tgi_problem *const p = &oriented;
    if (must_transpose(given))
        tgi_problem_transpose(&oriented);
    if (p->m > TGI_SKINNY_ROWS || p->b.col != 1) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_SHAPE,
                   "takes at most %d rows and a B with contiguous rows, or as few columns and "
                   "an A with contiguous columns",
                   TGI_SKINNY_ROWS);
        return;
    }
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    /* Each update of the sums by TGI_RANK_DEPTH rows loads its columns of A first. Updates by
     * half of them and by single rows take the rest. */
    const double lanes = tgi_cpu_select(proposal->kernel)->tiles->vector_elems;
    const double m = (double)p->m, updates = (double)(p->k / TGI_RANK_DEPTH) * m / 2.0;
    const int64_t rest = p->k % TGI_RANK_DEPTH, half = TGI_RANK_DEPTH / 2;
    const double single = (double)(rest / half + rest % half) * m * (double)p->n / lanes;
    const double finished =
        (p->d.col == 1 ? f->rank_finish_cycles / lanes : f->apart_cycles) * m * (double)p->n;
    propose(machine, p, proposal, tgi_cpu_chunk_k(p->k, 1), 0,
            f->rank_share * find_l1_share(machine, p),
            f->rank_update_cycles * updates + f->rank_single_cycles * single + finished);
}

/* Returns the chunk length of `dot`. Each chunk ends with a sum over lanes, which costs as much as
 * several vectors of products, so chunks are long. All rows of a chunk of A must still stay in L1
 * while the columns of B pass. */
static int64_t choose_dot_chunk(const tgi_problem *p)
{
    const int64_t chunk_elems = 16384, multiple = 256;
    int64_t chunk = chunk_elems / p->m / multiple * multiple;
    return p->k < chunk ? p->k : chunk;
}

static void propose_dot(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    if (p->m > TGI_SKINNY_ROWS || p->b.row != 1) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_SHAPE,
                   "takes at most %d rows and a B with contiguous columns", TGI_SKINNY_ROWS);
        return;
    }
    proposal->is_legal = 1;
    if (tgi_problem_is_empty(p) || tgi_problem_is_scale_only(p))
        return;
    /* Each sum of a vector's lanes takes as long as some products of vectors. */
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    double lanes = tgi_cpu_select(proposal->kernel)->tiles->vector_elems;
    double share = (double)p->k / ((double)p->k + f->dot_lanes_products * lanes);
    propose(machine, p, proposal, choose_dot_chunk(p), 1, f->dot_share * share, 0.0);
}

const tgi_cpu_family tgi_cpu_rank = {.propose = propose_rank, .launch = launch_rank};
const tgi_cpu_family tgi_cpu_dot = {.propose = propose_dot, .launch = launch_dot};
