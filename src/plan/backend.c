#include "plan/backend.h"

#include <string.h>

#include "core/status.h"

static const tgi_backend *const backends[] = {&tgi_backend_cpu};

const tgi_backend *tgi_backend_find(const char *device)
{
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        if (strcmp(backends[i]->device, device) == 0) return backends[i];
    }
    tgi_status_fail(TG_STATUS_UNKNOWN_NAME, "device = \"%.64s\" is not a device of this build; pass cpu",
                    device);
    return NULL;
}
