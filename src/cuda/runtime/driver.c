#include "cuda/runtime/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"

/* The driver must support the CUDA version whose compiler made the images. */
#ifndef TGI_CUDA_VERSION
#define TGI_CUDA_VERSION 12000
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static tgi_driver opened;
static int is_open;
static char obstacle[400]; /* why the driver is not open */

static const struct {
    const char *symbol;
    size_t offset; /* offset of the member in tgi_driver */
} functions[] = {
#define TGI_DRIVER(member, symbol, parameters) {#symbol, offsetof(tgi_driver, member)},
#include "cuda/runtime/driver.def"
#undef TGI_DRIVER
};

/* Returns the driver's name of an error. */
static const char *name_error(const tgi_driver *driver, int error)
{
    const char *name = NULL;
    if (driver->name_error(error, &name) || !name)
        name = "unknown error";
    return name;
}

/* Returns 1 if every function of driver.def was found. */
static int bind_functions(void *library)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(library, functions[i].symbol);
        if (!found) {
            snprintf(obstacle, sizeof obstacle,
                     "the NVIDIA driver is too old: libcuda.so.1 has no %s; install a driver for "
                     "CUDA %d.%d or later",
                     functions[i].symbol, TGI_CUDA_VERSION / 1000, TGI_CUDA_VERSION % 1000 / 10);
            return 0;
        }
        memcpy((char *)&opened + functions[i].offset, &found, sizeof found);
    }
    return 1;
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(obstacle, sizeof obstacle,
                 "no NVIDIA driver: %.200s; install one, or pass device = \"cpu\"",
                 reason ? reason : "libcuda.so.1 does not open");
        return;
    }
    if (!bind_functions(library))
        return;
    int error = opened.get_version(&opened.version);
    if (error == TGI_CUDA_SUCCESS && opened.version / 1000 < TGI_CUDA_VERSION / 1000) {
        snprintf(obstacle, sizeof obstacle,
                 "the NVIDIA driver is too old: it supports CUDA %d.%d and the kernels were "
                 "compiled by CUDA %d.%d; install a driver for CUDA %d.0 or later",
                 opened.version / 1000, opened.version % 1000 / 10, TGI_CUDA_VERSION / 1000,
                 TGI_CUDA_VERSION % 1000 / 10, TGI_CUDA_VERSION / 1000);
        return;
    }
    if (error == TGI_CUDA_SUCCESS)
        error = opened.init(0);
    if (error != TGI_CUDA_SUCCESS) {
        snprintf(obstacle, sizeof obstacle,
                 "%s: the driver answers %s (%d); look at nvidia-smi, or pass device = \"cpu\"",
                 error == TGI_CUDA_ERROR_NO_DEVICE ? "no CUDA device"
                                                   : "the NVIDIA driver does not start",
                 name_error(&opened, error), error);
        return;
    }
    is_open = 1;
}

const tgi_driver *tgi_driver_open(tg_status *status)
{
    pthread_once(&once, open_driver);
    *status = is_open ? TG_STATUS_OK : tgi_status_fail(TG_STATUS_NO_DEVICE, "%s", obstacle);
    return is_open ? &opened : NULL;
}

tg_status tgi_driver_fail(const tgi_driver *driver, int error, const char *what)
{
    const char *text = NULL;
    size_t free_bytes = 0, total_bytes = 0;
    if (driver->describe_error(error, &text) || !text)
        text = "the driver does not describe it";
    if (error == TGI_CUDA_ERROR_OUT_OF_MEMORY) {
        /* The driver tells free memory only while a context is current. */
        const int is_known = !driver->get_free_bytes(&free_bytes, &total_bytes);
        return tgi_status_fail(TG_STATUS_OUT_OF_MEMORY,
                               is_known ? "%s: %s (%d), %s; %lld of the GPU's %lld bytes are free"
                                        : "%s: %s (%d), %s",
                               what, name_error(driver, error), error, text, (long long)free_bytes,
                               (long long)total_bytes);
    }
    return tgi_status_fail(TG_STATUS_DEVICE_FAILURE, "%s: %s (%d), %s", what,
                           name_error(driver, error), error, text);
}
