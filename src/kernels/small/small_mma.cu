/* Instantiates the kernels of family small on types of 16 bits, one for each row of kernels.def. */
#define TGI_LEAST_D_BYTES 2

#include "kernels/instances.cuh"
#include "kernels/small/small_mma.cuh"
#include "kernels/small/small_piece.cuh"
#include "kernels/small/small_shape.h"
#include "kernels/small/small_short.cuh"
#include "kernels/small/small_strip.cuh"

#define TGI_SMALL_MMA_KERNEL(name, type, rows, cols, depth, threads, has_pairs)                    \
    extern "C" __global__ void __launch_bounds__(threads, 512 / (threads))                         \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        typedef tgi_small_mma<TGI_TYPE_OF(type), rows, cols, threads, has_pairs> body;             \
        static_assert((depth) == body::stride &&                                                   \
                          body::warps * (rows)*body::pitch * 4 ==                                  \
                              TGI_SMALL_MMA_SHARED_BYTES(rows, cols, threads),                     \
                      "the row's tile is the kernel's");                                           \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_form_tiles<body>(tgi_grid_schedule<rows, cols, TGI_UNITS_SPLITS>(args), args,          \
                             reinterpret_cast<float *>(shared));                                   \
    }

/* Chips before Hopper have no kernel that loads pairs, which keeps images small. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
#define TGI_SMALL_MMA(name, ...) TGI_SMALL_MMA_KERNEL(name, __VA_ARGS__, 0)
#else
#define TGI_SMALL_MMA(name, ...)                                                                   \
    TGI_SMALL_MMA_KERNEL(name, __VA_ARGS__, 0)                                                     \
    TGI_SMALL_MMA_KERNEL(name##_pairs, __VA_ARGS__, 1)
#endif

TGI_SMALL_DIRECT(bf16)
TGI_SMALL_SHORT(short, bf16, TGI_TERMS_ASKED)
TGI_SMALL_PIECE_UNITS(bf16)
TGI_SMALL_PIECE(bf16)
TGI_SMALL_STRIP(bf16)
TGI_SMALL_DIRECT(fp16)
TGI_SMALL_SHORT(short, fp16, TGI_TERMS_ASKED)
TGI_SMALL_PIECE_UNITS(fp16)
TGI_SMALL_PIECE(fp16)
TGI_SMALL_STRIP(fp16)
TGI_SMALL_STRIP_FP8

/* The rows of FP8 are strips alone. */
#define TGI_SMALL_ROW_bf16 TGI_SMALL_MMA
#define TGI_SMALL_ROW_fp16 TGI_SMALL_MMA
#define TGI_SMALL_ROW_fp8_e4m3(...)
#define TGI_SMALL_ROW_fp8_e5m2(...)

#define TGI_IMAGE_small_mma TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_SMALL_ROW_##type(name, type, rows, cols, depth, threads)
#include "core/kernels.def"
