#include "plan/plan_cache.h"

#include <string.h>

void tgi_plan_cache_open(tgi_plan_cache *cache)
{
    memset(cache, 0, sizeof *cache);
    tgi_lock_open(&cache->lock);
}

void tgi_plan_cache_close(tgi_plan_cache *cache)
{
    for (int i = 0; i < TGI_PLAN_CACHE_SETS * TGI_PLAN_CACHE_WAYS; i++)
        tgi_plan_release(cache->slots[i].plan);
    tgi_lock_close(&cache->lock);
}

static unsigned find_set(uint64_t hash)
{
    return (unsigned)(hash / 2 % TGI_PLAN_CACHE_SETS);
}

tgi_plan_slot *tgi_plan_cache_search(tgi_plan_cache *cache, const tg_problem *problem,
                                     unsigned operand_alignment)
{
    const uint64_t hash = tgi_plan_key_hash(problem, operand_alignment);
    const unsigned first = find_set(hash) * TGI_PLAN_CACHE_WAYS;
    for (unsigned i = first; i < first + TGI_PLAN_CACHE_WAYS; i++) {
        tgi_plan_slot *slot = &cache->slots[i];
        if (atomic_load_explicit(&slot->hash, memory_order_relaxed) == hash &&
            tgi_plan_cache_try(slot, problem)) {
            atomic_store_explicit(tgi_plan_cache_find_hint(cache, problem), (uint16_t)i,
                                  memory_order_relaxed);
            return slot;
        }
    }
    return NULL;
}

/* Puts the plan into the slot and returns the plan that was there. If the slot is in use, returns
 * `plan`. The cache is locked. */
static tg_plan *replace(tgi_plan_slot *slot, uint64_t hash, tg_plan *plan)
{
    unsigned unused = 0;
    if (!atomic_compare_exchange_strong_explicit(&slot->pin_count, &unused, TGI_PLAN_REPLACING,
                                                 memory_order_acquire, memory_order_relaxed))
        return plan;
    tg_plan *before = slot->plan;
    slot->plan = plan;
    atomic_store_explicit(&slot->hash, hash, memory_order_relaxed);
    atomic_fetch_sub_explicit(&slot->pin_count, TGI_PLAN_REPLACING, memory_order_release);
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
    const unsigned set = find_set(hash);
    tgi_plan_slot *slots = &cache->slots[set * TGI_PLAN_CACHE_WAYS];
    tg_plan *before = plan; /* the plan to release */
    tgi_plan_retain(plan);
    tgi_lock_take(&cache->lock);
    const int is_there = has_plan(slots, problem);
    for (int tried = 0; tried < TGI_PLAN_CACHE_WAYS && before == plan && !is_there; tried++) {
        const unsigned way = cache->oldest[set];
        cache->oldest[set] = (unsigned char)((way + 1) % TGI_PLAN_CACHE_WAYS);
        before = replace(&slots[way], hash, plan);
    }
    tgi_lock_give(&cache->lock);
    tgi_plan_release(before);
}
