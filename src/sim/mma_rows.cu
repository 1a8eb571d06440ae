/*
 * Instantiates the rows of families mma, mma_bf16x and mma_fp16x for the simulator: a function for
 * each row of mma_rows.h, which takes the address of the kernel's argument, around the row's
 * kernel.
 */
#include "kernels/mma/mma.cuh"
#include "kernels/mma/mma_slices.cuh"
#include "sim/mma_rows.h"

/* The shared memory of a block: the most that sm_90 gives, which suffices any row. */
__shared__ char shared[227 << 10];

template <class Math, int Rows, int Cols, int Depth, int Thread_rows, int Thread_cols, int Stages,
          int Threads>
static void tgi_sim_run_mma(const tgi_gemm_args *args)
{
    tgi_mma_multiply<Math, Rows, Cols, Depth, 8 * Thread_rows, 4 * Thread_cols, Stages, Threads>(
        *args, tgi_shared_address(shared));
}

template <tg_type Type, int Room, int Rows, int Cols, int Depth, int Thread_rows, int Thread_cols,
          int Stages, int Threads>
static void tgi_sim_run_slices(const tgi_mma_slices_args *args)
{
    tgi_mma_multiply_slices<Type, Room, Rows, Cols, 8 * Thread_rows, 4 * Thread_cols, Stages,
                            Threads>(*args, tgi_shared_address(shared));
}

#define TGI_SIM_MMA(name, math, ...)                                                               \
    extern "C" void name(const tgi_gemm_args *args)                                                \
    {                                                                                              \
        tgi_sim_run_mma<math, __VA_ARGS__>(args);                                                  \
    }
#define TGI_SIM_mma_bf16(name, family, type, ...)                                                  \
    TGI_SIM_MMA(name, tgi_mma_16_bits<TGI_TYPE_OF(type)>, __VA_ARGS__)
#define TGI_SIM_mma_fp16 TGI_SIM_mma_bf16
#define TGI_SIM_mma_large_bf16 TGI_SIM_mma_bf16
#define TGI_SIM_mma_large_fp16 TGI_SIM_mma_bf16
#define TGI_SIM_mma_sm75 TGI_SIM_mma_bf16
#define TGI_SIM_mma_tf32(name, family, type, ...) TGI_SIM_MMA(name, tgi_mma_tf32, __VA_ARGS__)
#define TGI_SIM_mma_large_tf32 TGI_SIM_mma_tf32
#define TGI_SIM_mma_tf32_ahead(name, family, type, ...)                                            \
    TGI_SIM_MMA(name, tgi_mma_rounded_tf32, __VA_ARGS__)

/* A function of FP8 serves both types of B. */
#define TGI_SIM_FP8(name, math, type, ...)                                                         \
    extern "C" void name(const tgi_gemm_args *args)                                                \
    {                                                                                              \
        if (args->problem.b_type == TG_TYPE_FP8_E4M3)                                              \
            tgi_sim_run_mma<math<TGI_TYPE_OF(type), TG_TYPE_FP8_E4M3>, __VA_ARGS__>(args);         \
        else                                                                                       \
            tgi_sim_run_mma<math<TGI_TYPE_OF(type), TG_TYPE_FP8_E5M2>, __VA_ARGS__>(args);         \
    }
#define TGI_SIM_mma_fp8(name, family, type, ...) TGI_SIM_FP8(name, tgi_mma_fp8, type, __VA_ARGS__)
#define TGI_SIM_mma_wide_fp8(name, family, type, ...)                                              \
    TGI_SIM_FP8(name, tgi_mma_wide_fp8, type, __VA_ARGS__)

#define TGI_SIM_mma_fma(name, family, type, ...) TGI_SIM_FMA_##type(name, type, __VA_ARGS__)
#define TGI_SIM_FMA_bf16(name, type, ...)                                                          \
    TGI_SIM_MMA(name, TGI_SIM_FMA_MATH(TGI_TYPE_OF(type)), __VA_ARGS__)
#define TGI_SIM_FMA_MATH(type) tgi_mma_fma<type, type>
#define TGI_SIM_FMA_fp16 TGI_SIM_FMA_bf16
#define TGI_SIM_FMA_fp8_e4m3(name, type, ...) TGI_SIM_FP8(name, tgi_mma_fma, type, __VA_ARGS__)
#define TGI_SIM_FMA_fp8_e5m2 TGI_SIM_FMA_fp8_e4m3

#define TGI_SIM_mma_fp32(name, family, type, ...)                                                  \
    extern "C" void name(const tgi_mma_slices_args *args)                                          \
    {                                                                                              \
        tgi_sim_run_slices<TGI_SIM_SLICES_##family, __VA_ARGS__>(args);                            \
    }
#define TGI_SIM_mma_fp16x TGI_SIM_mma_fp32
#define TGI_SIM_SLICES_mma_bf16x TG_TYPE_BF16, 3
#define TGI_SIM_SLICES_mma_fp16x TG_TYPE_FP16, 2

#undef TGI_CUDA_ROW
#define TGI_CUDA_ROW(image, family, isa, type, b_types, sum, math, order, rows, cols, depth, ...)  \
    TGI_SIM_IF_ROW(image, TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth),               \
                   TGI_SIM_##image(TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth),      \
                                   family, type, rows, cols, depth, __VA_ARGS__))
#include "core/kernels.def"
