/*
 * The kernels of one image of family wgmma: for each of its rows one for each way in which the
 * operands may lie, "_kk", "_kn", "_mk", "_mn", by the index along which A's and B's elements are
 * contiguous. Of FP8 both lie along k, of TF32 B does.
 */
#include "kernels/instances.cuh"
#include "kernels/wgmma/wgmma.cuh"

#define TGI_WGMMA_KERNEL(name, suffix, a_type, b_type, rows, cols, cluster_rows, stages, threads,  \
                         across_a, across_b, ...)                                                  \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                       \
        name##suffix(const __grid_constant__ tgi_wgmma_args args)                                  \
    {                                                                                              \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_wgmma_multiply<                                                                        \
            tgi_wgmma_shape<a_type, b_type, rows, cols, cluster_rows, stages, threads, across_a,   \
                            across_b __VA_OPT__(, ) __VA_ARGS__>>(args, nullptr, shared);          \
    }

#define TGI_LOOSE_KERNEL(name, suffix, type, rows, cols, cluster_rows, stages, threads, across_a,  \
                         across_b)                                                                 \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                       \
        name##suffix(const __grid_constant__ tgi_loose_args args)                                  \
    {                                                                                              \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_wgmma_multiply<tgi_wgmma_shape<type, type, rows, cols, cluster_rows, stages, threads,  \
                                           across_a, across_b, 0, 0, 1>>(args.wgmma, &args.loose,  \
                                                                         shared);                  \
    }

/* A name that is a macro must be expanded before it is joined. */
#define TGI_WGMMA_EXPAND(...) TGI_WGMMA_KERNEL(__VA_ARGS__)

#define TGI_WGMMA_16BIT(name, type, ...)                                                           \
    TGI_WGMMA_EXPAND(name, _kk, type, type, __VA_ARGS__, 0, 0)                                     \
    TGI_WGMMA_EXPAND(name, _kn, type, type, __VA_ARGS__, 0, 1)                                     \
    TGI_WGMMA_EXPAND(name, _mk, type, type, __VA_ARGS__, 1, 0)                                     \
    TGI_WGMMA_EXPAND(name, _mn, type, type, __VA_ARGS__, 1, 1)

#define TGI_LOOSE_EXPAND(...) TGI_LOOSE_KERNEL(__VA_ARGS__)

#define TGI_LOOSE_16BIT(name, ...)                                                                 \
    TGI_LOOSE_EXPAND(name, _kk, __VA_ARGS__, 0, 0)                                                 \
    TGI_LOOSE_EXPAND(name, _kn, __VA_ARGS__, 0, 1)                                                 \
    TGI_LOOSE_EXPAND(name, _mk, __VA_ARGS__, 1, 0)                                                 \
    TGI_LOOSE_EXPAND(name, _mn, __VA_ARGS__, 1, 1)

#define TGI_WGMMA_TF32(name, type, ...)                                                            \
    TGI_WGMMA_EXPAND(name, _kk, type, type, __VA_ARGS__, 0, 0)                                     \
    TGI_WGMMA_EXPAND(name, _mk, type, type, __VA_ARGS__, 1, 0)
