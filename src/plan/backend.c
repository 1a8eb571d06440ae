#include "plan/backend.h"

#include <string.h>

static const tgi_backend *const backends[] = {&tgi_backend_cpu};

const tgi_backend *tgi_backend_find(const char *device)
{
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        if (strcmp(backends[i]->device, device) == 0)
            return backends[i];
    }
    return NULL;
}
