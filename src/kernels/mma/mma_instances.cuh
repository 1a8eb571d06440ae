/*
 * A row of kernels.def becomes a function of the sources of family mma. The last arguments of
 * TGI_MMA are the math (mma_math.cuh).
 */
#ifndef TGI_MMA_INSTANCES_CUH
#define TGI_MMA_INSTANCES_CUH

#include "kernels/instances.cuh"
#include "kernels/mma/mma.cuh"

#define TGI_MMA_KERNEL(name, sums, threads, ...)                                                   \
    extern "C" __global__ void __launch_bounds__(threads, TGI_MMA_BLOCKS_PER_SM(sums, threads))    \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        const uint32_t place = tgi_shared_address(shared);                                         \
        tgi_wait_for_stream();                                                                     \
        __VA_ARGS__                                                                                \
    }

#define TGI_MMA(name, rows, cols, depth, thread_rows, thread_cols, stages, threads, ...)           \
    TGI_MMA_KERNEL(name, (thread_rows) * (thread_cols), threads,                                   \
                   tgi_mma_multiply<__VA_ARGS__, rows, cols, depth, 8 * (thread_rows),             \
                                    4 * (thread_cols), stages, threads>(args, place);)

#define TGI_MMA_16_BITS(name, family, type, ...)                                                   \
    TGI_MMA(name, __VA_ARGS__, tgi_mma_16_bits<TGI_TYPE_OF(type)>)
#define TGI_MMA_TF32(name, family, type, ...) TGI_MMA(name, __VA_ARGS__, tgi_mma_tf32)

/* A function of FP8 serves both types of B. */
#define TGI_MMA_FP8(math, name, type, rows, cols, depth, thread_rows, thread_cols, stages,         \
                    threads)                                                                       \
    TGI_MMA_KERNEL(name, ((thread_rows) * (thread_cols) *                                         \
                          (1 + math<TGI_TYPE_OF(type), TG_TYPE_FP8_E4M3>::is_promoted)),           \
                   threads,                                                                        \
                   if (args.problem.b_type == TG_TYPE_FP8_E4M3)                                    \
                       tgi_mma_multiply<math<TGI_TYPE_OF(type), TG_TYPE_FP8_E4M3>, rows, cols,     \
                                        depth, 8 * (thread_rows), 4 * (thread_cols), stages,       \
                                        threads>(args, place);                                     \
                   else tgi_mma_multiply<math<TGI_TYPE_OF(type), TG_TYPE_FP8_E5M2>, rows, cols,    \
                                         depth, 8 * (thread_rows), 4 * (thread_cols), stages,      \
                                         threads>(args, place);)

#endif
