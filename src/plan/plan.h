/* Makes the plans of tg_create_plan and tg_multiply. */
#ifndef TGI_PLAN_H
#define TGI_PLAN_H

#include "plan/context.h"

/* Makes a plan of a valid problem, without the cache. `original` is the caller's problem, `name`
 * the kernel that the caller gave, or NULL. *plan has one user. */
tg_status tgi_plan_make(tg_context *context, const tgi_problem *problem, const tg_problem *original,
                        const char *name, tg_plan **plan);

/* Finds the plan for an A or B that is less aligned than `plan` assumes. *other belongs to `plan`,
 * which makes it when first needed. */
tg_status tgi_plan_find_unaligned(const tg_plan *plan, int is_a_offset, int is_b_offset,
                                  const tg_plan **other);

/* Does the checks of tg_multiply without taking workspace. *is_empty is 1 if D has no elements. */
tg_status tgi_plan_check(tg_context *context, const tg_problem *problem, int *is_empty);

/* Runs the plan with alpha and beta of `problem`, and logs the call if the context asks for it. */
tg_status tgi_plan_execute(const tg_plan *plan, const tgi_problem *problem,
                           const tg_buffers *buffers);

/* Refuses a used operand that is NULL, and an operand that shares memory with D, as an execution of
 * the plan does. */
tg_status tgi_plan_check_buffers(const tg_plan *plan, const tg_buffers *buffers);

#endif
