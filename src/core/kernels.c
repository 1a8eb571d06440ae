#include "core/kernels.h"

#include <string.h>

#include "core/kernel_name.h"

static const struct {
    const char *device, *name;
} isas[] = {
#define TGI_ISA(device, name) {#device, #name},
#include "core/isa.def"
#undef TGI_ISA
};

static const struct {
    int rung;
    const char *idea;
} families[] = {
#define TGI_FAMILY(device, family, rung, idea) {rung, idea},
#include "core/kernels.def"
#undef TGI_FAMILY
};

static const tgi_kernel kernels[] = {
#define TGI_KERNEL(row_device, row_family, row_isa, row_type, rows, cols)                          \
    {.name =                                                                                       \
         #row_device "_" #row_family "_" #row_isa "_" TGI_QUOTE_VALUE(TGI_TYPE_WORD_##row_type),   \
     .device = #row_device,                                                                        \
     .family_name = #row_family,                                                                   \
     .family = TGI_FAMILY_##row_device##_##row_family,                                             \
     .isa = TGI_ISA_##row_isa,                                                                     \
     .type = TG_TYPE_##row_type,                                                                   \
     .tile_rows = rows,                                                                            \
     .tile_cols = cols},
#define TGI_CUDA_KERNEL(row_image, row_family, row_isa, row_type, rows, cols, depth, per_rows,     \
                        per_cols, stages, threads)                                                 \
    {.name = TGI_QUOTE_VALUE(TGI_CUDA_NAME(row_family, row_isa, row_type, rows, cols, depth)),     \
     .device = "cuda",                                                                             \
     .family_name = #row_family,                                                                   \
     .family = TGI_FAMILY_cuda_##row_family,                                                       \
     .isa = TGI_ISA_##row_isa,                                                                     \
     .type = TG_TYPE_##row_type,                                                                   \
     .tile_rows = rows,                                                                            \
     .tile_cols = cols,                                                                            \
     .image = #row_image,                                                                          \
     .tile_depth = depth,                                                                          \
     .thread_rows = per_rows,                                                                      \
     .thread_cols = per_cols,                                                                      \
     .stage_count = stages,                                                                        \
     .thread_count = threads},
#include "core/kernels.def"
#undef TGI_KERNEL
#undef TGI_CUDA_KERNEL
};

int tgi_kernels_count(void)
{
    return (int)(sizeof kernels / sizeof kernels[0]);
}

const tgi_kernel *tgi_kernels_get(int index)
{
    return &kernels[index];
}

int tgi_kernels_match(const tgi_kernel *kernel, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < tgi_kernels_count(); i++) {
        if (strcmp(kernels[i].name, name) == 0)
            return kernel == &kernels[i];
    }
    return strncmp(kernel->name, name, length) == 0 &&
           (kernel->name[length] == '\0' || kernel->name[length] == '_');
}

int tgi_kernels_rung(tgi_family family)
{
    return families[family].rung;
}

const char *tgi_kernels_idea(tgi_family family)
{
    return families[family].idea;
}

const char *tgi_kernels_isa_name(tgi_isa isa)
{
    return isas[isa].name;
}

const char *tgi_kernels_isa_device(tgi_isa isa)
{
    return isas[isa].device;
}

tgi_isa tgi_kernels_find_isa(const char *name)
{
    int isa = 0;
    while (isa < TGI_ISA_COUNT && strcmp(isas[isa].name, name) != 0)
        isa++;
    return (tgi_isa)isa;
}
