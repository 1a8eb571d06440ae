#include "cuda/variants.h"

#include <string.h>

#include "core/kernel_name.h"

const char *tgi_cuda_find_variant(const tgi_kernel *kernel, const char *suffix)
{
    static const char *const symbols[] = {
#define TGI_WITH_SUFFIXES(name)                                                                    \
    name "_kk", name "_kn", name "_mk", name "_mn", name "_e4m3", name "_e5m2", name "_vv",        \
        name "_vk", name "_kv", name "_pp", name "_pk", name "_kp", name "_ss", name "_sk",        \
        name "_ks",
#define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, thread_rows, thread_cols,     \
                        stages, threads)                                                           \
    TGI_WITH_SUFFIXES(TGI_QUOTE_VALUE(TGI_CUDA_NAME(family, isa, type, rows, cols, depth)))
#include "core/kernels.def"
#undef TGI_CUDA_KERNEL
    };
    const size_t length = strlen(kernel->name);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (strncmp(symbols[i], kernel->name, length) == 0 && symbols[i][length] == '_' &&
            strcmp(symbols[i] + length + 1, suffix) == 0)
            return symbols[i];
    return kernel->name;
}
