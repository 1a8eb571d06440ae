/*
 * A row of kernels.def becomes four functions in the sources of family mma: NAME_kk, NAME_kn,
 * NAME_mk and NAME_mn. The first letter says whether A's lines run along k or m, the second whether
 * B's run along k or n.
 */
#ifndef TGI_MMA_INSTANCES_CUH
#define TGI_MMA_INSTANCES_CUH

#include "kernels/instances.cuh"
#include "kernels/mma/mma.cuh"

#define TGI_MMA(symbol, type, rows, cols, depth, thread_rows, thread_cols, stages, threads,        \
                a_along_k, b_along_k)                                                              \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads, TGI_MMA_BLOCKS_PER_SM((thread_rows) * (thread_cols), threads))                    \
        symbol(const __grid_constant__ tgi_gemm_args args)                                         \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        tgi_wait_for_stream();                                                                     \
        tgi_mma<TGI_TYPE_OF(type), rows, cols, depth, 8 * (thread_rows), 4 * (thread_cols),        \
                stages, threads, a_along_k, b_along_k>::multiply(args,                             \
                                                                 tgi_block_schedule<rows, cols>(   \
                                                                     args),                        \
                                                                 tgi_shared_address(shared));      \
    }

#define TGI_MMA_LAYOUTS(name, ...)                                                                 \
    TGI_MMA(name##_kk, __VA_ARGS__, 1, 1)                                                          \
    TGI_MMA(name##_kn, __VA_ARGS__, 1, 0)                                                          \
    TGI_MMA(name##_mk, __VA_ARGS__, 0, 1)                                                          \
    TGI_MMA(name##_mn, __VA_ARGS__, 0, 0)

#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_MMA_LAYOUTS(name, type, rows, cols, depth, thread_rows, thread_cols, stages, threads)

#endif
