/*
 * Opens libtorch's C interface in the libraries that PyTorch has loaded.
 */
#include "torch_shims.h"

#include <dlfcn.h>
#include <stddef.h>

tgpy_torch_shims tgpy_torch;

typedef struct shim_row {
    const char *name;
    size_t offset;
} shim_row;

static const shim_row cpu_rows[] = {
#define TGPY_SHIM(result, name, parameters) {#name, offsetof(tgpy_torch_shims, name)},
#define TGPY_SHIM_CUDA(result, name, parameters)
#include "torch_shims.def"
#undef TGPY_SHIM
#undef TGPY_SHIM_CUDA
};
static const shim_row cuda_rows[] = {
#define TGPY_SHIM(result, name, parameters)
#define TGPY_SHIM_CUDA(result, name, parameters) {#name, offsetof(tgpy_torch_shims, name)},
#include "torch_shims.def"
#undef TGPY_SHIM
#undef TGPY_SHIM_CUDA
};

/* Fills the rows' pointers. Returns the name that a library lacks, or NULL. */
static const char *fill(const char *file, const shim_row *rows, size_t count)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return file;
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, rows[i].name);
        if (!function)
            return rows[i].name;
        *(void **)((char *)&tgpy_torch + rows[i].offset) = function;
    }
    return NULL;
}

const char *tgpy_torch_open(void)
{
    const char *missing = fill("libtorch_cpu.so", cpu_rows, sizeof cpu_rows / sizeof *cpu_rows);
    if (missing)
        return missing;
    void *library = dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
    if (library)
        *(void **)&tgpy_torch.requires_grad =
            dlsym(library, "_ZNK3c1010TensorImpl13requires_gradEv");
    tgpy_torch.has_cuda =
        !fill("libtorch_cuda.so", cuda_rows, sizeof cuda_rows / sizeof *cuda_rows);
    return NULL;
}
