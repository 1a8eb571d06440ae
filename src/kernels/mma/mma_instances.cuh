/*
 * A row of kernels.def becomes four functions in the sources of family mma: NAME_kk, NAME_kn,
 * NAME_mk and NAME_mn. The first letter says whether A's lines run along k or m, the second whether
 * B's run along k or n. The last arguments of these macros are the math (mma_math.cuh).
 */
#ifndef TGI_MMA_INSTANCES_CUH
#define TGI_MMA_INSTANCES_CUH

#include "kernels/instances.cuh"
#include "kernels/mma/mma.cuh"

#define TGI_MMA(symbol, a_along_k, b_along_k, rows, cols, depth, thread_rows, thread_cols, stages, \
                threads, ...)                                                                      \
    typedef tgi_mma<__VA_ARGS__, rows, cols, depth, 8 * (thread_rows), 4 * (thread_cols), stages,  \
                    threads, a_along_k, b_along_k>                                                 \
        symbol##_body;                                                                             \
    extern "C" __global__ void __launch_bounds__(threads, symbol##_body::blocks_per_sm)            \
        symbol(const __grid_constant__ symbol##_body::argument args)                               \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        tgi_wait_for_stream();                                                                     \
        symbol##_body::multiply(args,                                                              \
                                tgi_block_schedule<rows, cols>(symbol##_body::find_gemm(args)),    \
                                tgi_shared_address(shared));                                       \
    }

/* A name that is a macro must be expanded before it is joined. */
#define TGI_MMA_ALONG(name, suffix, ...)                                                           \
    TGI_MMA(name##_kk##suffix, 1, 1, __VA_ARGS__)                                                  \
    TGI_MMA(name##_kn##suffix, 1, 0, __VA_ARGS__)
#define TGI_MMA_LAYOUTS(name, ...)                                                                 \
    TGI_MMA_ALONG(name, , __VA_ARGS__)                                                             \
    TGI_MMA(name##_mk, 0, 1, __VA_ARGS__)                                                          \
    TGI_MMA(name##_mn, 0, 0, __VA_ARGS__)

#define TGI_MMA_16_BITS(name, family, type, ...)                                                   \
    TGI_MMA_LAYOUTS(name, __VA_ARGS__, tgi_mma_16_bits<TGI_TYPE_OF(type)>)
#define TGI_MMA_TF32(name, family, type, ...) TGI_MMA_LAYOUTS(name, __VA_ARGS__, tgi_mma_tf32)
/* FP8 has A along k, and functions for each type of B: NAME_kk_e4m3, ... */
#define TGI_MMA_FP8(math, name, type, ...)                                                         \
    TGI_MMA_ALONG(name, _e4m3, __VA_ARGS__, math<TGI_TYPE_OF(type), TG_TYPE_FP8_E4M3>)             \
    TGI_MMA_ALONG(name, _e5m2, __VA_ARGS__, math<TGI_TYPE_OF(type), TG_TYPE_FP8_E5M2>)

#endif
