/* A cache that finds plans by their key. Reading takes no lock. A reader pins the slot of a plan,
 * and a writer replaces no plan whose slot is pinned. */
#ifndef TGI_PLAN_CACHE_H
#define TGI_PLAN_CACHE_H

#include "core/lock.h"
#include "plan/plan_object.h"

#define TGI_PLAN_CACHE_SETS 256
#define TGI_PLAN_CACHE_WAYS 4
#define TGI_PLAN_CACHE_HINTS 256

typedef struct tgi_plan_slot {
    _Atomic uint64_t hash; /* hash of the plan's key; 0: the slot is empty */
    tg_plan *plan;         /* may be read while the slot is pinned */
    atomic_uint pin_count; /* readers; with its highest bit set, a writer replaces the plan */
} tgi_plan_slot;

/* A hash leads to a set. When a set is full, the oldest of its plans that is not in use falls
 * out. */
typedef struct tgi_plan_cache {
    /* A hint tells the slot, set * TGI_PLAN_CACHE_WAYS + way, at which the last lookup of a problem
     * of these sizes ended. A repeated call then needs no hash. */
    _Atomic uint16_t hints[TGI_PLAN_CACHE_HINTS];
    struct {
        tgi_plan_slot slots[TGI_PLAN_CACHE_WAYS];
        unsigned oldest; /* way of the oldest plan; under the lock */
    } sets[TGI_PLAN_CACHE_SETS];
    tgi_lock lock; /* taken by writers */
} tgi_plan_cache;

void tgi_plan_cache_open(tgi_plan_cache *cache);
void tgi_plan_cache_close(tgi_plan_cache *cache);

/* Finds the plan whose key the problem matches and pins its slot; NULL if there is none. */
tgi_plan_slot *tgi_plan_cache_pin(tgi_plan_cache *cache, const tg_problem *problem,
                                  unsigned operand_alignment);

/* Ends the use of a plan that was pinned. */
static inline void tgi_plan_cache_unpin(tgi_plan_slot *slot)
{
    atomic_fetch_sub_explicit(&slot->pin_count, 1, memory_order_release);
}

/* Adds a plan, of which the cache becomes a user, unless the cache has one of that key or all plans
 * of its set are in use. */
void tgi_plan_cache_add(tgi_plan_cache *cache, tg_plan *plan, unsigned operand_alignment);

#endif
