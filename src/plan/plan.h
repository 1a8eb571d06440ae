/* PLAN: a chosen kernel, prepared for its launch. The cache and its users share a plan; the last of
 * them frees it. */
#ifndef TGI_PLAN_H
#define TGI_PLAN_H

#include <stdatomic.h>

#include "core/overlap.h"
#include "plan/backend.h"

struct tg_plan {
    tg_context *context;
    tgi_problem problem;
    const tgi_kernel *kernel; /* kept by name where the problem is scale only */
    void *prepared;           /* owned; filled by the backend; NULL where the problem is empty */
    int thread_count;
    tgi_span span[TGI_OPERAND_COUNT]; /* of the operands that are used; none if D is empty */
    int64_t workspace_bytes;
    int needs_aligned[2]; /* as the proposal's */
    int is_kernel_given;  /* by the caller, rather than chosen */
    double predicted_s;
    atomic_int user_count;
    tg_problem original; /* as the caller gave it, without pointers: for the log */
};

#endif
