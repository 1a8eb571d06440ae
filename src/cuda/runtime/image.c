#include "cuda/runtime/image.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arch.h"
#include "core/kernels.h"
#include "core/pack.h"
#include "core/status.h"
#include "cuda/runtime/ptx_text.h"

/* CMake writes images.def: TGI_IMAGE(name, architectures of its code) for each source,
 * TGI_IMAGE_PLACE(name, architecture, pack, place in the pack) for each of its codes,
 * TGI_PACK(pack, architecture, path of its file), and TGI_IMAGE_ARCHITECTURES. The bytes of packs
 * go into read-only data under hidden names. */
#define TGI_PACK(pack, code, path)                                                                 \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden tgi_pack_" #pack "_" #code "\n"                                               \
            ".globl tgi_pack_" #pack "_" #code "\n"                                                \
            "tgi_pack_" #pack "_" #code ":\n"                                                      \
            ".incbin \"" path "\"\n"                                                               \
            ".hidden tgi_pack_end_" #pack "_" #code "\n"                                           \
            ".globl tgi_pack_end_" #pack "_" #code "\n"                                            \
            "tgi_pack_end_" #pack "_" #code ":\n"                                                  \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const unsigned char tgi_pack_##pack##_##code[] __attribute__((visibility("hidden")));   \
    extern const unsigned char tgi_pack_end_##pack##_##code[] __attribute__((visibility("hidden")));
#include <images.def>
#undef TGI_PACK

/* The code of an image for an architecture is image `place` of a pack. */
static const struct code {
    const char *image, *architecture;
    const unsigned char *pack, *pack_end;
    int place;
} image_codes[] = {
#define TGI_IMAGE_PLACE(name, code, pack, place)                                                   \
    {#name, #code, tgi_pack_##pack##_##code, tgi_pack_end_##pack##_##code, place},
#include <images.def>
#undef TGI_IMAGE_PLACE
    {NULL, NULL, NULL, NULL, 0}};

static const struct {
    const char *name, *codes;
} images[] = {
#define TGI_IMAGE(name, codes) {#name, codes},
#include <images.def>
#undef TGI_IMAGE
};
enum { image_count = sizeof images / sizeof images[0] };
_Static_assert(image_count <= TGI_CUDA_IMAGE_COUNT, "a device has room for every image");

static const char no_code[] = "no code";

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

/* Finds the code that the chip runs best, as the driver ranks code: machine code before PTX, then
 * later code first. Sets *features to those of the chips that it is compiled for. Returns where
 * its architecture stands in `codes`, or NULL if the chip runs none. */
static const char *find_code(const char *codes, int capability, unsigned *features)
{
    const char *found = NULL;
    int best = 0;
    for (const char *code = codes, *next = codes; *next; code = next) {
        int is_ptx, is_exact;
        const int number = read_code(&next, &is_ptx, &is_exact);
        const int can_run = is_exact ? number == capability
                            : is_ptx ? number <= capability
                                     : number / 10 == capability / 10 && number <= capability;
        const int rank = 2 * number + 10000 * !is_ptx + is_exact;
        if (!can_run || rank <= best)
            continue;
        *features =
            tgi_arch_find(number)->features & (is_exact ? ~0u : ~(unsigned)TGI_FEATURE_WGMMA);
        best = rank;
        found = code;
    }
    return found;
}

int tgi_cuda_serves(const char *codes, int capability, tgi_isa isa)
{
    unsigned features;
    return find_code(codes, capability, &features) != NULL && tgi_kernels_isa_runs(isa, features);
}

int tgi_cuda_code_uses(const char *codes, int capability, unsigned feature)
{
    unsigned features;
    return find_code(codes, capability, &features) != NULL && (features & feature) != 0;
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

/* Finds the image's code for the chip. Returns NULL if there is none. */
static const struct code *find_image_code(int image, int capability)
{
    unsigned features;
    const char *best = find_code(images[image].codes, capability, &features);
    for (const struct code *code = image_codes; best && code->image; code++) {
        const size_t length = strlen(code->architecture);
        if (strcmp(code->image, images[image].name) == 0 &&
            strncmp(code->architecture, best, length) == 0 &&
            (best[length] == ' ' || best[length] == '\0'))
            return code;
    }
    return NULL;
}

/* Unpacks code. *text receives a block for tgi_alloc_free, in which the code begins at byte
 * *begin. */
static tg_status unpack(const struct code *code, char **text, int64_t *begin)
{
    tgi_pack_head head;
    const tg_status status =
        tgi_pack_open(code->pack, code->pack_end - code->pack, code->place + 1, &head, text);
    if (status)
        return status;
    *begin = tgi_pack_begin(&head, code->place);
    if (strncmp(code->architecture, "compute_", 8) != 0)
        return TG_STATUS_OK;
    const int64_t end = (int64_t)head.end[code->place];
    char *form = *text;
    *text = tgi_alloc_block(tgi_ptx_write(form + *begin, end - *begin, 1, NULL));
    if (*text)
        tgi_ptx_write(form + *begin, end - *begin, 1, *text);
    *begin = 0;
    tgi_alloc_free(form);
    return *text ? TG_STATUS_OK : TG_STATUS_OUT_OF_MEMORY;
}

/* Loads the image's code for the chip. A driver that gets no code names the error. */
static tg_status load(tgi_cuda_device *device, int image)
{
    const struct code *code = find_image_code(image, device->capability);
    char *text = NULL;
    int64_t begin = 0;
    void *module = NULL;
    tg_status status = code ? unpack(code, &text, &begin) : TG_STATUS_OK;
    if (!status) {
        const int error = device->driver->load_module(&module, text ? text + begin : no_code);
        status = error ? fail_loading(device, images[image].name, error) : TG_STATUS_OK;
    }
    tgi_alloc_free(text);
    device->modules[image] = module;
    return status;
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
    const tg_status status = device->modules[i] ? TG_STATUS_OK : load(device, i);
    if (status)
        return status;
    int error = driver->find_function(function, device->modules[i], symbol);
    if (!error)
        return TG_STATUS_OK;
    snprintf(what, sizeof what, "image \"%.40s\" on cuda:%d has no function %.90s", image,
             device->ordinal, symbol);
    return tgi_driver_fail(driver, error, what);
}
