/* Serves the calls of tilegemm.h for devices, their memory and their streams by a context's
 * backend. */
#include <string.h>

#include "core/status.h"
#include "plan/context.h"

tg_status tg_count_devices(const char *device, int *count)
{
    int ordinal;
    tg_status status;
    if (!device || !count) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               device ? "count" : "device");
    }
    *count = 0;
    const tgi_backend *backend = tgi_backend_find(device, "device", &ordinal, &status);
    return backend ? backend->count_devices(count) : status;
}

tg_status tg_allocate_memory(const tg_context *context, int64_t size_bytes, void **memory)
{
    tg_status status;
    if (!memory || size_bytes < 0) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "size_bytes = %lld, memory = %p; pass 0 or more and an address",
                               (long long)size_bytes, (void *)memory);
    }
    *memory = NULL;
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    return context->backend->allocate(&context->machine, size_bytes > 0 ? size_bytes : 1, memory);
}

void tg_release_memory(const tg_context *context, void *memory)
{
    tg_status status;
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context || !memory)
        return;
    tgi_known_memory_forget(&((tg_context *)context)->known);
    context->backend->release(&context->machine, memory);
}

static tg_status check_copy(const void *to, const void *from, int64_t size_bytes)
{
    if (size_bytes >= 0 && ((to && from) || size_bytes == 0))
        return TG_STATUS_OK;
    return tgi_status_fail(
        TG_STATUS_INVALID_ARGUMENT,
        "size_bytes = %lld, to = %p, from = %p; pass 0 or more and two addresses",
        (long long)size_bytes, to, from);
}

tg_status tg_copy_to_device(const tg_context *context, void *device, const void *host,
                            int64_t size_bytes)
{
    tg_status status = check_copy(device, host, size_bytes);
    if (status)
        return status;
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    if (context->backend->copy_to_device)
        return context->backend->copy_to_device(&context->machine, device, host, size_bytes);
    if (size_bytes)
        memcpy(device, host, (size_t)size_bytes);
    return TG_STATUS_OK;
}

tg_status tg_copy_from_device(const tg_context *context, void *host, const void *device,
                              int64_t size_bytes)
{
    tg_status status = check_copy(host, device, size_bytes);
    if (status)
        return status;
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    if (context->backend->copy_from_device)
        return context->backend->copy_from_device(&context->machine, host, device, size_bytes);
    if (size_bytes)
        memcpy(host, device, (size_t)size_bytes);
    return TG_STATUS_OK;
}

tg_status tg_activate_device(const tg_context *context)
{
    tg_status status;
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context || !context->backend->activate)
        return status;
    return context->backend->activate(&context->machine);
}

tg_status tg_synchronize(const tg_context *context, void *stream)
{
    tg_status status;
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context || !context->backend->synchronize)
        return status;
    return context->backend->synchronize(&context->machine, stream);
}
