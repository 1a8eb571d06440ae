/*
 * Instantiates the kernels of attention, one for each row of the source's image in
 * attention_kernels.def, and the merge of splits. A source defines TGI_IMAGE_<image>, and calls
 * TGI_ATTEND_MERGE by type.
 */
#include "kernels/instances.cuh"
#include "core/types.h"
#include "kernels/attend/attend.cuh"
#include "kernels/attend/attend_merge.cuh"

#define TGI_ATTEND(name, type, queries, head, products, warps, keys, tiles, resident)              \
    extern "C" __global__ void __launch_bounds__(32 * warps, resident)                             \
        name(const __grid_constant__ tgi_attend_args args)                                         \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        tgi_attend_in_##products<TGI_TYPE_OF(type), head, warps, queries, keys, tiles>(args,       \
                                                                                       shared);    \
    }
#define TGI_ATTENTION_ROW(image, family, isa, type, queries, head, products, warps, keys, tiles,   \
                          resident)                                                                \
    TGI_ROW(image, isa,                                                                            \
            TGI_ATTEND(TGI_ATTENTION_NAME(family, isa, type, queries, head), type, queries, head,  \
                       products, warps, keys, tiles, resident))
#include "core/attention_kernels.def"
#undef TGI_ATTENTION_ROW

/* Defines the merge of splits for a type. */
#define TGI_ATTEND_MERGE(name, type)                                                               \
    extern "C" __global__ void __launch_bounds__(32 * TGI_ATTEND_MERGE_WARPS_MAX)                  \
        name(const __grid_constant__ tgi_attend_args args)                                         \
    {                                                                                              \
        tgi_attend_merge<type>(args);                                                              \
    }
