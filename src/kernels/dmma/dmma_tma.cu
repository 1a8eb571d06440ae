/* Instantiates the kernels of family dmma_tma, one for each row of kernels.def. */
#include "kernels/dmma/dmma_copied.cuh"
#include "kernels/dmma/dmma_tma.cuh"
#include "kernels/instances.cuh"

#define TGI_DMMA_TMA(name, rows, cols, depth, thread_rows, thread_cols, stages, threads)           \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads, TGI_DMMA_TMA_BLOCKS_PER_SM(thread_rows, thread_cols, threads))                    \
        name(const __grid_constant__ tgi_dmma_tma_args args)                                       \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        typedef tgi_dmma_tma_body<rows, cols, depth, 8 * (thread_rows), 4 * (thread_cols), stages, \
                                  threads>                                                         \
            body;                                                                                  \
        tgi_form_tiles<body>(tgi_grid_schedule<rows, cols, TGI_UNITS_ENTRIES>(args.gemm), args,    \
                             shared);                                                              \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads, TGI_DMMA_TMA_BLOCKS_PER_SM(thread_rows, thread_cols, threads))                    \
        name##_copied(const __grid_constant__ tgi_gemm_args args)                                  \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        typedef tgi_dmma_copied_body<rows, cols, depth, 8 * (thread_rows), 4 * (thread_cols),      \
                                     stages, threads>                                              \
            body;                                                                                  \
        tgi_form_tiles<body>(tgi_grid_schedule<rows, cols, TGI_UNITS_ENTRIES>(args), args,         \
                             shared);                                                              \
    }

#define TGI_IMAGE_dmma_tma TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_DMMA_TMA(name, rows, cols, depth, thread_rows, thread_cols, stages, threads)
#include "core/kernels.def"
