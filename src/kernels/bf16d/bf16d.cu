/* Instantiates the kernels of family bf16d, one for each row of kernels.def. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/bf16d/bf16d.cuh"
#include "kernels/instances.cuh"

#define TGI_BF16D_KERNEL(name, rows, cols, threads)                                                \
    extern "C" __global__ void __launch_bounds__(threads, TGI_BF16D_BLOCKS)                        \
        name(const __grid_constant__ tgi_bf16d_args args)                                          \
    {                                                                                              \
        typedef tgi_bf16d<cols, threads> body;                                                     \
        static_assert((rows) == TGI_BF16D_ROWS, "the row's tile is the kernel's");                 \
        extern __shared__ __align__(16) char shared[];                                             \
        tgi_wait_for_stream();                                                                     \
        tgi_form_tiles<body>(tgi_grid_schedule<rows, cols, TGI_UNITS_SPLITS>(args.gemm), args,     \
                             shared);                                                              \
    }

#define TGI_IMAGE_bf16d TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_BF16D_KERNEL(name, rows, cols, threads)
#include "core/kernels.def"
