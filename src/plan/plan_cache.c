#include "plan/plan_cache.h"

#include <string.h>

#define REPLACING (1u << 31)

void tgi_plan_cache_open(tgi_plan_cache *cache)
{
    memset(cache, 0, sizeof *cache);
    tgi_lock_open(&cache->lock);
}

void tgi_plan_cache_close(tgi_plan_cache *cache)
{
    for (int i = 0; i < TGI_PLAN_CACHE_SETS; i++) {
        for (int way = 0; way < TGI_PLAN_CACHE_WAYS; way++)
            tgi_plan_release(cache->sets[i].slots[way].plan);
    }
    tgi_lock_close(&cache->lock);
}

/* Pins the slot if its plan is the problem's. Returns 1 if it is pinned. */
static inline int try_slot(tgi_plan_slot *slot, const tg_problem *problem)
{
    const unsigned pin_count = atomic_fetch_add_explicit(&slot->pin_count, 1, memory_order_acquire);
    if (pin_count < REPLACING && slot->plan && tgi_plan_key_matches(&slot->plan->key, problem))
        return 1;
    tgi_plan_cache_unpin(slot);
    return 0;
}

/* Finds a plan by the hash of the problem, and leaves a hint. */
static __attribute__((noinline)) tgi_plan_slot *search(tgi_plan_cache *cache,
                                                       const tg_problem *problem,
                                                       unsigned operand_alignment,
                                                       _Atomic uint16_t *hint)
{
    const uint64_t hash = tgi_plan_key_hash(problem, operand_alignment);
    const unsigned set = (unsigned)(hash / 2 % TGI_PLAN_CACHE_SETS);
    for (unsigned way = 0; way < TGI_PLAN_CACHE_WAYS; way++) {
        tgi_plan_slot *slot = &cache->sets[set].slots[way];
        if (atomic_load_explicit(&slot->hash, memory_order_relaxed) == hash &&
            try_slot(slot, problem)) {
            atomic_store_explicit(hint, (uint16_t)(set * TGI_PLAN_CACHE_WAYS + way),
                                  memory_order_relaxed);
            return slot;
        }
    }
    return NULL;
}

tgi_plan_slot *tgi_plan_cache_pin(tgi_plan_cache *cache, const tg_problem *problem,
                                  unsigned operand_alignment)
{
    const uint64_t sizes = (uint64_t)problem->d.row_count + 5 * (uint64_t)problem->d.col_count +
                           25 * ((uint64_t)problem->a.row_count + (uint64_t)problem->a.col_count);
    _Atomic uint16_t *hint = &cache->hints[sizes % TGI_PLAN_CACHE_HINTS];
    const unsigned place = atomic_load_explicit(hint, memory_order_relaxed);
    tgi_plan_slot *slot =
        &cache->sets[place / TGI_PLAN_CACHE_WAYS].slots[place % TGI_PLAN_CACHE_WAYS];
    return try_slot(slot, problem) ? slot : search(cache, problem, operand_alignment, hint);
}

/* Puts the plan into the slot and returns the one that was there; returns the plan itself if the
 * slot is in use. The cache is locked. */
static tg_plan *replace(tgi_plan_slot *slot, uint64_t hash, tg_plan *plan)
{
    unsigned unused = 0;
    if (!atomic_compare_exchange_strong_explicit(&slot->pin_count, &unused, REPLACING,
                                                 memory_order_acquire, memory_order_relaxed))
        return plan;
    tg_plan *before = slot->plan;
    slot->plan = plan;
    atomic_store_explicit(&slot->hash, hash, memory_order_relaxed);
    atomic_fetch_sub_explicit(&slot->pin_count, REPLACING, memory_order_release);
    return before;
}

/* Returns 1 if the set has a plan for the problem. The cache is locked. */
static int has_plan(const tgi_plan_slot *slots, const tg_problem *problem)
{
    for (int way = 0; way < TGI_PLAN_CACHE_WAYS; way++) {
        if (slots[way].plan && tgi_plan_key_matches(&slots[way].plan->key, problem))
            return 1;
    }
    return 0;
}

void tgi_plan_cache_add(tgi_plan_cache *cache, tg_plan *plan, unsigned operand_alignment)
{
    const tg_problem *problem = &plan->key.pattern.problem;
    const uint64_t hash = tgi_plan_key_hash(problem, operand_alignment);
    const unsigned set = (unsigned)(hash / 2 % TGI_PLAN_CACHE_SETS);
    tgi_plan_slot *slots = cache->sets[set].slots;
    tg_plan *before = plan; /* the plan that is left over */
    tgi_plan_retain(plan);
    tgi_lock_take(&cache->lock);
    const int is_there = has_plan(slots, problem);
    for (int tried = 0; tried < TGI_PLAN_CACHE_WAYS && before == plan && !is_there; tried++) {
        const unsigned way = cache->sets[set].oldest;
        cache->sets[set].oldest = (way + 1) % TGI_PLAN_CACHE_WAYS;
        before = replace(&slots[way], hash, plan);
    }
    tgi_lock_give(&cache->lock);
    tgi_plan_release(before);
}
