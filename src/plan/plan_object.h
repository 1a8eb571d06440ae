/* Declares a plan, a chosen kernel that is prepared for its launch. The cache and the users of a
 * plan share it, and the last of them frees it. */
#ifndef TGI_PLAN_OBJECT_H
#define TGI_PLAN_OBJECT_H

#include <stdatomic.h>

#include "core/overlap.h"
#include "plan/backend.h"
#include "plan/plan_key.h"

/* The combinations of aligned and unaligned A and B. */
#define TGI_PLAN_ALIGNMENTS 4

/* States of a kept call. */
enum {
    TGI_KEPT_NONE,  /* no call is kept yet */
    TGI_KEPT_BEGUN, /* a call is being kept, or none ever is, because calls write a log */
    TGI_KEPT_DONE   /* a call is kept, and never another one */
};

/* A kept call is the first call of a plan that succeeded. A call with the same operands needs no
 * checks, and the backend may have kept its launches. */
typedef struct tgi_kept_call {
    atomic_int state;
    unsigned loss_count; /* the count of the context's known memory before the call */
    tgi_call call;       /* a repeated call may have another stream and workspace */
    tg_buffers buffers;  /* buffers of the call */
} tgi_kept_call;

struct tg_plan {
    tg_context *context;
    tgi_kept_call kept;
    void *prepared;        /* owned; filled by the backend; NULL if the problem is empty */
    tgi_launch_fn *launch; /* runs the prepared launch */
    unsigned used;         /* operands that are read or written, as tgi_epilogue_find_used */
    unsigned in_place;     /* used operands that have the layout of D, and may be it */
    int takes_workspace;   /* 1: a call needs workspace */
    tgi_plan_key key;      /* zeros unless the plan may be cached */
    tgi_problem problem;
    tgi_proposal proposal; /* the kernel's proposal; a plan without products has only its name */
    /* Address bits of A and B that are 0. If they are not, a plan for unaligned operands runs the
     * call. */
    uintptr_t aligned_bits[2];
    tgi_gap gap[TGI_OPERAND_COUNT];   /* distances at which an operand overlaps D */
    tgi_span span[TGI_OPERAND_COUNT]; /* spans of used operands; unset if D is empty */
    int is_kernel_given;              /* 1: the caller gave the kernel */
    /* Owned plans for less aligned operands, at index is_a_offset + 2 * is_b_offset; NULL until the
     * first need. */
    tg_plan *_Atomic unaligned[TGI_PLAN_ALIGNMENTS];
    atomic_int user_count;
    tg_problem original; /* the caller's problem, without pointers; for the log */
};

/* Returns the plan's problem with the factors of a problem that matches its key: the plan's own if
 * they are the same, else a copy in *copy. */
const tgi_problem *tgi_plan_copy_problem(const tg_plan *plan, const tg_problem *given,
                                         tgi_problem *copy);
static inline const tgi_problem *tgi_plan_set_factors(const tg_plan *plan, const tg_problem *given,
                                                      tgi_problem *copy)
{
    return tgi_plan_key_has_factors(&plan->key, given) ? &plan->problem
                                                       : tgi_plan_copy_problem(plan, given, copy);
}

/* Returns 1 if the plan has a kept call. */
static inline int tgi_plan_has_kept(const tg_plan *plan)
{
    return atomic_load_explicit(&plan->kept.state, memory_order_acquire) == TGI_KEPT_DONE;
}

/* Counts one more user. */
void tgi_plan_retain(tg_plan *plan);

/* Counts one user less, and frees the plan after the last. NULL is allowed. */
void tgi_plan_release(tg_plan *plan);

#endif
