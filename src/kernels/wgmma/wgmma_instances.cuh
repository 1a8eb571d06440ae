/*
 * The kernels of one image of family wgmma: for each of its rows one for each way in which the
 * operands may lie, "_kk", "_kn", "_mk", "_mn", by the index along which A's and B's elements are
 * contiguous. FP8 has both along k, TF32 has B along k.
 */
#include "kernels/instances.cuh"
#include "kernels/wgmma/wgmma.cuh"

#define TGI_WGMMA_KERNEL(name, suffix, feed, a_type, b_type, rows, cols, cluster_rows, stages,     \
                         threads, across_a, across_b)                                              \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                       \
        name##suffix(const __grid_constant__ feed::arguments args)                                 \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        tgi_wgmma_multiply<tgi_wgmma_shape<a_type, b_type, rows, cols, cluster_rows, stages,       \
                                           threads, across_a, across_b, feed>>(args, shared);      \
    }

/* A name that is a macro must be expanded before it is joined. */
#define TGI_WGMMA_EXPAND(...) TGI_WGMMA_KERNEL(__VA_ARGS__)

#define TGI_WGMMA_16BIT(name, feed, type, ...)                                                     \
    TGI_WGMMA_EXPAND(name, _kk, feed, type, type, __VA_ARGS__, 0, 0)                               \
    TGI_WGMMA_EXPAND(name, _kn, feed, type, type, __VA_ARGS__, 0, 1)                               \
    TGI_WGMMA_EXPAND(name, _mk, feed, type, type, __VA_ARGS__, 1, 0)                               \
    TGI_WGMMA_EXPAND(name, _mn, feed, type, type, __VA_ARGS__, 1, 1)

#define TGI_WGMMA_TF32(name, type, ...)                                                            \
    TGI_WGMMA_EXPAND(name, _kk, tgi_feed_tma, type, type, __VA_ARGS__, 0, 0)                       \
    TGI_WGMMA_EXPAND(name, _mk, tgi_feed_transposed, type, type, __VA_ARGS__, 1, 0)
