#include "cuda/runtime/staging.h"

#include <stdio.h>

#include "core/alloc.h"
#include "core/status.h"

tg_status tgi_cuda_make_staging(const tgi_driver *driver, tgi_cuda_staging **staging)
{
    const int64_t bytes = tgi_cuda_stage_count * TGI_CUDA_STAGE_BYTES;
    char what[96];
    tgi_cuda_staging *made = tgi_alloc_object(sizeof *made);
    *staging = NULL;
    if (!made)
        return TG_STATUS_OUT_OF_MEMORY;
    int error = driver->allocate_pinned(&made->memory, (size_t)bytes, 0);
    for (int i = 0; i < tgi_cuda_stage_count && !error; i++) {
        made->blocks[i] = (char *)made->memory + i * TGI_CUDA_STAGE_BYTES;
        error = driver->create_event(&made->events[i], 0);
    }
    if (!error) {
        *staging = made;
        return TG_STATUS_OK;
    }
    tgi_cuda_free_staging(driver, made);
    snprintf(what, sizeof what, "no %lld bytes of pinned memory for copies could be had",
             (long long)bytes);
    return tgi_driver_fail(driver, error, what);
}

void tgi_cuda_free_staging(const tgi_driver *driver, tgi_cuda_staging *staging)
{
    for (int i = 0; staging && i < tgi_cuda_stage_count; i++) {
        if (staging->events[i])
            driver->destroy_event(staging->events[i]);
    }
    if (staging && staging->memory)
        driver->release_pinned(staging->memory);
    tgi_alloc_free(staging);
}
