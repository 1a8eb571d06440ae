/* Instantiates the kernels of family dmma, one for each row of kernels.def. */
#include "kernels/instances.cuh"
#include "kernels/dmma/dmma_shape.h"
#include "kernels/dmma/dmma.cuh"

#define TGI_DMMA(name, rows, cols, depth, thread_rows, thread_cols, stages, threads)               \
    extern "C" __global__ void __launch_bounds__(threads,                                          \
                                                 TGI_DMMA_BLOCKS_PER_SM(thread_rows, thread_cols)) \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_wait_for_stream();                                                                     \
        tgi_dmma_multiply<rows, cols, depth, 8 * (thread_rows), 4 * (thread_cols), stages,         \
                          threads>(args, shared);                                                  \
    }

#define TGI_IMAGE_dmma TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_DMMA(name, rows, cols, depth, thread_rows, thread_cols, stages, threads)
#include "core/kernels.def"
