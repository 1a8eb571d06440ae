/* PLAN: a chosen kernel, prepared for its launch. The cache and the users of a plan share it, and
 * the last of them frees it. */
#ifndef TGI_PLAN_OBJECT_H
#define TGI_PLAN_OBJECT_H

#include <stdatomic.h>

#include "core/overlap.h"
#include "plan/backend.h"
#include "plan/plan_key.h"

/* A and B may each be unaligned. */
#define TGI_PLAN_ALIGNMENTS 4

struct tg_plan {
    tg_context *context;
    tgi_problem problem;
    tgi_plan_key key;      /* zeros unless the plan may be cached */
    tgi_proposal proposal; /* the kernel's; a plan without products has only its name */
    void *prepared;        /* owned; filled by the backend; NULL if the problem is empty */
    tgi_launch_fn *launch; /* runs what is prepared */
    unsigned used;         /* operands that are read or written, as tgi_epilogue_find_used */
    /* 1: a call checks its pointers and launches. Otherwise D may be empty, or the call is logged,
     * takes workspace, or depends on how its operands are aligned. */
    int is_immediate;
    tgi_gap gap[TGI_OPERAND_COUNT];   /* distances at which an operand overlaps D */
    tgi_span span[TGI_OPERAND_COUNT]; /* spans of used operands; unset if D is empty */
    int is_kernel_given;              /* 1: the caller gave the kernel */
    /* Owned plans for less aligned operands, at index is_a_offset + 2 * is_b_offset; NULL until the
     * first need. */
    tg_plan *_Atomic unaligned[TGI_PLAN_ALIGNMENTS];
    atomic_int user_count;
    tg_problem original; /* as the caller gave it, without pointers; for the log */
};

/* Returns the plan's problem if it has these factors, else a copy with them in *copy. */
static inline const tgi_problem *
tgi_plan_set_factors(const tg_plan *plan, const tgi_plan_factors *factors, tgi_problem *copy)
{
    const tgi_problem *p = &plan->problem;
    tgi_plan_factors given = *factors;
    if (p->k == 0)
        given.alpha = p->epilogue.alpha; /* a sum of no products is 0, whatever alpha is */
    int is_same = 1;
#define TGI_FACTOR(name, value) is_same &= given.name == p->epilogue.name;
#include "core/operands.def"
#undef TGI_FACTOR
    if (is_same)
        return p;
    *copy = *p;
#define TGI_FACTOR(name, value) copy->epilogue.name = given.name;
#include "core/operands.def"
#undef TGI_FACTOR
    return copy;
}

/* Counts one more user. */
void tgi_plan_retain(tg_plan *plan);

/* Counts one user less, and frees the plan after the last. NULL is allowed. */
void tgi_plan_release(tg_plan *plan);

#endif
