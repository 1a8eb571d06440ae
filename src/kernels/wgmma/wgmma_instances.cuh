/*
 * Makes the kernels of one image of family wgmma from its rows. A kernel serves two shapes
 * (wgmma.cuh). For 16-bit types a row has two kernels, "_k" and "_n", named by the index along
 * which B's elements are contiguous; A's lines may run along k or m. FP8 has both operands along k,
 * and a kernel serves both types of B. TF32 has B along k.
 */
#include "kernels/instances.cuh"
#include "kernels/wgmma/wgmma.cuh"

#define TGI_WGMMA_KERNEL(name, suffix, feed, threads, ...)                                         \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                       \
        name##suffix(const __grid_constant__ feed::arguments args)                                 \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        tgi_wgmma_multiply<__VA_ARGS__>(args, shared);                                             \
    }

#define TGI_WGMMA_SHAPE(feed, a_type, b_type, across_a, across_b, rows, cols, cluster_rows,        \
                        stages, threads)                                                           \
    tgi_wgmma_shape<a_type, b_type, rows, cols, cluster_rows, stages, threads, across_a, across_b, \
                    feed>

/* A kernel for lines of A along k, by one feed, and across k, by another one. */
#define TGI_WGMMA_BOTH_A(name, suffix, feed, across_feed, type, across_b, rows, cols,              \
                         cluster_rows, stages, threads)                                            \
    TGI_WGMMA_KERNEL(                                                                              \
        name, suffix, feed, threads,                                                               \
        TGI_WGMMA_SHAPE(feed, type, type, 0, across_b, rows, cols, cluster_rows, stages, threads), \
        TGI_WGMMA_SHAPE(across_feed, type, type, 1, across_b, rows, cols, cluster_rows, stages,    \
                        threads))

#define TGI_WGMMA_16BIT(name, feed, type, ...)                                                     \
    TGI_WGMMA_BOTH_A(name, _k, feed, feed, type, 0, __VA_ARGS__)                                   \
    TGI_WGMMA_BOTH_A(name, _n, feed, feed, type, 1, __VA_ARGS__)
