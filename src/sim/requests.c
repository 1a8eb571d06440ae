/*
 * Requests group the accesses of a warp's lanes by one call in the source: the i-th access of each
 * lane together. The calls around it count too, since a GPU has a copy of a function for each call.
 * Lanes run one after another, so a request is open until no lane can join it.
 *
 * bank_conflicts counts accesses as the source writes them. The counts that begin with counter_ are
 * those of a GPU's counters. nvcc merges four reads of neighbouring words that start at a multiple
 * of 16 bytes into one access, unless they fill an array of the thread's own (rung 8: the words of
 * four values of k would take too many registers). Asynchronous copies are neither reads nor writes
 * there.
 */
#include "sim/requests.h"

#include <string.h>

#include "core/alloc.h"
#include "model/banks.h"
#include "sim/l2.h"
#include "sim/thread_index.h"

enum { SECTOR_BYTES = 32, MERGED_WORDS = 4, SECTOR_SLOTS = 128, QUEUE_SLOTS = 4096 };

typedef struct request {
    uint32_t mask; /* lanes that take part */
    int size_bytes;
    int is_merged; /* into one access of 16 bytes */
    uintptr_t addresses[TGI_WARP_THREADS];
} request;

/* The open requests of one call and one kind of access, in the order of their numbers. */
typedef struct queue {
    uint64_t path;   /* hash of the calls that led there, and of the variable that is moved */
    int caller_site; /* site of the last of those calls; -1 if it is not in the ladder's source */
    int site, is_used;
    int is_kept; /* the data stay in an array of the thread's own */
    access_kind kind;
    request *requests;
    int count, capacity;
    uint32_t first_number;                   /* number of requests[0] */
    uint32_t lane_numbers[TGI_WARP_THREADS]; /* number of each lane's next access */
} queue;

/* A hash table of the queues of a warp's interval. They keep their room for requests. */
struct sim_requests {
    queue queues[QUEUE_SLOTS];
    int used[QUEUE_SLOTS]; /* slots in use, in the order of their first access */
    int used_count;
    int warp; /* the warp of these requests */
};

sim_requests *tgi_sim_open_requests(void)
{
    return tgi_alloc_object(sizeof(sim_requests));
}

void tgi_sim_close_requests(sim_requests *all)
{
    for (int i = 0; all && i < QUEUE_SLOTS; i++)
        tgi_alloc_free(all->queues[i].requests);
    tgi_alloc_free(all);
}

/* Finds or adds a queue. The run stops if a kernel has more places of access than slots. */
static queue *find_queue(sim_run *run, uint64_t path, int site, access_kind kind)
{
    sim_requests *all = run->requests;
    uint64_t mixed = (path ^ (uint64_t)(site * ACCESS_KIND_COUNT + (int)kind) << 1) *
                     UINT64_C(0x9e3779b97f4a7c15);
    for (size_t slot = mixed >> 52;; slot = (slot + 1) % QUEUE_SLOTS) {
        queue *found = &all->queues[slot];
        if (found->is_used && found->path == path && found->site == site && found->kind == kind)
            return found;
        if (found->is_used)
            continue;
        if (all->used_count == QUEUE_SLOTS - 1) {
            tgi_sim_stop_without_memory(run);
        }
        const int depth = run->thread->site_depth;
        found->path = path;
        found->caller_site = depth ? tgi_sim_find_site(run->thread->frames[depth - 1]) : -1;
        found->site = site;
        found->kind = kind;
        found->is_used = 1;
        all->used[all->used_count++] = (int)slot;
        return found;
    }
}

static void reserve(sim_run *run, queue *open, int count)
{
    if (count <= open->capacity)
        return;
    int capacity = open->capacity ? 2 * open->capacity : 64;
    while (capacity < count)
        capacity *= 2;
    request *requests = tgi_alloc_block(capacity * (int64_t)sizeof *requests);
    if (!requests) {
        tgi_sim_stop_without_memory(run);
    }
    if (open->count)
        memcpy(requests, open->requests, (size_t)open->count * sizeof *requests);
    tgi_alloc_free(open->requests);
    open->requests = requests;
    open->capacity = capacity;
}

/* Returns the queue of the running thread's access. */
static queue *find_own_queue(sim_run *run, access_kind kind, int site)
{
    const sim_thread *thread = run->thread;
    const int depth = thread->depth < TGI_SIM_FRAMES ? thread->depth : TGI_SIM_FRAMES;
    const uint64_t own_place =
        kind == ACCESS_GLOBAL_WRITE ? thread->own_place ^ thread->rounded_place : thread->own_place;
    return find_queue(run, thread->paths[depth] ^ own_place, site, kind);
}

void tgi_sim_skip_access(sim_run *run, access_kind kind, int site)
{
    find_own_queue(run, kind, site)->lane_numbers[run->thread->index % TGI_WARP_THREADS]++;
}

void tgi_sim_add_access(sim_run *run, access_kind kind, uintptr_t address, int size_bytes, int site)
{
    const sim_thread *thread = run->thread;
    const int lane = thread->index % TGI_WARP_THREADS;
    queue *open = find_own_queue(run, kind, site);
    open->is_kept = thread->own_place != 0;
    int place = (int)(open->lane_numbers[lane]++ - open->first_number);
    reserve(run, open, place + 1);
    while (open->count <= place)
        open->requests[open->count++].mask = 0;
    request *joined = &open->requests[place];
    if (!joined->mask) {
        joined->size_bytes = size_bytes;
        joined->is_merged = 0;
    }
    joined->mask |= 1u << lane;
    joined->addresses[lane] = address;
}

/* Returns the number of distinct sectors of a request; L2 sees each of them. */
static int count_sectors(sim_run *run, const request *one, tgi_sim_counts *counts)
{
    uintptr_t slots[SECTOR_SLOTS];
    uint64_t used[SECTOR_SLOTS / 64] = {0};
    uintptr_t last = 0;
    int count = 0;
    for (int lane = 0; lane < TGI_WARP_THREADS; lane++) {
        if (!(one->mask >> lane & 1))
            continue;
        uintptr_t sector =
            one->addresses[lane] / SECTOR_BYTES; /* accesses are aligned: one sector each */
        if (sector == last)
            continue;
        last = sector;
        size_t slot = (sector ^ sector >> 7) % SECTOR_SLOTS;
        while ((used[slot / 64] >> slot % 64 & 1) && slots[slot] != sector)
            slot = (slot + 1) % SECTOR_SLOTS;
        if (used[slot / 64] >> slot % 64 & 1)
            continue;
        used[slot / 64] |= UINT64_C(1) << slot % 64;
        slots[slot] = sector;
        count++;
        if (run->l2) {
            run->record->l2_requests++;
            if (tgi_sim_touch_sector(run->l2, sector)) {
                run->record->l2_hits++;
                counts->l2_hits++;
            }
        }
    }
    return count;
}

static int get_elem_bytes(const sim_run *run, const request *one)
{
    return tgi_sim_get_elem_bytes(run, one->addresses[__builtin_ctz(one->mask)]);
}

/* Counts a request of global memory. Returns its sectors. */
static int count_global(sim_run *run, const request *one, int is_write, tgi_sim_counts *counts)
{
    const int64_t weight = run->weight;
    const int64_t bytes = (int64_t)__builtin_popcount(one->mask) * one->size_bytes * weight;
    const int sector_count = count_sectors(run, one, counts);
    const int64_t sectors = sector_count * weight;
    if (is_write) {
        counts->global_store_requests += weight;
        counts->global_store_sectors += sectors;
        counts->global_write_elems += bytes / get_elem_bytes(run, one);
        counts->global_write_bytes += bytes;
    } else {
        counts->global_load_requests += weight;
        counts->global_load_sectors += sectors;
        counts->global_read_elems += bytes / get_elem_bytes(run, one);
        counts->global_read_bytes += bytes;
    }
    return sector_count;
}

/* Adds one access as a GPU's counters see it. */
static void add_counted(tgi_sim_counts *counts, tgi_turns turns, int64_t weight, int is_read)
{
    counts->counter_shared_loads += is_read ? weight : 0;
    counts->counter_shared_turns += weight * turns.count;
    counts->counter_bank_conflicts += weight * turns.conflict_count;
}

static void count_shared(sim_run *run, const request *one, access_kind kind, tgi_sim_counts *counts)
{
    const int64_t weight = run->weight;
    const tgi_turns turns = tgi_model_count_turns(one->addresses, one->mask, one->size_bytes);
    counts->bank_conflicts += weight * turns.conflict_count;
    if (kind == ACCESS_SHARED_READ)
        counts->shared_load_requests += weight;
    else
        counts->shared_store_requests += weight;
    if (kind != ACCESS_SHARED_COPY && !one->is_merged)
        add_counted(counts, turns, weight, kind == ACCESS_SHARED_READ);
}

/* Returns 1 if `next` reads the words `distance` words behind those of `one`, lane by lane. */
static int follows(const request *one, const request *next, int distance)
{
    if (next->is_merged || next->mask != one->mask)
        return 0;
    for (int lane = 0; lane < TGI_WARP_THREADS; lane++) {
        if ((one->mask >> lane & 1) &&
            next->addresses[lane] != one->addresses[lane] + 4 * (uintptr_t)distance)
            return 0;
    }
    return 1;
}

/* Marks four reads of neighbouring words that nvcc merges, and counts their conflicts. */
static void merge_reads(sim_run *run, queue *open, tgi_sim_counts *counts)
{
    for (int i = 0; i < open->count; i++) {
        request *parts[MERGED_WORDS] = {&open->requests[i]};
        const request *first = parts[0];
        int found = 1, is_aligned = first->size_bytes == 4 && !first->is_merged;
        for (int lane = 0; lane < TGI_WARP_THREADS; lane++)
            is_aligned &= !(first->mask >> lane & 1) || first->addresses[lane] % 16 == 0;
        for (int j = i + 1; is_aligned && found < MERGED_WORDS && j < open->count; j++) {
            if (follows(first, &open->requests[j], found))
                parts[found++] = &open->requests[j];
        }
        if (found < MERGED_WORDS)
            continue;
        for (int j = 0; j < MERGED_WORDS; j++)
            parts[j]->is_merged = 1;
        add_counted(counts, tgi_model_count_turns(first->addresses, first->mask, 16), run->weight,
                    1);
    }
}

/* Returns the line of the call that led to a site; 0 if it stands in another file. */
static int find_caller_line(int site, int caller_site)
{
    if (caller_site < 0 || strcmp(tgi_sim_get_file(site), tgi_sim_get_file(caller_site)) != 0)
        return 0;
    return tgi_sim_get_line(caller_site);
}

static void tell(const sim_run *run, const queue *open, const request *one, int sector_count)
{
    const access_kind kind = open->kind;
    const int elem_bytes = get_elem_bytes(run, one);
    tg_simulated_request told = {
        .block_x = tgi_sim_block_index.x,
        .block_y = tgi_sim_block_index.y,
        .warp = run->requests->warp,
        .file = tgi_sim_get_file(open->site),
        .line = tgi_sim_get_line(open->site),
        .caller_line = find_caller_line(open->site, open->caller_site),
        .is_write = kind != ACCESS_GLOBAL_READ && kind != ACCESS_SHARED_READ,
        .is_in_background = kind == ACCESS_SHARED_COPY,
        .elem_bytes = elem_bytes,
        .elem_count = (one->size_bytes + elem_bytes - 1) / elem_bytes,
        .active_lanes = one->mask,
        .sector_count = sector_count,
    };
    told.source = tgi_sim_get_source(told.file, told.line, &told.source_length);
    for (int lane = 0; lane < TGI_WARP_THREADS; lane++) {
        if (one->mask >> lane & 1)
            told.space = tgi_sim_find_element(run, one->addresses[lane], &told.indices[lane]);
    }
    if (kind != ACCESS_GLOBAL_READ && kind != ACCESS_GLOBAL_WRITE)
        told.group_count =
            tgi_model_split_request(one->addresses, one->mask, one->size_bytes, told.groups);
    run->launch->watch(run->launch->watch_state, &told);
}

static void count_queue(sim_run *run, queue *open, int count)
{
    const access_kind kind = open->kind;
    tgi_sim_counts *counts = &run->record->counts[open->site];
    if (kind == ACCESS_SHARED_READ && !open->is_kept && run->launch->has_aligned_rows)
        merge_reads(run, open, counts);
    for (int i = 0; i < count; i++) {
        const request *one = &open->requests[i];
        int sector_count = 0;
        if (!one->mask)
            continue; /* all lanes skipped it */
        if (kind == ACCESS_GLOBAL_READ || kind == ACCESS_GLOBAL_WRITE)
            sector_count = count_global(run, one, kind == ACCESS_GLOBAL_WRITE, counts);
        else
            count_shared(run, one, kind, counts);
        if (run->launch->watch)
            tell(run, open, one, sector_count);
    }
    open->count -= count;
    open->first_number += (uint32_t)count;
    if (count && open->count)
        memmove(open->requests, open->requests + count,
                (size_t)open->count * sizeof *open->requests);
}

void tgi_sim_count_requests(sim_run *run, const sim_thread *lanes, int lane_count, int is_end)
{
    sim_requests *all = run->requests;
    all->warp = lanes[0].index / TGI_WARP_THREADS;
    for (int i = 0; i < all->used_count; i++) {
        queue *open = &all->queues[all->used[i]];
        int count = open->count;
        if (!is_end && open->kind == ACCESS_SHARED_READ)
            continue; /* reads that merge may come later */
        for (int lane = 0; lane < lane_count && !is_end; lane++) {
            int passed = (int)(open->lane_numbers[lane] - open->first_number);
            if (lanes[lane].state <= THREAD_MEETS && passed < count)
                count = passed;
        }
        count_queue(run, open, count);
        if (is_end) {
            memset(open->lane_numbers, 0, sizeof open->lane_numbers);
            open->first_number = 0;
            open->is_used = 0;
        }
    }
    if (is_end)
        all->used_count = 0;
}
