/* Plans made before, found by their canonical problem. */
#ifndef TGI_PLAN_CACHE_H
#define TGI_PLAN_CACHE_H

#include <pthread.h>

#include "core/problem.h"

#define TGI_PLAN_CACHE_SETS 256
#define TGI_PLAN_CACHE_WAYS 4

/* A plan falls out when its set is full and it is the oldest there. */
typedef struct tgi_plan_cache {
    struct {
        pthread_mutex_t lock;
        tg_plan *plans[TGI_PLAN_CACHE_WAYS]; /* newest first, then NULL */
    } sets[TGI_PLAN_CACHE_SETS];
} tgi_plan_cache;

void tgi_plan_cache_open(tgi_plan_cache *cache);
void tgi_plan_cache_close(tgi_plan_cache *cache);

/* A plan for the problem, counted for its new user, or NULL. */
tg_plan *tgi_plan_cache_find(tgi_plan_cache *cache, const tgi_problem *problem);

/* Adds a plan, counting the cache as one more user. */
void tgi_plan_cache_add(tgi_plan_cache *cache, tg_plan *plan);

#endif
