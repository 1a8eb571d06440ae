/* Declares products of operands in the processor's memory on a device that has its own memory. */
#ifndef TGI_HOST_MULTIPLY_H
#define TGI_HOST_MULTIPLY_H

#include "plan/context.h"
#include "plan/panel_time.h"

/* Sets *is_host to 1 if all operands that the problem uses are in the processor's memory, to 0 if
 * the device can reach all of them. Error: INVALID_ARGUMENT in any other case; the detail names an
 * operand of each kind. The context's backend has find_memory. */
tg_status tgi_host_find_operands(tg_context *context, const tg_problem *problem, int *is_host);

/* Returns 1 if all operands that the problem uses are known to be in the device's memory, 0 if only
 * tgi_host_find_operands can tell. The driver is asked about D in each call, because the
 * processor's memory may lie where the device's memory lay before. It is not asked about operands
 * that are known from earlier calls, because in a legal product they lie where D does. are_known is
 * 1 if the caller knows all of them. The context's backend has find_memory. */
static inline int tgi_host_is_on_device(tg_context *context, const tg_problem *problem,
                                        int are_known)
{
    const tg_problem *p = problem;
    uintptr_t unknown = 0;
    if (!are_known) {
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, text, executors, is_used)  \
    if (TGI_OPERAND_##name != TGI_OPERAND_d && (is_used))                                          \
        unknown |= tgi_known_memory_lacks(&context->known, TGI_DATA_##form(p, name));
#include "core/operands.def"
#undef TGI_OPERAND
    }
    return !unknown && problem->d.data &&
           context->backend->find_memory(&context->machine, problem->d.data) == TGI_MEMORY_DEVICE;
}

/* Returns the rates at which the operands are copied to the device and D is copied back. */
tgi_panel_rates tgi_host_find_rates(const tg_context *context, const tg_problem *problem);

/* Returns tgi_context_resolve's context. Returns NULL and sets *status if there is none, or if its
 * device has no memory of its own (UNSUPPORTED). */
tg_context *tgi_host_resolve(tg_context *context, tg_status *status);

/* Multiplies operands in the processor's memory by the backend's multiply_host. Errors: those of
 * tg_multiply. */
tg_status tgi_host_multiply(tg_context *context, const tg_problem *problem, int64_t memory_bytes,
                            void *stream, tg_panel_run *run);

#endif
