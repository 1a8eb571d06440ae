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

tgi_plan_slot *tgi_plan_cache_pin(tgi_plan_cache *cache, const tgi_plan_key *key)
{
    const uint64_t hash = tgi_plan_key_hash(key);
    tgi_plan_slot *slots = cache->sets[hash / 2 % TGI_PLAN_CACHE_SETS].slots;
    for (int way = 0; way < TGI_PLAN_CACHE_WAYS; way++) {
        tgi_plan_slot *slot = &slots[way];
        if (atomic_load_explicit(&slot->hash, memory_order_relaxed) != hash)
            continue;
        const unsigned pin_count =
            atomic_fetch_add_explicit(&slot->pin_count, 1, memory_order_acquire);
        if (pin_count < REPLACING && slot->plan && memcmp(&slot->plan->key, key, sizeof *key) == 0)
            return slot;
        tgi_plan_cache_unpin(slot);
    }
    return NULL;
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

/* Returns 1 if the set has a plan of that key. The cache is locked. */
static int has_plan(const tgi_plan_slot *slots, const tgi_plan_key *key)
{
    for (int way = 0; way < TGI_PLAN_CACHE_WAYS; way++) {
        if (slots[way].plan && memcmp(&slots[way].plan->key, key, sizeof *key) == 0)
            return 1;
    }
    return 0;
}

void tgi_plan_cache_add(tgi_plan_cache *cache, tg_plan *plan)
{
    const uint64_t hash = tgi_plan_key_hash(&plan->key);
    const unsigned set = (unsigned)(hash / 2 % TGI_PLAN_CACHE_SETS);
    tgi_plan_slot *slots = cache->sets[set].slots;
    tg_plan *before = plan; /* the plan that is left over */
    tgi_plan_retain(plan);
    tgi_lock_take(&cache->lock);
    const int is_there = has_plan(slots, &plan->key);
    for (int tried = 0; tried < TGI_PLAN_CACHE_WAYS && before == plan && !is_there; tried++) {
        const unsigned way = cache->sets[set].oldest;
        cache->sets[set].oldest = (way + 1) % TGI_PLAN_CACHE_WAYS;
        before = replace(&slots[way], hash, plan);
    }
    tgi_lock_give(&cache->lock);
    tgi_plan_release(before);
}
