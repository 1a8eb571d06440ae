/* Runs a kernel's blocks one after another. The threads of a block are fibers that run in turn. */
#include "sim/run_state.h"

#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/banks.h"
#include "sim/requests.h"
#include "sim/l2.h"
#include "sim/trace.h"
#include "sim/thread_index.h"

/* The state is kept from run to run. All runs share the simulated shared memory, so one goes at a
 * time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sim_run *kept;

static void start_thread(void)
{
    sim_run *run = tgi_sim_now;
    const tgi_sim_launch *launch = run->launch;
    if (launch->body)
        launch->body(launch->args);
    else
        launch->function(launch->a, launch->b, launch->d, launch->m, launch->n, launch->k);
    run->thread->state = THREAD_ENDED;
    tgi_fiber_switch(&run->thread->fiber, run->scheduler);
    __builtin_unreachable();
}

static void go_on(sim_run *run, sim_thread *thread)
{
    const unsigned width = run->launch->block[0];
    run->thread = thread;
    tgi_sim_thread_index =
        (tgi_sim_index){(unsigned)thread->index % width, (unsigned)thread->index / width, 0};
    tgi_fiber_switch(&run->scheduler, thread->fiber);
    run->thread = NULL;
}

/* Records that `waiting` waits where `other` does not come, and stops the run. */
static void report_divergence(sim_run *run, const sim_thread *waiting, const sim_thread *other)
{
    run->thread = (sim_thread *)waiting;
    tgi_sim_finding *finding = tgi_sim_find(run, TG_FINDING_DIVERGENT_BARRIER, waiting->wait_site);
    if (finding) {
        finding->other_thread = other->index;
        finding->other_site = other->state == THREAD_ENDED ? -1 : other->wait_site;
    }
    run->thread = NULL;
    run->is_stopped = 1;
}

/* Lets the lanes of a warp go on from the instruction at which all of them are. Records a divergent
 * barrier if some are elsewhere. Returns 0 if no lane is at such an instruction. */
static int go_on_together(sim_run *run, sim_thread *lanes, int lane_count)
{
    const sim_thread *first = NULL, *other = NULL;
    for (int i = 0; i < lane_count && !first; i++)
        first = lanes[i].state == THREAD_MEETS ? &lanes[i] : NULL;
    for (int i = 0; i < lane_count && first && !other; i++) {
        if (lanes[i].state != THREAD_MEETS || lanes[i].wait_site != first->wait_site)
            other = &lanes[i];
    }
    if (other || !first) {
        if (first)
            report_divergence(run, first, other);
        return 0;
    }
    for (int i = 0; i < lane_count; i++)
        lanes[i].state = THREAD_RUNS;
    return 1;
}

/* Runs the threads of a warp to their barrier or their end. A thread that has made many accesses
 * lets the others catch up, so that few requests are open at once. */
static void run_warp(sim_run *run, sim_thread *lanes, int lane_count)
{
    int running_count = lane_count;
    while (running_count && !run->is_stopped) {
        running_count = 0;
        for (int i = 0; i < lane_count && !run->is_stopped; i++) {
            if (lanes[i].state == THREAD_RUNS)
                go_on(run, &lanes[i]);
            running_count += lanes[i].state == THREAD_RUNS;
        }
        if (!running_count && !run->is_stopped && go_on_together(run, lanes, lane_count))
            running_count = lane_count;
        if (run->requests && !run->is_stopped)
            tgi_sim_count_requests(run, lanes, lane_count, !running_count);
    }
}

/* Returns 1 if all threads wait at one barrier, 0 if all have ended. Otherwise it records a
 * divergent barrier. */
static int meet(sim_run *run)
{
    const sim_thread *waiting = NULL, *other = NULL;
    for (int i = 0; i < run->thread_count; i++) {
        const sim_thread *thread = &run->threads[i];
        if (thread->state == THREAD_WAITS && !waiting)
            waiting = thread;
    }
    for (int i = 0; i < run->thread_count && waiting && !other; i++) {
        const sim_thread *thread = &run->threads[i];
        if (thread->state == THREAD_ENDED ||
            tgi_sim_get_line(thread->wait_site) != tgi_sim_get_line(waiting->wait_site))
            other = thread;
    }
    if (!other)
        return waiting != NULL;
    report_divergence(run, waiting, other);
    return 0;
}

static void prepare_block(sim_run *run, const tgi_sim_block *block)
{
    tgi_sim_block_index = (tgi_sim_index){block->x, block->y, 0};
    tgi_sim_grid_size = (tgi_sim_index){run->launch->grid[0], run->launch->grid[1], 1};
    tgi_sim_block_size = (tgi_sim_index){run->launch->block[0], run->launch->block[1], 1};
    run->weight = block->weight;
    run->block_serial++;
    run->interval++;
    for (int i = 0; i < run->thread_count; i++) {
        sim_thread *thread = &run->threads[i];
        thread->state = THREAD_RUNS;
        thread->index = i;
        thread->depth = thread->copy_count = thread->group = 0;
        thread->own_place = thread->rounded_place = 0;
        thread->meeting_count = 0;
        thread->sync_count = 0;
        thread->reads_ahead = 0;
        tgi_fiber_prepare(&thread->fiber, (char *)run->stacks + i * (size_t)TGI_SIM_STACK_BYTES,
                          TGI_SIM_STACK_BYTES, start_thread);
    }
}

static void run_block(sim_run *run, const tgi_sim_block *block)
{
    prepare_block(run, block);
    for (int is_waiting = 1; is_waiting && !run->is_stopped;) {
        for (int i = 0; i < run->thread_count && !run->is_stopped; i += TGI_WARP_THREADS) {
            int left = run->thread_count - i;
            run_warp(run, &run->threads[i], left < TGI_WARP_THREADS ? left : TGI_WARP_THREADS);
        }
        is_waiting = run->is_stopped ? 0 : meet(run);
        int site = is_waiting ? run->threads[0].wait_site : -1;
        if (run->tracer && !run->is_stopped)
            tgi_sim_trace_phase(run, site);
        if (!is_waiting)
            break;
        if (run->record->counts)
            run->record->counts[site].barriers += run->weight;
        run->interval++;
        for (int i = 0; i < run->thread_count; i++)
            run->threads[i].state = THREAD_RUNS;
    }
}

static void run_blocks(sim_run *run)
{
    const tgi_sim_launch *launch = run->launch;
    const int64_t count =
        launch->blocks ? launch->block_count : (int64_t)launch->grid[0] * launch->grid[1];
    for (int64_t i = 0; i < count && !run->is_stopped; i++) {
        tgi_sim_block block = {(unsigned)(i % launch->grid[0]), (unsigned)(i / launch->grid[0]), 1};
        if (launch->blocks)
            block = launch->blocks[i];
        if (launch->progress && launch->progress(launch->progress_state, i, count)) {
            run->record->is_cancelled = run->is_stopped = 1;
            return;
        }
        run_block(run, &block);
    }
}

/* Sets the operands of a rung: A, B and D without gaps. */
static void set_plain_operands(sim_run *run)
{
    const tgi_sim_launch *launch = run->launch;
    const int64_t m = launch->m, n = launch->n, k = launch->k, counts[] = {m * k, k * n, m * n};
    const void *const first[] = {launch->a, launch->b, launch->d};
    const int elem_bytes = (int)tgi_type_bytes(launch->type);
    for (int i = 0; i < 3; i++) {
        const uintptr_t low = (uintptr_t)first[i];
        run->operands[i] = (tgi_sim_operand){
            "ABD"[i], elem_bytes, i == 2, {low, low + (uintptr_t)(elem_bytes * counts[i])}};
    }
    run->operand_count = 3;
}

static int64_t count_elems(const tgi_sim_operand *operand)
{
    return (int64_t)(operand->range.high - operand->range.low) / operand->elem_bytes;
}

static void *allocate_zeroed(int64_t size_bytes)
{
    void *memory = tgi_alloc_block(size_bytes);
    if (memory)
        memset(memory, 0, (size_t)size_bytes);
    return memory;
}

/* Allocates the state of one launch. Returns 0 when out of memory. */
static int open_run(sim_run *run, const tgi_sim_launch *launch, tgi_sim_record *record)
{
    run->launch = launch;
    run->record = record;
    run->thread_count = (int)(launch->block[0] * launch->block[1]);
    memcpy(run->operands, launch->operands, sizeof run->operands);
    run->operand_count = launch->operand_count;
    if (!run->operand_count)
        set_plain_operands(run);
    run->variable = (tgi_sim_range){0, 0};
    run->is_stopped = run->is_out_of_memory = 0;
    int is_complete = 1;
    for (int i = 0; i < run->operand_count && !launch->blocks; i++) {
        const int64_t count = count_elems(&run->operands[i]);
        if (run->operands[i].is_output)
            is_complete =
                (run->elems[i] = allocate_zeroed(count * (int64_t)sizeof *run->elems[i])) &&
                is_complete;
        else if (record->counts)
            is_complete = (run->is_read[i] = allocate_zeroed((count + 7) / 8)) && is_complete;
    }
    if (record->counts)
        is_complete = (run->requests = tgi_sim_open_requests()) && is_complete;
    if (launch->l2_bytes)
        is_complete = (run->l2 = tgi_sim_open_l2(launch->l2_bytes)) && is_complete;
    if (launch->trace)
        is_complete = (run->tracer = tgi_sim_open_tracer()) && is_complete;
    return is_complete;
}

static void close_run(sim_run *run)
{
    for (int i = 0; i < TGI_SIM_OPERANDS_MAX; i++) {
        tgi_alloc_free(run->elems[i]);
        tgi_alloc_free(run->is_read[i]);
        run->elems[i] = NULL;
        run->is_read[i] = NULL;
    }
    tgi_sim_close_requests(run->requests);
    tgi_sim_close_l2(run->l2);
    tgi_sim_close_tracer(run->tracer);
    run->requests = NULL;
    run->l2 = NULL;
    run->tracer = NULL;
}

static int64_t count_bits(const uint8_t *bits, int64_t elem_count)
{
    int64_t count = 0;
    for (int64_t i = 0; i < (elem_count + 7) / 8; i++)
        count += __builtin_popcount(bits[i]);
    return count;
}

/* Returns the bytes of inputs that were read and of outputs that were written, each once. */
static int64_t count_distinct(const sim_run *run)
{
    int64_t size_bytes = 0;
    for (int i = 0; i < run->operand_count; i++) {
        const int64_t elem_count = count_elems(&run->operands[i]);
        int64_t count = run->is_read[i] ? count_bits(run->is_read[i], elem_count) : 0;
        for (int64_t j = 0; run->elems[i] && j < elem_count; j++)
            count += run->elems[i][j].block != 0;
        size_bytes += run->operands[i].elem_bytes * count;
    }
    return size_bytes;
}

/* Returns the state that lasts as long as the process: stacks and the history of shared memory. */
static sim_run *prepare_kept(void)
{
    if (kept)
        return kept;
    if (!tgi_sim_open_sites())
        return NULL;
    sim_run *run = tgi_alloc_object(sizeof *run);
    if (!run)
        return NULL;
    run->shared = tgi_sim_get_shared();
    run->words =
        allocate_zeroed((int64_t)((run->shared.high - run->shared.low) / 4 * sizeof *run->words));
    run->stacks_bytes = (size_t)TGI_SIM_BLOCK_THREADS * TGI_SIM_STACK_BYTES;
    run->stacks = (uintptr_t)tgi_alloc_block((int64_t)run->stacks_bytes);
    if (!run->words || !run->stacks) {
        tgi_alloc_free(run->words);
        tgi_alloc_free((void *)run->stacks);
        tgi_alloc_free(run);
        return NULL;
    }
    kept = run;
    return run;
}

tg_status tgi_sim_run(const tgi_sim_launch *launch, tgi_sim_record *record)
{
    tg_status status = TG_STATUS_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    sim_run *run = prepare_kept();
    if (run) {
        if (open_run(run, launch, record)) {
            tgi_sim_now = run;
            run_blocks(run);
            tgi_sim_now = NULL;
            status = run->is_out_of_memory ? TG_STATUS_OUT_OF_MEMORY : TG_STATUS_OK;
            if (record->counts && !launch->blocks)
                record->compulsory_bytes = count_distinct(run);
            record->shared_bytes = (int64_t)(run->variable.high - run->variable.low);
        }
        close_run(run);
        for (int i = 0; i < TGI_SIM_BLOCK_THREADS; i++) {
            tgi_alloc_free(run->threads[i].copies);
            run->threads[i].copies = NULL;
            run->threads[i].copy_capacity = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}
