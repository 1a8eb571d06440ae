/*
 * Linked with --wrap=tg_execute_plan into the command: the first element of every FP32 D is wrong,
 * or, where WRONG_EXECUTE_CALLS is set, every call after so many fails. It shows that bench catches
 * a wrong kernel and one that fails late.
 */
#include <stdlib.h>

#include "tilegemm.h"

tg_status __real_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers);
tg_status __wrap_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers);

tg_status __wrap_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers)
{
    static int call_count;
    const char *limit = getenv("WRONG_EXECUTE_CALLS");
    if (limit)
        return call_count++ < atoi(limit) ? __real_tg_execute_plan(plan, buffers)
                                          : TG_STATUS_OUT_OF_MEMORY;
    tg_status status = __real_tg_execute_plan(plan, buffers);
    ((float *)buffers->d)[0] += 1.0F;
    return status;
}
