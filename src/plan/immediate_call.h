/*
 * Some calls can be launched at once. A tiny product takes as long as the instructions before its
 * launch. These functions are therefore inline, and derive nothing that the plan already has.
 */
#ifndef TGI_IMMEDIATE_CALL_H
#define TGI_IMMEDIATE_CALL_H

#include "plan/context.h"

/* Launches the call with workspace, if the plan needs it: the caller's, of workspace_bytes bytes,
 * or the context's if `workspace` is NULL. */
tg_status tgi_plan_run_with_workspace(const tg_plan *plan, void *workspace, int64_t workspace_bytes,
                                      tgi_call *call);

/* Returns the call with the buffers of the used operands, under their canonical names. Most
 * products have an epilogue without operands; one test then skips all of its members. */
static inline tgi_call tgi_plan_make_call(const tg_plan *plan, const tgi_problem *p,
                                          const tg_buffers *buffers)
{
    const unsigned used = plan->used;
    tgi_call call = {.machine = &plan->context->machine,
                     .problem = p,
                     .prepared = plan->prepared,
                     .stream = buffers->stream};
#define SET_POINTER(name, partner)                                                                 \
    if (used >> TGI_OPERAND_##name & 1u)                                                           \
        call.name = p->is_swapped ? buffers->partner : buffers->name;
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, ...)                       \
    TGI_OF_PRODUCT_##role(SET_POINTER(name, partner))
#include "core/operands.def"
#undef TGI_OPERAND
    if (used & TGI_OPERANDS_EPILOGUE) {
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, ...)                       \
    TGI_OF_EPILOGUE_##role(SET_POINTER(name, partner))
#include "core/operands.def"
#undef TGI_OPERAND
    }
#undef SET_POINTER
    return call;
}

/* Returns 1 if the operand is D itself, read by the epilogue before it is written. */
static inline int tgi_plan_is_in_place(const tg_plan *plan, const tgi_call *call, int id,
                                       const void *data)
{
    return (plan->in_place >> id & 1u) && data == call->d;
}

/* Returns 1 if every used operand is given, and is D itself or does not overlap D's address
 * range. */
static inline __attribute__((always_inline)) int tgi_plan_is_apart(const tg_plan *plan,
                                                                   const tgi_call *call)
{
    const unsigned used = plan->used;
#define LEAVE_UNLESS_APART(name)                                                                   \
    if (used >> TGI_OPERAND_##name & 1u) {                                                         \
        if (!call->name)                                                                           \
            return 0;                                                                              \
        if (TGI_OPERAND_##name != TGI_OPERAND_d &&                                                 \
            tgi_overlap_is_near(call->d, call->name, plan->gap[TGI_OPERAND_##name]) &&             \
            !tgi_plan_is_in_place(plan, call, TGI_OPERAND_##name, call->name))                     \
            return 0;                                                                              \
    }
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_PRODUCT_##role(LEAVE_UNLESS_APART(name))
#include "core/operands.def"
#undef TGI_OPERAND
    if (used & TGI_OPERANDS_EPILOGUE) {
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_EPILOGUE_##role(LEAVE_UNLESS_APART(name))
#include "core/operands.def"
#undef TGI_OPERAND
    }
#undef LEAVE_UNLESS_APART
    return 1;
}

/* Returns 1 if the operands are those of the plan's kept call. The plan has a kept call. */
static inline __attribute__((always_inline)) int tgi_plan_is_repeated(const tg_plan *plan,
                                                                      const tg_buffers *buffers)
{
    const tg_buffers *kept = &plan->kept.buffers;
#define LEAVE_UNLESS_SAME(name)                                                                    \
    if (kept->name != buffers->name)                                                               \
        return 0;
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_PRODUCT_##role(LEAVE_UNLESS_SAME(name))
#include "core/operands.def"
#undef TGI_OPERAND
    if (plan->used & TGI_OPERANDS_EPILOGUE) {
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_EPILOGUE_##role(LEAVE_UNLESS_SAME(name))
#include "core/operands.def"
#undef TGI_OPERAND
    }
#undef LEAVE_UNLESS_SAME
    return 1;
}

/* Returns 1 if the kernel relies on the alignment that the plan was told, and an operand does not
 * have it. */
static inline int tgi_plan_is_unaligned(const tg_plan *plan, const tgi_call *call)
{
    return (((uintptr_t)call->a & plan->aligned_bits[0]) |
            ((uintptr_t)call->b & plan->aligned_bits[1])) != 0;
}

/* Launches a call that needs nothing but workspace. */
static inline __attribute__((always_inline)) tg_status
tgi_plan_launch(const tg_plan *plan, void *workspace, int64_t workspace_bytes, tgi_call *call)
{
    return plan->takes_workspace
               ? tgi_plan_run_with_workspace(plan, workspace, workspace_bytes, call)
               : plan->launch(call);
}

/* Launches a call with the plan's own alpha and beta if it needs no further checks, and sets
 * *status. Otherwise returns 0. The plan has a kept call. */
static inline __attribute__((always_inline)) int
tgi_plan_launch_at_once(const tg_plan *plan, const tg_buffers *buffers, tg_status *status)
{
    tgi_call call = tgi_plan_make_call(plan, &plan->problem, buffers);
    if (!tgi_plan_is_apart(plan, &call) || tgi_plan_is_unaligned(plan, &call))
        return 0;
    *status = tgi_plan_launch(plan, buffers->workspace, buffers->workspace_bytes, &call);
    return 1;
}

/* Launches a call that repeats the kept one. */
static inline __attribute__((always_inline)) tg_status
tgi_plan_launch_again(const tg_plan *plan, void *workspace, int64_t workspace_bytes, void *stream)
{
    tgi_call call = plan->kept.call;
    call.stream = stream;
    return tgi_plan_launch(plan, workspace, workspace_bytes, &call);
}

#endif
