/*
 * Makes one or four functions of a row of kernels.def, in the sources of family mma. The last
 * arguments of TGI_MMA and TGI_MMA_BODY are the math (mma_math.cuh).
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
        __VA_ARGS__                                                                                \
    }

#define TGI_MMA(name, rows, cols, depth, thread_rows, thread_cols, stages, threads, ...)           \
    static_assert(!TGI_MMA_HAS_BODIES_APART(thread_cols), "the launch calls one function");        \
    TGI_MMA_KERNEL(name, (thread_rows) * (thread_cols), threads,                                   \
                   tgi_mma_multiply<__VA_ARGS__, rows, cols, depth, 8 * (thread_rows),             \
                                    4 * (thread_cols), stages, threads>(args, place);)

/* Bodies of large tiles are separate kernels, because together they spill registers: NAME_kk,
 * NAME_kn, NAME_mk and NAME_mn. The first letter says whether A's lines run along k or m, the
 * second whether B's run along k or n. */
#define TGI_MMA_BODY(name, a_along_k, b_along_k, rows, cols, depth, thread_rows, thread_cols,      \
                     stages, threads, ...)                                                         \
    static_assert(TGI_MMA_HAS_BODIES_APART(thread_cols), "the launch calls one of four");          \
    TGI_MMA_KERNEL(                                                                                \
        name, (thread_rows) * (thread_cols), threads,                                              \
        tgi_mma_form<tgi_mma<__VA_ARGS__, rows, cols, depth, 8 * (thread_rows), 4 * (thread_cols), \
                             stages, threads, a_along_k, b_along_k>>(args, place);)
#define TGI_MMA_BODIES(name, ...)                                                                  \
    TGI_MMA_BODY(name##_kk, 1, 1, __VA_ARGS__)                                                     \
    TGI_MMA_BODY(name##_kn, 1, 0, __VA_ARGS__)                                                     \
    TGI_MMA_BODY(name##_mk, 0, 1, __VA_ARGS__)                                                     \
    TGI_MMA_BODY(name##_mn, 0, 0, __VA_ARGS__)
#define TGI_MMA_LARGE_16_BITS(name, family, type, ...)                                             \
    TGI_MMA_BODIES(name, __VA_ARGS__, tgi_mma_16_bits<TGI_TYPE_OF(type)>)

#define TGI_MMA_16_BITS(name, family, type, ...)                                                   \
    TGI_MMA(name, __VA_ARGS__, tgi_mma_16_bits<TGI_TYPE_OF(type)>)
#define TGI_MMA_TF32(name, family, type, ...) TGI_MMA(name, __VA_ARGS__, tgi_mma_tf32)
/* Copies of rounded operands have lines along k. */
#define TGI_MMA_TF32_AHEAD(name, family, type, ...)                                                \
    TGI_MMA_BODY(name##_kk, 1, 1, __VA_ARGS__, tgi_mma_rounded_tf32)
#define TGI_MMA_LARGE_TF32(name, family, type, ...) TGI_MMA_BODIES(name, __VA_ARGS__, tgi_mma_tf32)

/* A function of FP8 serves both types of B. */
#define TGI_MMA_FP8(math, name, type, rows, cols, depth, thread_rows, thread_cols, stages,         \
                    threads)                                                                       \
    TGI_MMA_KERNEL(                                                                                \
        name,                                                                                      \
        ((thread_rows) * (thread_cols) *                                                           \
         (1 + math<TGI_TYPE_OF(type), TG_TYPE_FP8_E4M3>::is_promoted)),                            \
        threads,                                                                                   \
        if (args.problem.b_type == TG_TYPE_FP8_E4M3)                                               \
            tgi_mma_multiply<math<TGI_TYPE_OF(type), TG_TYPE_FP8_E4M3>, rows, cols, depth,         \
                             8 * (thread_rows), 4 * (thread_cols), stages, threads>(args, place);  \
        else tgi_mma_multiply<math<TGI_TYPE_OF(type), TG_TYPE_FP8_E5M2>, rows, cols, depth,        \
                              8 * (thread_rows), 4 * (thread_cols), stages, threads>(args,         \
                                                                                     place);)

#endif
