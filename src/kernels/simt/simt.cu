/*
 * Makes the kernels of family simt: for each row of kernels.def one function for each pair of ways
 * to copy A and B, NAME_<A><B> with the letters of copy/stage_copy.cuh. Copies by pairs (p) help if
 * the pitch is a multiple of 8 bytes but not of 16. They exist only on Hopper, and only for B
 * beside an A that is copied along k, as in a product of row-major matrices. Kernels for all cases
 * would add a third to the code.
 */
#define TGI_LEAST_D_BYTES 4

#include "kernels/instances.cuh"
#include "kernels/simt/simt.cuh"
#include "kernels/simt/simt_shape.h"

#define TGI_JOIN_MODES(name, a_mode, b_mode) name##_##a_mode##b_mode
#define TGI_MODES_NAME(name, a_mode, b_mode) TGI_JOIN_MODES(name, a_mode, b_mode)
#define TGI_SIMT(name, rows, cols, depth, thread_rows, thread_cols, stages, threads, a_mode,       \
                 b_mode)                                                                           \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads, TGI_SIMT_BLOCKS_PER_SM((thread_rows) * (thread_cols), threads))                   \
        TGI_MODES_NAME(name, a_mode, b_mode)(const __grid_constant__ tgi_gemm_args args)           \
    {                                                                                              \
        tgi_wait_for_stream();                                                                     \
        tgi_simt_multiply<rows, cols, depth, thread_rows, thread_cols, stages, threads,            \
                          TGI_COPY_##a_mode, TGI_COPY_##b_mode>(args);                             \
    }

#define TGI_SIMT_MODES(...)                                                                        \
    TGI_SIMT(__VA_ARGS__, v, v)                                                                    \
    TGI_SIMT(__VA_ARGS__, v, k)                                                                    \
    TGI_SIMT(__VA_ARGS__, k, v)                                                                    \
    TGI_SIMT(__VA_ARGS__, k, k)                                                                    \
    TGI_SIMT(__VA_ARGS__, s, s)                                                                    \
    TGI_SIMT(__VA_ARGS__, s, k)                                                                    \
    TGI_SIMT(__VA_ARGS__, k, s)

#define TGI_IMAGE_simt TGI_CHOSEN
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TGI_SIMT_PAIRS(...) TGI_SIMT(__VA_ARGS__, k, p)
#else
#define TGI_SIMT_PAIRS(...)
#endif
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_SIMT_MODES(name, rows, cols, depth, thread_rows, thread_cols, stages, threads)             \
    TGI_SIMT_PAIRS(name, rows, cols, depth, thread_rows, thread_cols, stages, threads)
#include "core/kernels.def"
