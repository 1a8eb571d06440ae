/*
 * Requests: the accesses of a warp's lanes by one call in the source, reached by the same calls,
 * the i-th of each lane together: a GPU has a copy of a function for each call. Lanes come one
 * after another, so a request is open until no lane can join it.
 *
 * bank_conflicts counts accesses as the source writes them. counter_bank_conflicts counts what
 * the counters of a GPU see: nvcc makes one access of four reads of neighbouring words that start
 * at a multiple of 16 bytes, and the counters leave copies in the background out.
 */
#include <string.h>

#include "core/alloc.h"
#include "sim/run.h"

enum { SECTOR_BYTES = 32, MERGED_WORDS = 4, SECTOR_SLOTS = 128, QUEUE_SLOTS = 4096 };

typedef struct request {
    uint32_t mask; /* lanes that take part */
    int size_bytes;
    int is_merged; /* into one of 16 bytes */
    uintptr_t addresses[TGI_SIM_WARP_THREADS];
} request;

/* Open requests of one call and one kind of access, in the order of their numbers. */
typedef struct queue {
    uint64_t path; /* calls that led there, and the variable that it moves */
    int site, is_used;
    access_kind kind;
    request *requests;
    int count, capacity;
    uint32_t first_number;                       /* of requests[0] */
    uint32_t lane_numbers[TGI_SIM_WARP_THREADS]; /* of each lane's next access */
} queue;

/* Queues of an interval of a warp, a hash table. They keep their room for requests. */
struct sim_requests {
    queue queues[QUEUE_SLOTS];
    int used[QUEUE_SLOTS]; /* slots in use, in the order of their first access */
    int used_count;
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

/* The run stops where a kernel has more places of access than there are slots. */
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
            run->is_out_of_memory = 1;
            tgi_sim_stop(run);
        }
        found->path = path;
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
        run->is_out_of_memory = 1;
        tgi_sim_stop(run);
    }
    if (open->count)
        memcpy(requests, open->requests, (size_t)open->count * sizeof *requests);
    tgi_alloc_free(open->requests);
    open->requests = requests;
    open->capacity = capacity;
}

void tgi_sim_add_access(sim_run *run, access_kind kind, uintptr_t address, int size_bytes, int site)
{
    const sim_thread *thread = run->thread;
    const int depth = thread->depth < TGI_SIM_FRAMES ? thread->depth : TGI_SIM_FRAMES;
    const int lane = thread->index % TGI_SIM_WARP_THREADS;
    queue *open = find_queue(run, thread->paths[depth] ^ thread->own_place, site, kind);
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

/* Distinct sectors of a request, each shown to L2. */
static int count_sectors(sim_run *run, const request *one, tgi_sim_counts *counts)
{
    uintptr_t slots[SECTOR_SLOTS];
    uint64_t used[SECTOR_SLOTS / 64] = {0};
    uintptr_t last = 0;
    int count = 0;
    for (int lane = 0; lane < TGI_SIM_WARP_THREADS; lane++) {
        if (!(one->mask >> lane & 1))
            continue;
        uintptr_t sector = one->addresses[lane] / SECTOR_BYTES; /* aligned: never two */
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

static void count_global(sim_run *run, const request *one, int is_write, tgi_sim_counts *counts)
{
    const int64_t weight = run->weight;
    const int64_t bytes = (int64_t)__builtin_popcount(one->mask) * one->size_bytes * weight;
    const int64_t sectors = count_sectors(run, one, counts) * weight;
    if (is_write) {
        counts->global_store_requests += weight;
        counts->global_store_sectors += sectors;
        counts->global_write_elems += bytes / 4;
        counts->global_write_bytes += bytes;
    } else {
        counts->global_load_requests += weight;
        counts->global_load_sectors += sectors;
        counts->global_read_elems += bytes / 4;
        counts->global_read_bytes += bytes;
    }
}

static void count_shared(sim_run *run, const request *one, access_kind kind, tgi_sim_counts *counts)
{
    const int64_t weight = run->weight;
    const int64_t conflicts =
        weight * tgi_sim_count_conflicts(one->addresses, one->mask, one->size_bytes);
    counts->bank_conflicts += conflicts;
    if (kind == ACCESS_SHARED_READ)
        counts->shared_load_requests += weight;
    else
        counts->shared_store_requests += weight;
    if (kind != ACCESS_SHARED_COPY && !one->is_merged)
        counts->counter_bank_conflicts += conflicts;
}

/* 1 if `next` reads the words right behind those of `one`, `step` on, lane by lane. */
static int follows(const request *one, const request *next, int step)
{
    if (next->is_merged || next->mask != one->mask)
        return 0;
    for (int lane = 0; lane < TGI_SIM_WARP_THREADS; lane++) {
        if ((one->mask >> lane & 1) &&
            next->addresses[lane] != one->addresses[lane] + 4 * (uintptr_t)step)
            return 0;
    }
    return 1;
}

/* Marks reads of four neighbouring words that nvcc makes one of, and counts their conflicts. */
static void merge_reads(sim_run *run, queue *open, tgi_sim_counts *counts)
{
    for (int i = 0; i < open->count; i++) {
        request *parts[MERGED_WORDS] = {&open->requests[i]};
        const request *first = parts[0];
        int found = 1, is_aligned = first->size_bytes == 4 && !first->is_merged;
        for (int lane = 0; lane < TGI_SIM_WARP_THREADS; lane++)
            is_aligned &= !(first->mask >> lane & 1) || first->addresses[lane] % 16 == 0;
        for (int j = i + 1; is_aligned && found < MERGED_WORDS && j < open->count; j++) {
            if (follows(first, &open->requests[j], found))
                parts[found++] = &open->requests[j];
        }
        if (found < MERGED_WORDS)
            continue;
        for (int j = 0; j < MERGED_WORDS; j++)
            parts[j]->is_merged = 1;
        counts->counter_bank_conflicts +=
            run->weight * tgi_sim_count_conflicts(first->addresses, first->mask, 16);
    }
}

static void count_queue(sim_run *run, queue *open, int count)
{
    const access_kind kind = open->kind;
    tgi_sim_counts *counts = &run->record->counts[open->site];
    if (kind == ACCESS_SHARED_READ)
        merge_reads(run, open, counts);
    for (int i = 0; i < count; i++) {
        const request *one = &open->requests[i];
        if (kind == ACCESS_GLOBAL_READ || kind == ACCESS_GLOBAL_WRITE)
            count_global(run, one, kind == ACCESS_GLOBAL_WRITE, counts);
        else
            count_shared(run, one, kind, counts);
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
    for (int i = 0; i < all->used_count; i++) {
        queue *open = &all->queues[all->used[i]];
        int count = open->count;
        if (!is_end && open->kind == ACCESS_SHARED_READ)
            continue; /* reads that belong together may come later */
        for (int lane = 0; lane < lane_count && !is_end; lane++) {
            int passed = (int)(open->lane_numbers[lane] - open->first_number);
            if (lanes[lane].state == THREAD_RUNS && passed < count)
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
