#include "cuda/runtime/image.h"

#include <stdio.h>
#include <string.h>

#include "core/arch.h"
#include "core/kernels.h"
#include "core/status.h"

/* CMake writes images.def: TGI_IMAGE(name, path of the compiled image, architectures of its code)
 * for each source, and TGI_IMAGE_ARCHITECTURES. The bytes go into read-only data under hidden
 * names. */
#define TGI_IMAGE(name, path, codes)                                                               \
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
    const char *name, *codes;
    const unsigned char *bytes;
} images[] = {
#define TGI_IMAGE(name, path, codes) {#name, codes, tgi_image_##name},
#include <images.def>
#undef TGI_IMAGE
};
enum { image_count = sizeof images / sizeof images[0] };
_Static_assert(image_count <= TGI_CUDA_IMAGE_COUNT, "a device has room for every image");

const char *tgi_cuda_architectures(void)
{
    return TGI_IMAGE_ARCHITECTURES;
}

int tgi_cuda_has_code(tgi_isa isa)
{
    static const int has_code[TGI_ISA_COUNT] = {
        [TGI_ISA_generic] = 0, /* the only entry in a build without images */
#define TGI_IMAGE_CODE(name) [TGI_ISA_##name] = 1,
#include <images.def>
#undef TGI_IMAGE_CODE
    };
    return has_code[isa];
}

/* Returns the status for an image that has no code for the chip or that the driver cannot load. */
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

/* Returns the number of the image, or image_count if no image has that name. */
static int find_image(const char *name)
{
    int i = 0;
    while (i < image_count && strcmp(images[i].name, name) != 0)
        i++;
    return i;
}

/* Reads one architecture, "sm_90a" or "compute_90", and moves *codes to the next one. Returns 10
 * major + minor. */
static int read_code(const char **codes, int *is_ptx, int *is_exact)
{
    int number = 0, used = 0;
    *is_ptx = strncmp(*codes, "compute_", 8) == 0;
    sscanf(strchr(*codes, '_') + 1, "%d%n", &number, &used);
    const char *end = strchr(*codes, '_') + 1 + used;
    *is_exact = *end == 'a';
    *codes = end + *is_exact;
    *codes += **codes == ' ';
    return number;
}

/* Finds the code that the driver takes for a chip, and sets *features to those of the chips that it
 * is compiled for. Returns 0 if the chip runs none. */
static int find_code(const char *codes, int capability, unsigned *features)
{
    int best = 0;
    for (const char *next = codes; *next;) {
        int is_ptx, is_exact;
        const int number = read_code(&next, &is_ptx, &is_exact);
        const int can_run = is_exact ? number == capability
                            : is_ptx ? number <= capability
                                     : number / 10 == capability / 10 && number <= capability;
        /* Codes are ranked as the driver ranks them: machine code before PTX, then later code
         * first. */
        const int rank = 2 * number + 10000 * !is_ptx + is_exact;
        if (!can_run || rank <= best)
            continue;
        *features =
            tgi_arch_find(number)->features & (is_exact ? ~0u : ~(unsigned)TGI_FEATURE_WGMMA);
        best = rank;
    }
    return best > 0;
}

int tgi_cuda_serves(const char *codes, int capability, tgi_isa isa)
{
    unsigned features;
    return find_code(codes, capability, &features) && tgi_kernels_isa_runs(isa, features);
}

int tgi_cuda_code_uses(const char *codes, int capability, unsigned feature)
{
    unsigned features;
    return find_code(codes, capability, &features) && (features & feature) != 0;
}

int tgi_cuda_image_uses(const char *image, int capability, unsigned feature)
{
    const int i = find_image(image);
    if (strcmp(tgi_cuda_architectures(), "none") == 0)
        return tgi_arch_has(capability, feature);
    return i < image_count && tgi_cuda_code_uses(images[i].codes, capability, feature);
}

int tgi_cuda_has_image(const char *image, int capability, tgi_isa isa)
{
    const int i = find_image(image);
    if (strcmp(tgi_cuda_architectures(), "none") == 0)
        return 1;
    return i < image_count && tgi_cuda_serves(images[i].codes, capability, isa);
}

tg_status tgi_cuda_find_function(tgi_cuda_device *device, const char *image, const char *symbol,
                                 void **function)
{
    const tgi_driver *driver = device->driver;
    char what[200];
    const int i = find_image(image);
    if (i == image_count) {
        return tgi_status_fail(TG_STATUS_NO_DEVICE,
                               "this build has no image \"%s\" for %s; build it with nvcc", image,
                               symbol);
    }
    if (!device->modules[i]) {
        void *module = NULL;
        int error = driver->load_module(&module, images[i].bytes);
        if (error)
            return fail_loading(device, image, error);
        device->modules[i] = module;
    }
    int error = driver->find_function(function, device->modules[i], symbol);
    if (!error)
        return TG_STATUS_OK;
    snprintf(what, sizeof what, "image \"%.40s\" on cuda:%d has no function %.90s", image,
             device->ordinal, symbol);
    return tgi_driver_fail(driver, error, what);
}
