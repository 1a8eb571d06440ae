#include "core/arch.h"

static const tgi_arch archs[] = {
#define TGI_ARCH(word, first, last, features, fp32, fp64, fp16_mma, bf16_mma, tf32_mma, fp8_mma,   \
                 int8_mma, fp64_mma, sm_kib, block_kib, threads, blocks, unit, reserve, pcie)      \
    {TGI_ARCH_##word, first,    last,    features, fp32,     fp64,   fp16_mma,                     \
     bf16_mma,        tf32_mma, fp8_mma, int8_mma, fp64_mma, sm_kib, block_kib,                    \
     threads,         blocks,   unit,    reserve,  pcie},
#include "core/arch.def"
#undef TGI_ARCH
};

const tgi_arch *tgi_arch_find(int capability)
{
    const tgi_arch *found = archs;
    while (found < archs + TGI_ARCH_COUNT - 1 && capability > found->last_capability)
        found++;
    return found;
}

int tgi_arch_has(int capability, unsigned feature)
{
    return (tgi_arch_find(capability)->features & feature) != 0;
}
