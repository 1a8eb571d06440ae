#include "dist_nccl.h"

#include <dlfcn.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset; /* of the member in tgi_nccl */
} functions[] = {
#define TGI_NCCL(member, symbol, parameters) {#symbol, offsetof(tgi_nccl, member)},
#include "dist_nccl.def"
#undef TGI_NCCL
    {"ncclGetLastError", offsetof(tgi_nccl, get_error_text)},
};

const tgi_nccl *tgi_nccl_open(void)
{
    static tgi_nccl opened;
    static int is_open;
    if (is_open)
        return &opened;
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        tgi_dist_fail(TG_STATUS_UNSUPPORTED, "no NCCL: %.200s",
                      reason ? reason : "libnccl.so.2 does not open");
        return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(library, functions[i].symbol);
        if (!found) {
            tgi_dist_fail(TG_STATUS_UNSUPPORTED,
                          "NCCL is too old: libnccl.so.2 has no %s; install 2.13 or later",
                          functions[i].symbol);
            dlclose(library);
            return NULL;
        }
        memcpy((char *)&opened + functions[i].offset, &found, sizeof found);
    }
    is_open = 1;
    return &opened;
}

tg_status tgi_nccl_check(const tgi_nccl *nccl, int error, const char *what)
{
    if (!error)
        return TG_STATUS_OK;
    const char *text = nccl->get_error_text(NULL);
    return tgi_dist_fail(TG_STATUS_DEVICE_FAILURE,
                         "%s: NCCL answers %d, %.300s; set NCCL_DEBUG=INFO, or TILEGEMM_WIRE=mpi "
                         "to go without NCCL",
                         what, error, text ? text : "");
}
