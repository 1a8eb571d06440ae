#include "plan/plan_object.h"

#include "core/alloc.h"

const tgi_problem *tgi_plan_copy_problem(const tg_plan *plan, const tg_problem *given,
                                         tgi_problem *copy)
{
    const tgi_problem *p = &plan->problem;
    tgi_plan_factors factors;
    tgi_plan_key_round_factors(&plan->key, given, &factors);
    if (p->k == 0)
        factors.alpha = p->epilogue.alpha; /* a sum of no products is 0, whatever alpha is */
    int is_same = 1;
#define TGI_FACTOR(name, value) is_same &= factors.name == p->epilogue.name;
#include "core/operands.def"
#undef TGI_FACTOR
    if (is_same)
        return p;
    *copy = *p;
#define TGI_FACTOR(name, value) copy->epilogue.name = factors.name;
#include "core/operands.def"
#undef TGI_FACTOR
    return copy;
}

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
