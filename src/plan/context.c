#include "plan/context.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/env.h"
#include "core/status.h"
#include "core/structs.h"
#include "plan/call_log.h"
#include "threads/threads.h"

/* Writes the names of the device's instruction sets: "sm75, sm80, sm89 or sm90a". */
static void list_isas(const char *device, char *text, size_t text_bytes)
{
    int rest = 0;
    text[0] = '\0';
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++)
        rest += strcmp(tgi_kernels_isa_device((tgi_isa)isa), device) == 0;
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++) {
        if (strcmp(tgi_kernels_isa_device((tgi_isa)isa), device) != 0)
            continue;
        rest--;
        const size_t length = strlen(text);
        snprintf(text + length, text_bytes - length, "%s%s", tgi_kernels_isa_name((tgi_isa)isa),
                 rest > 1    ? ", "
                 : rest == 1 ? " or "
                             : "");
    }
}

static tg_status choose_isa(const tg_context_options *options, const char *device,
                            tgi_machine *machine)
{
    const char *name = options->isa ? options->isa : tgi_env_get(TGI_ENV_TILEGEMM_ISA);
    const char *origin = options->isa ? "isa" : "TILEGEMM_ISA";
    if (!name)
        return TG_STATUS_OK;
    tgi_isa isa = tgi_kernels_find_isa(name);
    int is_of_device = isa < TGI_ISA_COUNT && strcmp(tgi_kernels_isa_device(isa), device) == 0;
    /* TILEGEMM_ISA applies to contexts of every device. An instruction set of another device sets
     * no limit. */
    if (!options->isa && isa < TGI_ISA_COUNT && !is_of_device)
        return TG_STATUS_OK;
    if (!is_of_device) {
        char names[256];
        list_isas(device, names, sizeof names);
        return tgi_status_fail(
            TG_STATUS_UNKNOWN_NAME,
            "%s = \"%.64s\" is not an instruction set of this build for %s; pass %s", origin, name,
            device, names);
    }
    if (!tgi_kernels_isa_runs(isa, machine->features)) {
        return tgi_status_fail(TG_STATUS_NO_DEVICE,
                               "%s = %s, but this processor has no more than %s; pass that or less",
                               origin, name, tgi_kernels_isa_name(machine->isa));
    }
    machine->isa = isa;
    machine->features = tgi_kernels_isa_features(isa);
    return TG_STATUS_OK;
}

static tg_status choose_thread_count(const tg_context_options *options, tgi_machine *machine)
{
    const char *text = tgi_env_get(TGI_ENV_TILEGEMM_THREADS);
    const char *origin = "thread_count";
    long count = options->thread_count;
    if (count == 0 && text) {
        char *end;
        origin = "TILEGEMM_THREADS";
        count = strtol(text, &end, 10);
        if (*end || count < 1) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "TILEGEMM_THREADS = \"%.32s\"; set it to 1..%d", text,
                                   TGI_THREAD_COUNT_MAX);
        }
    }
    if (count < 0 || count > TGI_THREAD_COUNT_MAX) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "%s = %ld; pass 1..%d, or leave it out for the default", origin,
                               count, TGI_THREAD_COUNT_MAX);
    }
    if (count)
        machine->thread_count = (int)count;
    return TG_STATUS_OK;
}

static tg_status check_limit(const tg_context_options *options, tgi_machine *machine)
{
    if (options->workspace_limit_bytes < 0)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "workspace_limit_bytes = %lld; pass 0 for the default or more",
                               (long long)options->workspace_limit_bytes);
    machine->workspace_limit_bytes = options->workspace_limit_bytes;
    return TG_STATUS_OK;
}

/* Reserves the spare workspace. If there is no memory, a plan that needs workspace asks again and
 * reports the failure. The thread's error detail is kept. */
static void reserve_spare(tg_context *context)
{
    char detail[512];
    snprintf(detail, sizeof detail, "%s", tg_get_error_detail());
    if (tgi_workspace_reserve(&context->workspaces, context->backend->spare_bytes))
        (void)tgi_status_fail(TG_STATUS_OK, "%s", detail);
}

static _Atomic int64_t context_count;

tg_status tg_create_context(const tg_context_options *options, tg_context **context)
{
    static const tg_context_options defaults = {.struct_bytes = sizeof defaults};
    tg_context_options converted;
    if (!context) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "context = NULL; pass the address of a tg_context pointer");
    }
    *context = NULL;
    options =
        options ? tgi_struct_read(&tgi_struct_context_options, options, &converted) : &defaults;
    if (!options)
        return TG_STATUS_INVALID_ARGUMENT;
    const char *device = options->device ? options->device : tgi_env_get(TGI_ENV_TILEGEMM_DEVICE);
    int ordinal;
    tg_status status;
    const tgi_backend *backend = tgi_backend_find(
        device ? device : "cpu", options->device ? "device" : "TILEGEMM_DEVICE", &ordinal, &status);
    if (!backend)
        return status;

    tg_context *made = tgi_alloc_object(sizeof *made);
    if (!made)
        return TG_STATUS_OUT_OF_MEMORY;
    made->backend = backend;
    if ((status = backend->open(&made->machine, ordinal))) {
        tgi_alloc_free(made);
        return status;
    }
    if ((status = choose_isa(options, backend->row_device, &made->machine)) ||
        (status = choose_thread_count(options, &made->machine)) ||
        (status = check_limit(options, &made->machine)) ||
        (status = tgi_call_log_open(&made->log))) {
        if (backend->close)
            backend->close(&made->machine);
        tgi_alloc_free(made);
        return status;
    }
    if (backend->close)
        snprintf(made->device, sizeof made->device, "%s:%d", backend->device,
                 made->machine.gpu.ordinal);
    else
        snprintf(made->device, sizeof made->device, "%s", backend->device);
    tgi_workspace_open(&made->workspaces, backend, &made->machine);
    reserve_spare(made);
    tgi_plan_cache_open(&made->plans);
    made->number = ++context_count;
    *context = made;
    return TG_STATUS_OK;
}

void tg_destroy_context(tg_context *context)
{
    if (!context)
        return;
    tgi_plan_cache_close(&context->plans);
    tgi_workspace_close(&context->workspaces);
    if (context->backend->close)
        context->backend->close(&context->machine);
    tgi_call_log_close(context->log);
    tgi_alloc_free(context);
}

/* The default context lives as long as the process, because calls may still run in other threads at
 * exit. It has no lock: a child of fork() could find that lock taken for ever. */
static tg_context *_Atomic default_context;

tg_context *tgi_context_find_default(tg_status *status)
{
    *status = TG_STATUS_OK;
    tg_context *found = default_context, *made;
    if (found)
        return found;
    if ((*status = tg_create_context(NULL, &made)))
        return NULL; /* the next call tries again */
    if (atomic_compare_exchange_strong(&default_context, &found, made))
        return made;
    tg_destroy_context(made); /* another thread was first */
    return found;
}

int64_t tg_get_context_number(const tg_context *context)
{
    tg_status status;
    context = tgi_context_resolve((tg_context *)context, &status);
    return context ? context->number : 0;
}

tg_status tg_get_device_info(const tg_context *context, tg_device_info *info, size_t struct_bytes)
{
    tg_status status;
    if (!info) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "info = NULL; pass the address of a tg_device_info");
    }
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    const tgi_machine *machine = &context->machine;
    const tgi_gpu *gpu = &machine->gpu;
    const tg_device_info made = {.struct_bytes = sizeof made,
                                 .device = context->device,
                                 .name = machine->name,
                                 .isa = tgi_kernels_isa_name(machine->isa),
                                 .thread_count = machine->thread_count,
                                 .l1_bytes = machine->l1_bytes,
                                 .l2_bytes = machine->l2_bytes,
                                 .l3_bytes = machine->l3_bytes,
                                 .bus = gpu->bus,
                                 .compute_capability = gpu->capability,
                                 .sm_count = gpu->sm_count,
                                 .registers_per_sm = gpu->registers_per_sm,
                                 .shared_bytes_per_sm = gpu->shared_bytes_per_sm,
                                 .shared_bytes_per_block = gpu->shared_bytes_per_block,
                                 .memory_bytes = gpu->memory_bytes,
                                 .clock_hz = gpu->clock_hz,
                                 .memory_bytes_per_s = gpu->memory_bytes_per_s};
    return tgi_struct_write(&tgi_struct_device_info, &made, info, struct_bytes);
}
