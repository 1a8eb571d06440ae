#include "core/kernels.h"

#include <string.h>

static const char *const isa_names[] = {
#define TGI_ISA(name) #name,
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

/* The names' last word: the type in lower case, as tg_get_type_name has it. */
#define TYPE_WORD_FP32 "fp32"
#define TYPE_WORD_FP64 "fp64"
#define TYPE_WORD_BF16 "bf16"
#define TYPE_WORD_FP16 "fp16"

static const tgi_kernel kernels[] = {
#define TGI_KERNEL(device, family, isa, type, tile_rows, tile_cols)                                \
    {#device "_" #family "_" #isa "_" TYPE_WORD_##type,                                            \
     #device,                                                                                      \
     #family,                                                                                      \
     TGI_FAMILY_##device##_##family,                                                               \
     TGI_ISA_##isa,                                                                                \
     TG_TYPE_##type,                                                                               \
     tile_rows,                                                                                    \
     tile_cols},
#include "core/kernels.def"
#undef TGI_KERNEL
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
    return isa_names[isa];
}

tgi_isa tgi_kernels_find_isa(const char *name)
{
    int isa = 0;
    while (isa < TGI_ISA_COUNT && strcmp(isa_names[isa], name) != 0)
        isa++;
    return (tgi_isa)isa;
}
