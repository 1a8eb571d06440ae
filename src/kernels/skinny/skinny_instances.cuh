/* A row of kernels.def becomes a kernel of family dot or rank. */
#ifndef TGI_SKINNY_INSTANCES_CUH
#define TGI_SKINNY_INSTANCES_CUH

#include "kernels/instances.cuh"
#include "kernels/skinny/skinny_shape.h"
#include "kernels/skinny/fma.cuh"
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#include "kernels/skinny/dot_mma.cuh"
#include "kernels/skinny/rank_mma.cuh"
#endif

#define TGI_ALONG_K_dot 1
#define TGI_ALONG_K_rank 0

/* The body of each family and type. */
#define TGI_FMA(along_k, elem, rows, cols, depth, thread_rows, thread_cols, stages, threads)       \
    tgi_skinny_kernel<tgi_skinny_fma<elem, along_k, rows, cols, depth, thread_rows, thread_cols,   \
                                     stages, threads>>
#define TGI_MMA_dot(type, rows, cols, depth, thread_rows, thread_cols, stages, threads)            \
    tgi_dot_mma<type, rows, cols, depth, threads>
#define TGI_MMA_rank(type, rows, cols, depth, thread_rows, thread_cols, stages, threads)           \
    tgi_skinny_kernel<tgi_rank_mma<type, rows, cols, depth, stages, threads>>
#define TGI_BODY_fp32(family, ...) TGI_FMA(TGI_ALONG_K_##family, float, __VA_ARGS__)
#define TGI_BODY_fp64(family, ...) TGI_FMA(TGI_ALONG_K_##family, double, __VA_ARGS__)
#define TGI_BODY_bf16(family, ...) TGI_MMA_##family(TG_TYPE_BF16, __VA_ARGS__)
#define TGI_BODY_fp16(family, ...) TGI_MMA_##family(TG_TYPE_FP16, __VA_ARGS__)
#define TGI_BODY_fp8_e4m3(family, ...) TGI_MMA_##family(TG_TYPE_FP8_E4M3, __VA_ARGS__)
#define TGI_BODY_fp8_e5m2(family, ...) TGI_MMA_##family(TG_TYPE_FP8_E5M2, __VA_ARGS__)

/* The shared memory of a block. */
#define TGI_SKINNY_BYTES(family, type, rows, cols, depth, thread_rows, thread_cols, stages,        \
                         threads)                                                                  \
    TGI_SKINNY_SHARED_BYTES(                                                                       \
        TGI_ALONG_K_##family,                                                                      \
        TGI_SKINNY_IS_TEAM(TGI_ALONG_K_##family, rows, cols, thread_rows, thread_cols, threads),   \
        rows, cols, depth, stages, threads, TGI_BYTES_##type)

/* After `threads` come the columns of the row from `rows` to `threads`. */
#define TGI_SKINNY(name, family, type, rows, threads, ...)                                         \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads,                                                                                   \
        TGI_SKINNY_BLOCKS_PER_SM(TGI_ALONG_K_##family, rows,                                       \
                                 TGI_SKINNY_BYTES(family, type, __VA_ARGS__), TGI_BYTES_##type))   \
        name(const __grid_constant__ TGI_BODY_##type(family, __VA_ARGS__)::arguments args)         \
    {                                                                                              \
        typedef TGI_BODY_##type(family, __VA_ARGS__) body;                                         \
        static_assert(body::shared_bytes == TGI_SKINNY_BYTES(family, type, __VA_ARGS__),           \
                      "the row's tile is the kernel's");                                           \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_wait_for_stream();                                                                     \
        body::form(args, shared);                                                                  \
    }

#endif
