/* Serves the instruments of tilegemm_lab.h by a context's backend. */
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "model/attention_rungs.h"
#include "model/chips.h"
#include "plan/candidates.h"
#include "plan/clock.h"
#include "plan/context.h"
#include "plan/proposal.h"
#include "threads/threads.h"
#include "tilegemm_lab.h"

tg_status tg_list_candidates(tg_context *context, const tg_problem *problem,
                             tg_candidate *candidates, int capacity, int *count)
{
    tg_status status;
    context = tgi_context_resolve(context, &status);
    return context ? tgi_plan_list(context->backend, &context->machine, problem, candidates,
                                   capacity, count)
                   : status;
}

int tg_get_kernel_count(void)
{
    return tgi_kernels_count();
}

tg_status tg_get_kernel_info(const tg_context *context, int index, tg_kernel_info *info)
{
    tg_status status;
    if (!info || index < 0 || index >= tgi_kernels_count()) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "index = %d, info = %p; pass 0..%d and an address", index,
                               (void *)info, tgi_kernels_count() - 1);
    }
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    const tgi_kernel *kernel = tgi_kernels_get(index);
    info->name = kernel->name;
    info->device = kernel->device;
    info->family = kernel->family_name;
    info->isa = tgi_kernels_isa_name(kernel->isa);
    info->type = kernel->type;
    info->tile_rows = kernel->tile_rows;
    info->tile_cols = kernel->tile_cols;
    info->ladder_rung = tgi_kernels_rung(kernel->family);
    info->idea = tgi_kernels_idea(kernel->family);
    info->is_available = tgi_plan_has_row(context->backend, kernel) &&
                         tgi_kernels_isa_runs(kernel->isa, context->machine.features);
    return TG_STATUS_OK;
}

int tg_get_attention_rung_count(void)
{
    return tgi_model_attention_rung_count();
}

tg_status tg_get_attention_rung(const tg_context *context, int index, tg_kernel_info *info)
{
    tg_status status;
    if (!info || index < 0 || index >= tgi_model_attention_rung_count()) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "index = %d, info = %p; pass 0..%d and an address", index,
                               (void *)info, tgi_model_attention_rung_count() - 1);
    }
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    const tgi_attention_rung *rung = tgi_model_attention_get(index);
    *info = (tg_kernel_info){.name = rung->name,
                             .device = "sim",
                             .family = rung->family_name,
                             .isa = tgi_kernels_isa_name(rung->isa),
                             .type = rung->type,
                             .tile_rows = rung->query_count,
                             .tile_cols = rung->head_size,
                             .ladder_rung = rung->number,
                             .idea = rung->idea,
                             .is_available = strcmp(context->device, "sim") == 0};
    return TG_STATUS_OK;
}

tg_status tg_describe_chip(const tg_context *context, tg_chip *chip)
{
    tg_status status;
    if (!chip)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "chip = NULL; pass its address");
    memset(chip, 0, sizeof *chip);
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    if (context->machine.gpu.sm_count == 0) {
        return tgi_status_fail(
            TG_STATUS_UNSUPPORTED,
            "the context's device is %s, which is not a GPU; pass a context of a "
            "GPU, or take a chip by tg_find_chip",
            context->device);
    }
    *chip = tgi_chips_describe(&context->machine.gpu);
    snprintf(chip->name, sizeof chip->name, "%s", context->device);
    snprintf(chip->title, sizeof chip->title, "%s", context->machine.name);
    return TG_STATUS_OK;
}

tg_status tg_measure_peak(const tg_context *context, tg_type type, int thread_count,
                          double *flop_per_s)
{
    tg_status status;
    if (!flop_per_s || !tg_get_type_name(type) || thread_count < 1 ||
        thread_count > TGI_THREAD_COUNT_MAX) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "type = %d, thread_count = %d, flop_per_s = %p; pass a tg_type, 1..%d "
            "threads and an address",
            (int)type, thread_count, (void *)flop_per_s, TGI_THREAD_COUNT_MAX);
    }
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    return context->backend->measure_peak(&context->machine, type, thread_count, flop_per_s);
}

tg_status tg_time_calls(const tg_context *context, tg_timed_call *call, void *state, int64_t count,
                        void *stream, double *elapsed_s)
{
    tg_status status;
    if (!call || !elapsed_s || count < 0) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "count = %lld, or call or elapsed_s is NULL; pass 0 or more and "
                               "addresses",
                               (long long)count);
    }
    *elapsed_s = 0.0;
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    if (context->backend->time_calls)
        return context->backend->time_calls(&context->machine, call, state, count, stream,
                                            elapsed_s);
    double start_s = tgi_clock_read_s();
    for (int64_t i = 0; i < count && !status; i++)
        status = call(state, i);
    *elapsed_s = tgi_clock_read_s() - start_s;
    return status;
}
