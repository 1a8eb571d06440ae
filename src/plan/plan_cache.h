/* Plans made before, found by their key. Reading takes no lock: a reader pins the slot of a plan,
 * and a writer replaces none that is pinned. */
#ifndef TGI_PLAN_CACHE_H
#define TGI_PLAN_CACHE_H

#include <pthread.h>

#include "plan/plan_object.h"

#define TGI_PLAN_CACHE_SETS 256
#define TGI_PLAN_CACHE_WAYS 4

typedef struct tgi_plan_slot {
    _Atomic uint64_t hash; /* of the plan's key; 0: there is none */
    tg_plan *plan;         /* may be read while the slot is pinned */
    atomic_uint pin_count; /* readers; with its highest bit set, a writer replaces the plan */
} tgi_plan_slot;

/* When a set is full, the oldest of its plans that is not in use falls out. */
typedef struct tgi_plan_cache {
    struct {
        tgi_plan_slot slots[TGI_PLAN_CACHE_WAYS];
        unsigned oldest; /* way; under the lock */
    } sets[TGI_PLAN_CACHE_SETS];
    pthread_mutex_t lock; /* of writers */
} tgi_plan_cache;

void tgi_plan_cache_open(tgi_plan_cache *cache);
void tgi_plan_cache_close(tgi_plan_cache *cache);

/* Finds the plan of the key and pins its slot; NULL if there is none. */
tgi_plan_slot *tgi_plan_cache_pin(tgi_plan_cache *cache, const tgi_plan_key *key);

/* Ends the use of a plan that was pinned. */
static inline void tgi_plan_cache_unpin(tgi_plan_slot *slot)
{
    atomic_fetch_sub_explicit(&slot->pin_count, 1, memory_order_release);
}

/* Adds a plan, counting the cache as one more user, unless one of its key is there already or all
 * plans of its set are in use. */
void tgi_plan_cache_add(tgi_plan_cache *cache, tg_plan *plan);

#endif
