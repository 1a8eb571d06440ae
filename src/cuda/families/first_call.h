/*
 * The arguments of a plan's first call. Programs repeat calls with the same operands; such a call
 * launches these arguments as they are, and copies and completes none.
 */
#ifndef TGI_CUDA_FIRST_CALL_H
#define TGI_CUDA_FIRST_CALL_H

#include <stdatomic.h>

#include "plan/backend.h"

enum { TGI_FIRST_CALL_NONE, TGI_FIRST_CALL_BEGUN, TGI_FIRST_CALL_KEPT };

/* All that arguments take from a call. A plan begins with zeros. */
typedef struct tgi_first_call {
    atomic_int state; /* one of the above; what is kept never changes */
#define TGI_OPERAND(name, title, form, role, ...) TGI_POINTER_##form##_##role(name);
#include "core/operands.def"
#undef TGI_OPERAND
    void *workspace;
#define TGI_FACTOR(name, value) double name;
#include "core/operands.def"
#undef TGI_FACTOR
} tgi_first_call;

/* Returns 1 if the call has the operands, workspace, alpha and beta of the kept one. */
static inline int tgi_first_call_is(const tgi_first_call *first, const tgi_call *call)
{
    if (atomic_load_explicit(&first->state, memory_order_acquire) != TGI_FIRST_CALL_KEPT)
        return 0;
    uintptr_t differs = (uintptr_t)first->workspace ^ (uintptr_t)call->workspace;
    int is_same = 1;
#define TGI_OPERAND(name, ...) differs |= (uintptr_t)first->name ^ (uintptr_t)call->name;
#include "core/operands.def"
#undef TGI_OPERAND
#define TGI_FACTOR(name, value) is_same &= first->name == call->problem->epilogue.name;
#include "core/operands.def"
#undef TGI_FACTOR
    return is_same && differs == 0;
}

/* Keeps the call and copies its arguments to `kept`, unless another call was first. */
void tgi_first_call_keep(tgi_first_call *first, const tgi_call *call, const void *args, void *kept,
                         size_t args_bytes);

#endif
