#include "plan/backend.h"

#include <stdlib.h>
#include <string.h>

#include "core/status.h"

#define MAX_ORDINAL 63

static const tgi_backend *const backends[] = {
    &tgi_backend_cpu,
#if TGI_HAVE_CUDA
    &tgi_backend_cuda,
#endif
#if TGI_HAVE_SIM
    &tgi_backend_sim,
#endif
};

/* Returns the number after the colon of "cuda:3"; -1 if there is none. */
static int read_ordinal(const char *text)
{
    char *end;
    long ordinal = strtol(text, &end, 10);
    int is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0';
    return is_number && ordinal <= MAX_ORDINAL ? (int)ordinal : -1;
}

const tgi_backend *tgi_backend_find(const char *device, const char *origin, int *ordinal,
                                    tg_status *status)
{
    size_t length = strcspn(device, ":");
    const char *colon = device[length] ? device + length : NULL;
    *ordinal = colon ? read_ordinal(colon + 1) : -1;
    *status = TG_STATUS_OK;
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        const char *name = backends[i]->device;
        if (strlen(name) != length || strncmp(name, device, length) != 0)
            continue;
        if (!colon || (backends[i]->close && *ordinal >= 0))
            return backends[i];
    }
    if (!TGI_HAVE_CUDA && length == strlen("cuda") && strncmp(device, "cuda", length) == 0) {
        *status = tgi_status_fail(TG_STATUS_NO_DEVICE,
                                  "%s = \"%.64s\", but this build leaves CUDA out: there was no "
                                  "nvcc, or TG_CUDA was OFF; build it with nvcc, or pass cpu",
                                  origin, device);
    } else if (!TGI_HAVE_SIM && strcmp(device, "sim") == 0) {
        *status = tgi_status_fail(TG_STATUS_NO_DEVICE,
                                  "%s = \"sim\", but this build leaves the simulator out; build it "
                                  "with a C++ compiler and awk, or pass cpu",
                                  origin);
    } else {
        *status = tgi_status_fail(TG_STATUS_UNKNOWN_NAME,
                                  "%s = \"%.64s\" is not a device of this build; pass cpu, cuda, "
                                  "cuda:0..cuda:%d or sim",
                                  origin, device, MAX_ORDINAL);
    }
    return NULL;
}
