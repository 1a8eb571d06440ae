#include "core/arch.h"

#include <string.h>

static const tgi_arch archs[] = {
#define TGI_ARCH(word, first, last, features, ...)                                                 \
    {TGI_ARCH_##word, first, last, features, __VA_ARGS__},
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

double tgi_arch_find_fp64_share(int capability, double ratio)
{
    const tgi_arch *arch = tgi_arch_find(capability);
    const double most = arch->fp32_lanes / (double)arch->fp64_lanes;
    return ratio > most ? most / ratio : 1.0;
}

double tgi_arch_find_mma_share(int capability, const char *board_name)
{
    const char *word = tgi_arch_find(capability)->half_rate_boards;
    return word[0] && strstr(board_name, word) ? 0.5 : 1.0;
}
