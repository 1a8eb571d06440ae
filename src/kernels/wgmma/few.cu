/* Instantiates the kernels of family few for BF16 and FP16. */
#define TGI_LEAST_D_BYTES 2

#include "kernels/wgmma/wgmma_instances.cuh"

/* Tiles of 64 rows have few enough registers for two blocks on a multiprocessor. */
#define TGI_FEW_KERNEL(name, suffix, type, across_b, rows, ...)                                    \
    extern "C" __global__ void __launch_bounds__((rows) == 64 ? 256 : 384, (rows) == 64 ? 2 : 1)   \
        name##suffix(const __grid_constant__ tgi_feed_few::arguments args)                         \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        typedef TGI_WGMMA_SHAPE(tgi_feed_few, type, type, 0, across_b, rows, __VA_ARGS__) along;   \
        typedef TGI_WGMMA_SHAPE(tgi_feed_few, type, type, 1, across_b, rows, __VA_ARGS__) across;  \
        tgi_wgmma_multiply<along, across>(args, shared);                                           \
    }

#define TGI_FEW(name, type, ...)                                                                   \
    TGI_FEW_KERNEL(name, _k, type, 0, __VA_ARGS__)                                                 \
    TGI_FEW_KERNEL(name, _n, type, 1, __VA_ARGS__)

#define TGI_IMAGE_few TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_FEW(name, TGI_TYPE_OF(type), rows, cols, thread_rows, stages, threads)
#include "core/kernels.def"
