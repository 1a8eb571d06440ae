/* Instantiates the kernels of family small, one for each row of kernels.def. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/instances.cuh"
#include "kernels/small/small_shape.h"
#include "kernels/small/small.cuh"
#include "kernels/small/small_piece.cuh"
#include "kernels/small/small_short.cuh"

#define TGI_ELEM_fp32 float
#define TGI_ELEM_fp64 double

#define TGI_SMALL(name, elem, rows, cols, depth, thread_rows, thread_cols, stages, threads)        \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        typedef tgi_small<elem, rows, cols, depth, thread_rows, thread_cols, stages, threads, 1,   \
                          1>                                                                       \
            largest;                                                                               \
        static_assert(                                                                             \
            largest::warps * stages * sizeof(largest::shared_step) ==                              \
                TGI_SMALL_SHARED_BYTES(rows, cols, depth, stages, threads, sizeof(elem)),          \
            "the host counts what lies there");                                                    \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_wait_for_stream();                                                                     \
        tgi_small_multiply<elem, rows, cols, depth, thread_rows, thread_cols, stages, threads>(    \
            args, shared);                                                                         \
    }

TGI_SMALL_DIRECT(fp32)
TGI_SMALL_SHORT(short, fp32, TGI_TERMS_ASKED)
TGI_SMALL_PIECE(fp32)
TGI_SMALL_DIRECT(fp64)
TGI_SMALL_SHORT(short, fp64, TGI_TERMS_NONE)
TGI_SMALL_SHORT(short_terms, fp64, TGI_TERMS_SIMPLE)
TGI_SMALL_PIECE(fp64)
TGI_SMALL_PIECE_TERMS(fp64)

#define TGI_IMAGE_small TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_SMALL(name, TGI_ELEM_##type, rows, cols, depth, thread_rows, thread_cols, stages, threads)
#include "core/kernels.def"
