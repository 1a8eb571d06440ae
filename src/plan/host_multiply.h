/* Products of operands in the processor's memory on a device that has its own. */
#ifndef TGI_HOST_MULTIPLY_H
#define TGI_HOST_MULTIPLY_H

#include "plan/context.h"
#include "plan/panel_time.h"

/* Sets *is_host to 1 if all operands that the problem uses are in the processor's memory, to 0 if
 * the device can reach all of them. Error: INVALID_ARGUMENT, if neither is so; it names an operand
 * of each. The context's backend has find_memory. */
tg_status tgi_host_find_operands(const tg_context *context, const tg_problem *problem,
                                 int *is_host);

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
