#include "cuda/families/first_call.h"

#include <string.h>

void tgi_first_call_keep(tgi_first_call *first, const tgi_call *call, const void *args, void *kept,
                         size_t args_bytes)
{
    int none = TGI_FIRST_CALL_NONE;
    if (atomic_load_explicit(&first->state, memory_order_relaxed) != TGI_FIRST_CALL_NONE ||
        !atomic_compare_exchange_strong_explicit(&first->state, &none, TGI_FIRST_CALL_BEGUN,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
#define TGI_OPERAND(name, ...) first->name = call->name;
#include "core/operands.def"
#undef TGI_OPERAND
    first->workspace = call->workspace;
#define TGI_FACTOR(name, value) first->name = call->problem->epilogue.name;
#include "core/operands.def"
#undef TGI_FACTOR
    memcpy(kept, args, args_bytes);
    atomic_store_explicit(&first->state, TGI_FIRST_CALL_KEPT, memory_order_release);
}
