/* Serves the calls of a running thread: accesses, barriers, asynchronous copies, arithmetic. */
#include "sim/hooks.h"

#include <string.h>

#include "core/alloc.h"
#include "sim/run_state.h"
#include "sim/requests.h"
#include "sim/trace.h"
#include "sim/thread_index.h"

/* After this many accesses a thread lets the others of its warp catch up. */
#define ACCESSES_AT_ONCE 2048

static int find_named_site(const sim_thread *thread, const void *return_address, int *depth)
{
    int site = tgi_sim_find_site(return_address);
    while (site >= 0 && tgi_sim_get_line(site) == 0 && *depth > 0) {
        int caller = tgi_sim_find_site(thread->frames[--*depth]);
        if (caller < 0)
            break; /* the simulator's call of the kernel */
        site = caller;
    }
    return site < 0 ? 0 : site;
}

int tgi_sim_resolve_site(sim_run *run, const void *return_address)
{
    sim_thread *thread = run->thread;
    int depth = thread->depth < TGI_SIM_FRAMES ? thread->depth : TGI_SIM_FRAMES;
    const uint64_t path = thread->paths[depth];
    const uint64_t mixed = (path ^ (uintptr_t)return_address) * UINT64_C(0x9e3779b97f4a7c15);
    resolved_site *known = &run->resolved[mixed >> (64 - RESOLVED_BITS)];
    if (known->return_address != return_address || known->path != path) {
        known->return_address = return_address;
        known->path = path;
        known->site = find_named_site(thread, return_address, &depth);
        known->depth = depth;
    }
    thread->site_depth = known->depth;
    return known->site;
}

static void note(sim_run *run, access_kind kind, uintptr_t address, int size_bytes, int site)
{
    if (run->tracer)
        tgi_sim_trace_access(run, kind, address, size_bytes, site);
    if (run->requests)
        tgi_sim_add_access(run, kind, address, size_bytes, site);
}

/* threadIdx and blockIdx are memory here; a GPU has them in registers. */
static int is_index(uintptr_t place)
{
    return place - (uintptr_t)&tgi_sim_thread_index < sizeof tgi_sim_thread_index ||
           place - (uintptr_t)&tgi_sim_block_index < sizeof tgi_sim_block_index ||
           place - (uintptr_t)&tgi_sim_grid_size < sizeof tgi_sim_grid_size ||
           place - (uintptr_t)&tgi_sim_block_size < sizeof tgi_sim_block_size;
}

/* A kernel's argument is in constant memory on a GPU. */
static int is_argument(const sim_run *run, uintptr_t place)
{
    return run->launch->args && place - (uintptr_t)run->launch->args < run->launch->args_bytes;
}

static void access_memory(const void *address, size_t size_bytes, int is_write, const void *caller)
{
    sim_run *run = tgi_sim_now;
    uintptr_t place = (uintptr_t)address;
    if (place - run->stacks < run->stacks_bytes || is_index(place) || is_argument(run, place))
        return; /* a thread's own variables, which a GPU has in registers, or its argument */
    int site = tgi_sim_resolve_site(run, caller);
    int is_shared = tgi_sim_is_shared(run, place);
    access_kind kind = is_shared  ? is_write ? ACCESS_SHARED_WRITE : ACCESS_SHARED_READ
                       : is_write ? ACCESS_GLOBAL_WRITE
                                  : ACCESS_GLOBAL_READ;
    if (is_shared)
        tgi_sim_check_shared(run, place, (int)size_bytes, kind, site);
    else
        tgi_sim_check_global(run, place, (int)size_bytes, is_write, site);
    note(run, kind, place, (int)size_bytes, site);
    if (run->requests && ++run->thread->access_count >= ACCESSES_AT_ONCE) {
        run->thread->access_count = 0;
        tgi_fiber_switch(&run->thread->fiber, run->scheduler);
    }
}

#define CALLER __builtin_return_address(0)

#define ACCESS_HOOKS(bytes)                                                                        \
    void tgi_sim_read##bytes(void *address)                                                        \
    {                                                                                              \
        access_memory(address, bytes, 0, CALLER);                                                  \
    }                                                                                              \
    void tgi_sim_write##bytes(void *address)                                                       \
    {                                                                                              \
        access_memory(address, bytes, 1, CALLER);                                                  \
    }                                                                                              \
    void tgi_sim_unaligned_read##bytes(void *address)                                              \
    {                                                                                              \
        access_memory(address, bytes, 0, CALLER);                                                  \
    }                                                                                              \
    void tgi_sim_unaligned_write##bytes(void *address)                                             \
    {                                                                                              \
        access_memory(address, bytes, 1, CALLER);                                                  \
    }
ACCESS_HOOKS(1)
ACCESS_HOOKS(2)
ACCESS_HOOKS(4)
ACCESS_HOOKS(8)
ACCESS_HOOKS(16)

/* Ranges are a thread's own arrays; other memory is accessed by elements. */
static void access_range(const void *address, size_t size_bytes, int is_write, const void *caller)
{
    for (size_t i = 0; i + 4 <= size_bytes; i += 4)
        access_memory((const char *)address + i, 4, is_write, caller);
}

void tgi_sim_read_range(void *address, size_t size_bytes)
{
    access_range(address, size_bytes, 0, CALLER);
}

void tgi_sim_write_range(void *address, size_t size_bytes)
{
    access_range(address, size_bytes, 1, CALLER);
}

void *tgi_sim_memcpy(void *to, const void *from, size_t size_bytes)
{
    access_range(from, size_bytes, 0, CALLER);
    access_range(to, size_bytes, 1, CALLER);
    return memcpy(to, from, size_bytes);
}

void *tgi_sim_memmove(void *to, const void *from, size_t size_bytes)
{
    access_range(from, size_bytes, 0, CALLER);
    access_range(to, size_bytes, 1, CALLER);
    return memmove(to, from, size_bytes);
}

void *tgi_sim_memset(void *to, int value, size_t size_bytes)
{
    access_range(to, size_bytes, 1, CALLER);
    return memset(to, value, size_bytes);
}

/* Returns the place of a thread's own variable on its stack, equal for all threads; 0 for other
 * memory. */
static uint64_t find_register(const sim_run *run, const void *address)
{
    uintptr_t place = (uintptr_t)address - run->stacks;
    return place < run->stacks_bytes ? place % TGI_SIM_STACK_BYTES : 0;
}

/* Moves to or from different elements of a thread's own array are different instructions on a GPU,
 * whose registers have no index. */
void tgi_sim_move(void *to, const void *from, size_t size_bytes)
{
    sim_run *run = tgi_sim_now;
    run->thread->own_place = find_register(run, to) ^ find_register(run, from);
    access_memory(from, size_bytes, 0, CALLER);
    access_memory(to, size_bytes, 1, CALLER);
    run->thread->own_place = 0;
    memcpy(to, from, size_bytes);
}

void tgi_sim_note_rounded(const void *number)
{
    tgi_sim_now->thread->rounded_place = find_register(tgi_sim_now, number);
}

void tgi_sim_init(void)
{
}

void tgi_sim_func_entry(const void *call_site)
{
    sim_thread *thread = tgi_sim_now->thread;
    if (thread->depth < TGI_SIM_FRAMES) {
        const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
        thread->frames[thread->depth] = call_site;
        thread->paths[thread->depth + 1] =
            (thread->paths[thread->depth] ^ (uintptr_t)call_site) * factor;
    }
    thread->depth++;
}

void tgi_sim_func_exit(void)
{
    tgi_sim_now->thread->depth--;
}

/* Returns the number of the barrier at the site, from 1 on in the order in which threads come to
 * barriers; 0 if there are too many. */
static int number_barrier(sim_run *run, int site)
{
    const int line = tgi_sim_get_line(site), count = run->record->barrier_count;
    for (int i = 0; i < count; i++) {
        if (run->barrier_lines[i] == line)
            return i + 1;
    }
    if (count == TGI_SIM_BARRIERS)
        return 0;
    run->barrier_lines[count] = line;
    return ++run->record->barrier_count;
}

void tgi_sim_barrier(void)
{
    sim_run *run = tgi_sim_now;
    run->thread->wait_site = tgi_sim_resolve_site(run, CALLER);
    if (run->launch->without_barrier &&
        number_barrier(run, run->thread->wait_site) == run->launch->without_barrier)
        return;
    run->thread->state = THREAD_WAITS;
    tgi_fiber_switch(&run->thread->fiber, run->scheduler);
}

void tgi_sim_vote(int vote)
{
    tgi_sim_now->thread->vote = vote;
}

int tgi_sim_has_vote(void)
{
    int has_vote = 0;
    for (int i = 0; i < tgi_sim_now->thread_count; i++)
        has_vote |= tgi_sim_now->threads[i].vote != 0;
    return has_vote;
}

static void count_flop(sim_run *run, const void *caller)
{
    if (run->record->counts)
        run->record->counts[tgi_sim_resolve_site(run, caller)].flops += run->weight;
}

void tgi_sim_count_products(const float *sums, int sum_count, int product_count, const void *caller)
{
    sim_run *run = tgi_sim_now;
    if (run->record->counts)
        run->record->counts[tgi_sim_resolve_site(run, caller)].flops +=
            run->weight * 2 * sum_count * product_count;
    for (int i = 0; i < sum_count && run->tracer; i++)
        tgi_sim_trace_sum(run, &sums[i], sums[i]);
}

void tgi_sim_access_shared(uintptr_t place, int size_bytes, int is_write, const void *caller)
{
    access_memory((const void *)place, (size_t)size_bytes, is_write, caller);
}

void tgi_sim_count_multiply(void)
{
    count_flop(tgi_sim_now, CALLER);
}

void tgi_sim_count_add(const void *sum, float value)
{
    count_flop(tgi_sim_now, CALLER);
    if (tgi_sim_now->tracer)
        tgi_sim_trace_sum(tgi_sim_now, sum, value);
}

uint32_t tgi_sim_shared_address(const void *pointer)
{
    return (uint32_t)((uintptr_t)pointer - tgi_sim_now->shared.low);
}

static async_copy *add_copy(sim_run *run)
{
    sim_thread *thread = run->thread;
    if (thread->copy_count == thread->copy_capacity) {
        int capacity = thread->copy_capacity ? 2 * thread->copy_capacity : 16;
        async_copy *copies = tgi_alloc_block(capacity * (int64_t)sizeof *copies);
        if (!copies) {
            tgi_sim_stop_without_memory(run);
        }
        if (thread->copy_count)
            memcpy(copies, thread->copies, (size_t)thread->copy_count * sizeof *copies);
        tgi_alloc_free(thread->copies);
        thread->copies = copies;
        thread->copy_capacity = capacity;
    }
    return &thread->copies[thread->copy_count++];
}

/* The data are read now, since A and B are constant, and arrive when the thread waits for them. */
void tgi_sim_copy_async(uint32_t shared, const void *global, int size_bytes, int byte_count)
{
    sim_run *run = tgi_sim_now;
    const uintptr_t to = run->shared.low + shared;
    int site = tgi_sim_resolve_site(run, CALLER);
    if (byte_count > 0) {
        tgi_sim_check_global(run, (uintptr_t)global, byte_count, 0, site);
        note(run, ACCESS_GLOBAL_READ, (uintptr_t)global, byte_count, site);
    }
    tgi_sim_check_shared(run, to, size_bytes, ACCESS_SHARED_COPY, site);
    note(run, ACCESS_SHARED_COPY, to, size_bytes, site);
    async_copy *copy = add_copy(run);
    *copy =
        (async_copy){.to = to, .size_bytes = size_bytes, .group = run->thread->group, .site = site};
    if (byte_count > 0)
        memcpy(copy->bytes, global, (size_t)byte_count);
}

void tgi_sim_skip_copy(void)
{
    sim_run *run = tgi_sim_now;
    if (run->requests) {
        const int site = tgi_sim_resolve_site(run, CALLER);
        tgi_sim_skip_access(run, ACCESS_GLOBAL_READ, site);
        tgi_sim_skip_access(run, ACCESS_SHARED_COPY, site);
    }
}

void tgi_sim_copy_commit(void)
{
    tgi_sim_now->thread->group++;
}

void tgi_sim_copy_wait(int pending_count)
{
    sim_run *run = tgi_sim_now;
    sim_thread *thread = run->thread;
    int kept_count = 0;
    for (int i = 0; i < thread->copy_count; i++) {
        const async_copy *copy = &thread->copies[i];
        if (copy->group < thread->group - pending_count) {
            memcpy((void *)copy->to, copy->bytes, (size_t)copy->size_bytes);
            tgi_sim_finish_copy(run, copy);
        } else {
            thread->copies[kept_count++] = *copy;
        }
    }
    thread->copy_count = kept_count;
}
