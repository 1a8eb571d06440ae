/* Images: compiled device code embedded in the library, loaded at the first use of each device. */
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "cuda/runtime/device.h"

/* images.def, written by CMake: TGI_IMAGE(name, path of the compiled image) for each source, and
 * TGI_IMAGE_ARCHITECTURES. The bytes go into read-only data under hidden names. */
#define TGI_IMAGE(name, path)                                                                      \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign 64\n"                                                                         \
            ".hidden tgi_image_" #name "\n"                                                        \
            ".globl tgi_image_" #name "\n"                                                         \
            "tgi_image_" #name ":\n"                                                               \
            ".incbin \"" path "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const unsigned char tgi_image_##name[] __attribute__((visibility("hidden")));
#include <images.def>
#undef TGI_IMAGE

static const struct {
    const char *name;
    const unsigned char *bytes;
} images[] = {
#define TGI_IMAGE(name, path) {#name, tgi_image_##name},
#include <images.def>
#undef TGI_IMAGE
};
enum { image_count = sizeof images / sizeof images[0] };
_Static_assert(image_count <= TGI_CUDA_IMAGE_COUNT, "a device has room for every image");

const char *tgi_cuda_architectures(void)
{
    return TGI_IMAGE_ARCHITECTURES;
}

/* An image that does not suit the chip, or any other failure of loading. */
static tg_status fail_loading(const tgi_cuda_device *device, const char *image, int error)
{
    char what[128];
    if (error == TGI_CUDA_ERROR_NO_BINARY_FOR_GPU || error == TGI_CUDA_ERROR_INVALID_IMAGE ||
        error == TGI_CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
        return tgi_status_fail(TG_STATUS_NO_DEVICE,
                               "image \"%s\" is missing for cuda:%d, %s, sm_%d: this build has %s; "
                               "build the library for sm_%d, or update the driver",
                               image, device->ordinal, device->name, device->capability,
                               tgi_cuda_architectures(), device->capability);
    }
    snprintf(what, sizeof what, "image \"%.40s\" cannot be loaded on cuda:%d", image,
             device->ordinal);
    return tgi_driver_fail(device->driver, error, what);
}

/* Under the device's lock. */
static tg_status load_function(tgi_cuda_device *device, const char *image, const char *symbol,
                               tgi_cuda_function *slot)
{
    const tgi_driver *driver = device->driver;
    char what[200];
    int i = 0;
    while (i < image_count && strcmp(images[i].name, image) != 0)
        i++;
    if (i == image_count) {
        return tgi_status_fail(TG_STATUS_NO_DEVICE,
                               "this build has no image \"%s\" for %s; build it with nvcc", image,
                               symbol);
    }
    if (!device->modules[i]) {
        void *module = NULL;
        int mode = tgi_cuda_relax_capture(device);
        int error = driver->load_module(&module, images[i].bytes);
        driver->exchange_capture_mode(&mode);
        if (error)
            return fail_loading(device, image, error);
        device->modules[i] = module;
    }
    const int length = snprintf(slot->name, sizeof slot->name, "%s", symbol);
    int error = length < (int)sizeof slot->name
                    ? driver->find_function(&slot->function, device->modules[i], symbol)
                    : TGI_CUDA_ERROR_NOT_FOUND;
    if (error) {
        snprintf(what, sizeof what, "image \"%.40s\" on cuda:%d has no function %.90s", image,
                 device->ordinal, symbol);
        return tgi_driver_fail(driver, error, what);
    }
    atomic_store_explicit(&slot->symbol, slot->name, memory_order_release);
    return TG_STATUS_OK;
}

static unsigned hash_symbol(const char *symbol)
{
    unsigned hash = 2166136261u; /* FNV-1a */
    for (; *symbol; symbol++)
        hash = (hash ^ (unsigned char)*symbol) * 16777619u;
    return hash;
}

/* The slot of the symbol, or the free one where it belongs; NULL where all are taken. */
static tgi_cuda_function *find_slot(tgi_cuda_device *device, const char *symbol)
{
    unsigned hash = hash_symbol(symbol);
    for (unsigned i = 0; i < TGI_CUDA_FUNCTION_COUNT; i++) {
        tgi_cuda_function *slot = &device->functions[(hash + i) % TGI_CUDA_FUNCTION_COUNT];
        const char *found = atomic_load_explicit(&slot->symbol, memory_order_acquire);
        if (!found || strcmp(found, symbol) == 0)
            return slot;
    }
    return NULL;
}

tg_status tgi_cuda_find_function(tgi_cuda_device *device, const char *image, const char *symbol,
                                 tgi_cuda_function **function)
{
    tg_status status = TG_STATUS_OK;
    tgi_cuda_function *slot = find_slot(device, symbol);
    if (!slot || !atomic_load_explicit(&slot->symbol, memory_order_acquire)) {
        pthread_mutex_lock(&device->lock);
        slot = find_slot(device, symbol); /* another thread may have been first */
        if (!slot) {
            status = tgi_status_fail(TG_STATUS_UNSUPPORTED, "more than %d kernels are in use",
                                     TGI_CUDA_FUNCTION_COUNT);
        } else if (!slot->symbol) {
            status = load_function(device, image, symbol, slot);
        }
        pthread_mutex_unlock(&device->lock);
    }
    *function = slot;
    return status;
}

void tgi_cuda_unload_images(tgi_cuda_device *device)
{
    for (int i = 0; i < image_count; i++) {
        if (device->modules[i])
            device->driver->unload_module(device->modules[i]);
    }
}
