#include "core/kernels.h"

#include <string.h>

static const struct {
    const char *device, *name;
    unsigned features;
} isas[] = {
#define TGI_ISA(device, name, features) {#device, #name, features},
#include "core/isa.def"
#undef TGI_ISA
};

static const struct {
    const char *name;
    int rung;
    const char *idea;
} families[] = {
#define TGI_FAMILY(device, family, operation, rung, idea) {#family, rung, idea},
#include "core/kernels.def"
#undef TGI_FAMILY
};

static const tgi_kernel kernels[] = {
#define TGI_CPU_ROW(row_family, row_isa, row_type, row_b_types, row_sum, row_math, row_order,      \
                    rows, cols)                                                                    \
    {.name = "cpu_" #row_family "_" #row_isa "_" #row_type,                                        \
     .device = "cpu",                                                                              \
     .family_name = #row_family,                                                                   \
     .family = TGI_FAMILY_cpu_##row_family,                                                        \
     .operation = (tgi_operation)TGI_OPERATION_OF_cpu_##row_family,                                \
     .isa = TGI_ISA_##row_isa,                                                                     \
     .type = TGI_TYPE_OF(row_type),                                                                \
     .b_types = TGI_TYPES_##row_b_types,                                                           \
     .sum_type = TGI_TYPE_OF(row_sum),                                                             \
     .math = TGI_MATH_##row_math,                                                                  \
     .sum_order = TGI_SUM_##row_order,                                                             \
     .tile_rows = rows,                                                                            \
     .tile_cols = cols},
#define TGI_CUDA_ROW(...) TGI_CUDA_ROW_INIT(__VA_ARGS__),
#include "core/kernels.def"
#undef TGI_CPU_ROW
#undef TGI_CUDA_ROW
};

/* An array that its text fills would have no zero at its end. */
#define CHECK_TEXT(text, member)                                                                   \
    _Static_assert(sizeof text <= sizeof kernels[0].member, "a text of a row is too long");
#define TGI_CPU_ROW(row_family, row_isa, row_type, ...)                                            \
    CHECK_TEXT("cpu_" #row_family "_" #row_isa "_" #row_type, name)                                \
    CHECK_TEXT(#row_family, family_name)
#define TGI_CUDA_ROW(row_image, row_family, row_isa, row_type, b_types, sum, row_math, order,      \
                     rows, cols, depth, ...)                                                       \
    CHECK_TEXT(TGI_QUOTE_VALUE(                                                                    \
                   TGI_CUDA_NAME(row_family, row_isa, row_type, row_math, rows, cols, depth)),     \
               name)                                                                               \
    CHECK_TEXT(#row_family, family_name)                                                           \
    CHECK_TEXT(#row_image, image)
#include "core/kernels.def"
#undef TGI_CPU_ROW
#undef TGI_CUDA_ROW
#undef CHECK_TEXT

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

const char *tgi_kernels_family_name(tgi_family family)
{
    return families[family].name;
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

unsigned tgi_kernels_isa_features(tgi_isa isa)
{
    return isas[isa].features;
}

int tgi_kernels_isa_runs(tgi_isa isa, unsigned features)
{
    return (isas[isa].features & ~features) == 0;
}

tgi_isa tgi_kernels_last_isa(const char *device, unsigned features)
{
    int last = 0;
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++) {
        if (strcmp(isas[isa].device, device) == 0 && tgi_kernels_isa_runs((tgi_isa)isa, features))
            last = isa;
    }
    return (tgi_isa)last;
}

tgi_isa tgi_kernels_find_isa(const char *name)
{
    int isa = 0;
    while (isa < TGI_ISA_COUNT && strcmp(isas[isa].name, name) != 0)
        isa++;
    return (tgi_isa)isa;
}
