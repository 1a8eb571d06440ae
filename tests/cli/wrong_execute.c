/*
 * Linked with --wrap=tg_execute_plan into the command: the first element of every FP32 D is wrong.
 * It shows that bench catches a wrong kernel.
 */
#include "tilegemm.h"

tg_status __real_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers);
tg_status __wrap_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers);

tg_status __wrap_tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers)
{
    tg_status status = __real_tg_execute_plan(plan, buffers);
    ((float *)buffers->d)[0] += 1.0F;
    return status;
}
