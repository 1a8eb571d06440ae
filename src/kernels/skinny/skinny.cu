/* The kernels of families dot and rank, one for each row of kernels.def. */
#include "kernels/rows.cuh"
#include "kernels/tile_shape.h"
#include "kernels/skinny/skinny.cuh"

#define TGI_ALONG_K_dot 1
#define TGI_ALONG_K_rank 0
#define TGI_ELEM_FP32 float
#define TGI_ELEM_FP64 double

#define TGI_SKINNY(name, along_k, elem, tile_rows, tile_cols, tile_depth, thread_cols, stages,     \
                   threads)                                                                        \
    extern "C" __global__ void __launch_bounds__(threads, TGI_SKINNY_BLOCKS_PER_SM(tile_rows))     \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        typedef tgi_skinny<elem, along_k, tile_rows, tile_cols, tile_depth, thread_cols, stages,   \
                           threads>                                                                \
            body;                                                                                  \
        static_assert(sizeof(body::shared_all) ==                                                  \
                          TGI_SKINNY_SHARED_BYTES(along_k, tile_rows, tile_cols, tile_depth,       \
                                                  stages, threads, sizeof(elem)),                  \
                      "the row's tile is the kernel's");                                           \
        extern __shared__ __align__(128) char shared[];                                            \
        body::multiply(args, shared);                                                              \
    }

#define TGI_IMAGE_skinny TGI_CHOSEN
#define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, thread_rows, thread_cols,     \
                        stages, threads)                                                           \
    TGI_ROW(image, isa,                                                                            \
            TGI_SKINNY(TGI_CUDA_NAME(family, isa, type, rows, cols, depth), TGI_ALONG_K_##family,  \
                       TGI_ELEM_##type, rows, cols, depth, thread_cols, stages, threads))
#include "core/kernels.def"
