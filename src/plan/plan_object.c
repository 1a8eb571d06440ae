#include "plan/plan_object.h"

#include "core/alloc.h"

void tgi_plan_retain(tg_plan *plan)
{
    atomic_fetch_add_explicit(&plan->user_count, 1, memory_order_relaxed);
}

void tgi_plan_release(tg_plan *plan)
{
    if (!plan || atomic_fetch_sub_explicit(&plan->user_count, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < TGI_PLAN_ALIGNMENTS; i++)
        tgi_plan_release(plan->unaligned[i]);
    tgi_alloc_free(plan->prepared);
    tgi_alloc_free(plan);
}
