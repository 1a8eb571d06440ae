/*
 * This file is linked with --wrap=tg_execute_plan and --wrap=tg_execute_attention into the command.
 * It makes the first element of every FP32 D wrong, or of an attention's log-sum-exp if
 * WRONG_EXECUTE_LOGS is set. If WRONG_EXECUTE_CALLS is set, every product after so many fails, or
 * sends the process the signal of WRONG_EXECUTE_SIGNAL, as an attention does; if WRONG_EXECUTE_IDLE
 * is set, every product after so many does nothing. It shows that --check and bench catch a wrong
 * kernel, one that fails late, and one that computes nothing.
 */
#include <signal.h>
#include <stdlib.h>

#include "tilegemm_attention.h"

tg_status __real_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers);
tg_status __wrap_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers);

tg_status __wrap_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers)
{
    static int call_count;
    const char *limit = getenv("WRONG_EXECUTE_CALLS"), *idle = getenv("WRONG_EXECUTE_IDLE");
    const char *number = getenv("WRONG_EXECUTE_SIGNAL");
    if (idle)
        return call_count++ < atoi(idle) ? __real_tg_execute_plan(plan, buffers) : TG_STATUS_OK;
    if (limit && call_count++ < atoi(limit))
        return __real_tg_execute_plan(plan, buffers);
    if (limit && number)
        raise(atoi(number));
    if (limit)
        return TG_STATUS_OUT_OF_MEMORY;
    tg_status status = __real_tg_execute_plan(plan, buffers);
    ((float *)buffers->d)[0] += 1.0F;
    return status;
}

tg_status __real_tg_execute_attention(const tg_attention_plan *plan, const tg_attention *attention,
                                      void *workspace, int64_t workspace_bytes, void *stream);
tg_status __wrap_tg_execute_attention(const tg_attention_plan *plan, const tg_attention *attention,
                                      void *workspace, int64_t workspace_bytes, void *stream);

tg_status __wrap_tg_execute_attention(const tg_attention_plan *plan, const tg_attention *attention,
                                      void *workspace, int64_t workspace_bytes, void *stream)
{
    tg_status status =
        __real_tg_execute_attention(plan, attention, workspace, workspace_bytes, stream);
    void *const output =
        getenv("WRONG_EXECUTE_LOGS") ? attention->log_sum_exp.data : attention->d.data;
    const char *number = getenv("WRONG_EXECUTE_SIGNAL");
    if (number)
        raise(atoi(number));
    ((float *)output)[0] += 1.0F;
    return status;
}
