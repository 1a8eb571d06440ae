#include "plan/plan_cache.h"

#include <string.h>

#include "plan/plan.h"

static unsigned hash_problem(const tgi_problem *problem)
{
    /* Multiplicative hash over 64-bit words: the struct is a whole number of them. */
    _Static_assert(sizeof(tgi_problem) % sizeof(uint64_t) == 0, "hashed by 64-bit words");
    uint64_t words[sizeof(tgi_problem) / sizeof(uint64_t)], hash = 0;
    memcpy(words, problem, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (unsigned)(hash % TGI_PLAN_CACHE_SETS);
}

void tgi_plan_cache_open(tgi_plan_cache *cache)
{
    memset(cache, 0, sizeof *cache);
    for (int i = 0; i < TGI_PLAN_CACHE_SETS; i++)
        pthread_mutex_init(&cache->sets[i].lock, NULL);
}

void tgi_plan_cache_close(tgi_plan_cache *cache)
{
    for (int i = 0; i < TGI_PLAN_CACHE_SETS; i++) {
        for (int way = 0; way < TGI_PLAN_CACHE_WAYS; way++)
            tg_destroy_plan(cache->sets[i].plans[way]);
        pthread_mutex_destroy(&cache->sets[i].lock);
    }
}

tg_plan *tgi_plan_cache_find(tgi_plan_cache *cache, const tgi_problem *problem)
{
    unsigned set = hash_problem(problem);
    tg_plan *found = NULL;
    pthread_mutex_lock(&cache->sets[set].lock);
    for (int way = 0; way < TGI_PLAN_CACHE_WAYS && !found; way++) {
        tg_plan *plan = cache->sets[set].plans[way];
        if (plan && memcmp(&plan->problem, problem, sizeof *problem) == 0)
            found = plan;
    }
    if (found)
        atomic_fetch_add_explicit(&found->user_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&cache->sets[set].lock);
    return found;
}

void tgi_plan_cache_add(tgi_plan_cache *cache, tg_plan *plan)
{
    unsigned set = hash_problem(&plan->problem);
    atomic_fetch_add_explicit(&plan->user_count, 1, memory_order_relaxed);
    pthread_mutex_lock(&cache->sets[set].lock);
    tg_plan **plans = cache->sets[set].plans;
    tg_plan *oldest = plans[TGI_PLAN_CACHE_WAYS - 1];
    memmove(plans + 1, plans, (TGI_PLAN_CACHE_WAYS - 1) * sizeof plans[0]);
    plans[0] = plan;
    pthread_mutex_unlock(&cache->sets[set].lock);
    tg_destroy_plan(oldest);
}
