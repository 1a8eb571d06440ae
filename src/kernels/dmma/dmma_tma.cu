/* Instantiates the kernels of family dmma_tma, one for each row of kernels.def. */
#include "kernels/dmma/dmma_copied.cuh"
#include "kernels/dmma/dmma_tma.cuh"
#include "kernels/instances.cuh"

#define TGI_DMMA_TMA_ONE(name, feed, args_type, gemm, rows, cols, depth, thread_rows, thread_cols, \
                         stages, threads)                                                          \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads, TGI_DMMA_TMA_BLOCKS_PER_SM(thread_rows, thread_cols, threads))                    \
        name(const __grid_constant__ args_type args)                                               \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        typedef feed<rows, cols, depth, 8 * (thread_rows), 4 * (thread_cols), stages, threads>     \
            own_feed;                                                                              \
        typedef tgi_dmma_fed<own_feed, rows, cols,                                                 \
                             (threads) * (thread_rows) * (thread_cols) / ((rows) * (cols)),        \
                             threads>                                                              \
            body;                                                                                  \
        tgi_form_tiles<body>(tgi_grid_schedule<rows, cols, TGI_UNITS_ENTRIES>(gemm), args,         \
                             shared);                                                              \
    }

#define TGI_DMMA_TMA(name, ...)                                                                    \
    TGI_DMMA_TMA_ONE(name, tgi_dmma_tma_feed, tgi_dmma_tma_args, args.gemm, __VA_ARGS__)           \
    TGI_DMMA_TMA_ONE(name##_copied, tgi_dmma_copied_feed, tgi_gemm_args, args, __VA_ARGS__)

#define TGI_IMAGE_dmma_tma TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_DMMA_TMA(name, rows, cols, depth, thread_rows, thread_cols, stages, threads)
#include "core/kernels.def"
