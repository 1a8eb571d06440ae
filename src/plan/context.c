#include "plan/context.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/env.h"
#include "core/status.h"

#define MAX_THREAD_COUNT 1024

static tg_status choose_isa(const tg_context_options *options, tgi_machine *machine)
{
    const char *name = options->isa ? options->isa : tgi_env_get(TGI_ENV_TILEGEMM_ISA);
    const char *origin = options->isa ? "isa" : "TILEGEMM_ISA";
    if (!name)
        return TG_STATUS_OK;
    tgi_isa isa = tgi_kernels_find_isa(name);
    if (isa == TGI_ISA_COUNT) {
        return tgi_status_fail(
            TG_STATUS_UNKNOWN_NAME,
            "%s = \"%.64s\" is not an instruction set of this build; pass generic, "
            "avx2, avx512 or avx512_bf16",
            origin, name);
    }
    if (isa > machine->isa) {
        return tgi_status_fail(TG_STATUS_NO_DEVICE,
                               "%s = %s, but this processor has no more than %s; pass that or less",
                               origin, name, tgi_kernels_isa_name(machine->isa));
    }
    machine->isa = isa;
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
                                   MAX_THREAD_COUNT);
        }
    }
    if (count < 0 || count > MAX_THREAD_COUNT) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "%s = %ld; pass 1..%d, or leave it out for the default", origin,
                               count, MAX_THREAD_COUNT);
    }
    if (count)
        machine->thread_count = (int)count;
    return TG_STATUS_OK;
}

static tg_status open_log(FILE **log)
{
    const char *name = tgi_env_get(TGI_ENV_TILEGEMM_LOG);
    *log = NULL;
    if (!name || strcmp(name, "0") == 0)
        return TG_STATUS_OK;
    if (strcmp(name, "1") == 0) {
        *log = stderr;
        return TG_STATUS_OK;
    }
    *log = fopen(name, "a");
    if (!*log) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "TILEGEMM_LOG = \"%.200s\" cannot be opened for appending; set it to 1 "
            "for stderr or to a writable file",
            name);
    }
    setvbuf(*log, NULL, _IOLBF, 0);
    return TG_STATUS_OK;
}

tg_status tg_create_context(const tg_context_options *options, tg_context **context)
{
    static const tg_context_options defaults = {0};
    if (!context) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "context = NULL; pass the address of a tg_context pointer");
    }
    *context = NULL;
    if (!options)
        options = &defaults;
    const char *device = options->device ? options->device : tgi_env_get(TGI_ENV_TILEGEMM_DEVICE);
    const tgi_backend *backend = tgi_backend_find(device ? device : "cpu");
    if (!backend) {
        return tgi_status_fail(TG_STATUS_UNKNOWN_NAME,
                               "%s = \"%.64s\" is not a device of this build; pass cpu",
                               options->device ? "device" : "TILEGEMM_DEVICE", device);
    }

    tg_context *made = tgi_alloc_object(sizeof *made);
    if (!made)
        return TG_STATUS_OUT_OF_MEMORY;
    made->backend = backend;
    tg_status status;
    if ((status = backend->open(&made->machine)) ||
        (status = choose_isa(options, &made->machine)) ||
        (status = choose_thread_count(options, &made->machine)) ||
        (status = open_log(&made->log))) {
        tgi_alloc_free(made);
        return status;
    }
    tgi_workspace_open(&made->workspaces);
    tgi_plan_cache_open(&made->plans);
    *context = made;
    return TG_STATUS_OK;
}

void tg_destroy_context(tg_context *context)
{
    if (!context)
        return;
    tgi_plan_cache_close(&context->plans);
    tgi_workspace_close(&context->workspaces);
    if (context->log && context->log != stderr)
        fclose(context->log);
    tgi_alloc_free(context);
}

/* The default context lives as long as the process: calls may still run in other threads at
 * exit. */
static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;
static tg_context *_Atomic default_context;

tg_context *tgi_context_resolve(tg_context *context, tg_status *status)
{
    *status = TG_STATUS_OK;
    if (context)
        return context;
    tg_context *found = default_context;
    if (found)
        return found;
    pthread_mutex_lock(&default_lock);
    found = default_context;
    if (!found) {
        *status = tg_create_context(NULL, &found);
        default_context = found; /* stays NULL after a failure: the next call tries again */
    }
    pthread_mutex_unlock(&default_lock);
    return found;
}

tg_status tg_get_device_info(const tg_context *context, tg_device_info *info)
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
    info->device = context->backend->device;
    info->name = machine->name;
    info->isa = tgi_kernels_isa_name(machine->isa);
    info->thread_count = machine->thread_count;
    info->l1_bytes = machine->l1_bytes;
    info->l2_bytes = machine->l2_bytes;
    info->l3_bytes = machine->l3_bytes;
    return TG_STATUS_OK;
}

tg_status tg_measure_peak(const tg_context *context, tg_type type, int thread_count,
                          double *flop_per_s)
{
    tg_status status;
    if (!flop_per_s || !tg_get_type_name(type) || thread_count < 1 ||
        thread_count > MAX_THREAD_COUNT) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "type = %d, thread_count = %d, flop_per_s = %p; pass a tg_type, 1..%d "
            "threads and an address",
            (int)type, thread_count, (void *)flop_per_s, MAX_THREAD_COUNT);
    }
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    return context->backend->measure_peak(&context->machine, type, thread_count, flop_per_s);
}
