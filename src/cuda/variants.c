#include "cuda/variants.h"

#include <string.h>

#include "core/kernel_name.h"

/* ENTRY(name, suffix) for each way in which families tell their kernels apart. */
#define TGI_SUFFIXES(ENTRY, name)                                                                  \
    ENTRY(name, kk), ENTRY(name, kn), ENTRY(name, mk), ENTRY(name, mn), ENTRY(name, e4m3),         \
        ENTRY(name, e5m2), ENTRY(name, vv), ENTRY(name, vk), ENTRY(name, kv), ENTRY(name, pp),     \
        ENTRY(name, pk), ENTRY(name, kp), ENTRY(name, ss), ENTRY(name, sk), ENTRY(name, ks)
#define TGI_SUFFIX_ENTRY(name, suffix) #suffix
#define TGI_SYMBOL_ENTRY(name, suffix) name "_" #suffix

static const char *const suffixes[] = {TGI_SUFFIXES(TGI_SUFFIX_ENTRY, )};
enum { suffix_count = sizeof suffixes / sizeof suffixes[0] };

/* Of each row of the kernel table, in its order: a launch need not search for its row. */
static const char *const symbols[][suffix_count] = {
#define TGI_KERNEL(device, family, isa, type, rows, cols) {NULL},
#define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, thread_rows, thread_cols,     \
                        stages, threads)                                                           \
    {TGI_SUFFIXES(TGI_SYMBOL_ENTRY,                                                                \
                  TGI_QUOTE_VALUE(TGI_CUDA_NAME(family, isa, type, rows, cols, depth)))},
#include "core/kernels.def"
#undef TGI_KERNEL
#undef TGI_CUDA_KERNEL
};

const char *tgi_cuda_find_variant(const tgi_kernel *kernel, const char *suffix)
{
    const char *const *of_row = symbols[kernel - tgi_kernels_get(0)];
    for (int i = 0; i < suffix_count; i++)
        if (strcmp(suffixes[i], suffix) == 0)
            return of_row[i];
    return kernel->name;
}
