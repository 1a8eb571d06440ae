/*
 * The contexts of the devices on which arrays are. They live as long as the process.
 */
#include "extension.h"

#include <pthread.h>
#include <stdio.h>

tg_status tgpy_context_open(int is_on_gpu, int device_index, tg_context **context)
{
    enum { GPU_MAX = 64 };
    static tg_context *contexts[1 + GPU_MAX];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const int is_counted = device_index >= 0 && device_index < GPU_MAX;
    tg_context **place = &contexts[is_on_gpu && is_counted ? 1 + device_index : 0];
    *context = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (*context && is_counted)
        return TG_STATUS_OK;
    char device[16] = "cpu";
    if (is_on_gpu)
        snprintf(device, sizeof device, "cuda:%d", device_index);
    const tg_context_options options = {.struct_bytes = sizeof options, .device = device};
    if (!is_counted)
        return tg_create_context(&options, context); /* it refuses the name */
    pthread_mutex_lock(&lock);
    *context = *place;
    tg_status status = TG_STATUS_OK;
    if (!*context) {
        status = tg_create_context(&options, context);
        __atomic_store_n(place, *context, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int tgpy_context_find(int is_on_gpu, int device_index, tg_context **context)
{
    return tgpy_raise_status(tgpy_context_open(is_on_gpu, device_index, context));
}
