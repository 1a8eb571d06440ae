#include "plan/host_multiply.h"

#include "core/operand_list.h"
#include "core/status.h"
#include "core/structs.h"
#include "plan/operand_lines.h"
#include "plan/plan.h"

tg_status tgi_host_find_operands(tg_context *context, const tg_problem *problem, int *is_host)
{
    const tgi_operand_row *on_device = NULL, *pageable = NULL;
    const void *device_data = NULL, *host_data = NULL;
    unsigned used = tgi_operands_find_used(problem);
    if (problem->a.row_count == 0 || problem->a.col_count == 0)
        used &= ~(1u << TGI_OPERAND_a | 1u << TGI_OPERAND_b);
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const void *data = tgi_operands_get_data(problem, id);
        if (!(used >> id & 1u) || !data)
            continue;
        const tgi_memory memory = context->backend->find_memory(&context->machine, data);
        if (memory == TGI_MEMORY_DEVICE) {
            tgi_known_memory_add(&context->known, data);
            on_device = tgi_operands_get(id);
            device_data = data;
        } else if (memory == TGI_MEMORY_PAGEABLE) {
            pageable = tgi_operands_get(id);
            host_data = data;
        }
    }
    *is_host = !on_device;
    if (!on_device || !pageable)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s at %p is the processor's memory, and %s at %p that of %s; pass all "
                           "operands in one of them",
                           pageable->title, host_data, on_device->title, device_data,
                           context->device);
}

tgi_panel_rates tgi_host_find_rates(const tg_context *context, const tg_problem *problem)
{
    const unsigned used = tgi_operands_find_used(problem);
    int is_pinned = 1;
    for (int id = 0; id < TGI_OPERAND_COUNT && is_pinned; id++) {
        const void *data = tgi_operands_get_data(problem, id);
        if (used >> id & 1u)
            is_pinned =
                data && context->backend->find_memory(&context->machine, data) == TGI_MEMORY_PINNED;
    }
    return tgi_panels_find_rates(context->machine.gpu.capability,
                                 tgi_operand_lines_choose_threads(), is_pinned);
}

tg_status tgi_host_multiply(tg_context *context, const tg_problem *problem, int64_t memory_bytes,
                            void *stream, tg_panel_run *run)
{
    int is_empty;
    const tg_status status = tgi_plan_check(context, problem, &is_empty);
    if (status || is_empty)
        return status;
    tg_problem rounded = *problem;
    if (problem->a.type != TG_TYPE_FP64) {
#define TGI_FACTOR(name, value) rounded.name = (float)rounded.name;
#include "core/operands.def"
#undef TGI_FACTOR
    }
    return context->backend->multiply_host(context, &context->machine, &rounded, memory_bytes,
                                           stream, run);
}

tg_context *tgi_host_resolve(tg_context *context, tg_status *status)
{
    context = tgi_context_resolve(context, status);
    if (!context || context->backend->multiply_host)
        return context;
    *status = tgi_status_fail(TG_STATUS_UNSUPPORTED,
                              "the context's device is %s, which has no memory of its own; pass a "
                              "context of a GPU",
                              context->device);
    return NULL;
}

tg_status tg_multiply_in_panels(tg_context *context, const tg_problem *problem,
                                int64_t memory_bytes, tg_panel_run *run)
{
    tg_status status;
    tg_problem converted;
    int is_host;
    if (run)
        *run = (tg_panel_run){.elapsed_s = 0};
    if (!problem || memory_bytes < 0)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "memory_bytes = %lld, problem = %p; pass 0 or more and an address",
                               (long long)memory_bytes, (const void *)problem);
    problem = tgi_struct_read(&tgi_struct_problem, problem, &converted);
    if (!problem)
        return TG_STATUS_INVALID_ARGUMENT;
    context = tgi_host_resolve(context, &status);
    if (!context)
        return status;
    status = tgi_host_find_operands(context, problem, &is_host);
    if (!status && !is_host)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "D at %p is the memory of %s; pass operands in the processor's",
                               problem->d.data, context->device);
    return status ? status : tgi_host_multiply(context, problem, memory_bytes, NULL, run);
}
