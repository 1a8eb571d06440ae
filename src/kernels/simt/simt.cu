/*
 * The kernels of family simt: for each row of kernels.def one function for each pair of ways to
 * copy A and B, NAME_<A><B> with the letters of copy.cuh, and for all rows one that adds parts.
 */
#include "kernels/rows.cuh"
#include "kernels/simt/finish.cuh"
#include "kernels/simt/tile.cuh"

/* Blocks that a multiprocessor's registers hold, with those that a thread of so many sums needs. */
#define TGI_THREAD_REGISTERS(sums) ((sums) > 96 ? 256 : (sums) > 64 ? 168 : 128)
#define TGI_MIN_BLOCKS(sums, threads) (65536 / TGI_THREAD_REGISTERS(sums) / (threads))

#define TGI_JOIN_MODES(name, a_mode, b_mode) name##_##a_mode##b_mode
#define TGI_MODES_NAME(name, a_mode, b_mode) TGI_JOIN_MODES(name, a_mode, b_mode)
#define TGI_SIMT(name, rows, cols, depth, thread_rows, thread_cols, stages, threads, a_mode,       \
                 b_mode)                                                                           \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads, TGI_MIN_BLOCKS((thread_rows) * (thread_cols), threads))                           \
        TGI_MODES_NAME(name, a_mode, b_mode)(const __grid_constant__ tgi_gemm_args args)           \
    {                                                                                              \
        multiply<rows, cols, depth, thread_rows, thread_cols, stages, threads, TGI_COPY_##a_mode,  \
                 TGI_COPY_##b_mode>(args);                                                         \
    }

#define TGI_SIMT_MODES(...)                                                                        \
    TGI_SIMT(__VA_ARGS__, v, v)                                                                    \
    TGI_SIMT(__VA_ARGS__, v, k)                                                                    \
    TGI_SIMT(__VA_ARGS__, k, v)                                                                    \
    TGI_SIMT(__VA_ARGS__, k, k)                                                                    \
    TGI_SIMT(__VA_ARGS__, p, p)                                                                    \
    TGI_SIMT(__VA_ARGS__, p, k)                                                                    \
    TGI_SIMT(__VA_ARGS__, k, p)                                                                    \
    TGI_SIMT(__VA_ARGS__, s, s)                                                                    \
    TGI_SIMT(__VA_ARGS__, s, k)                                                                    \
    TGI_SIMT(__VA_ARGS__, k, s)

#define TGI_IMAGE_simt TGI_CHOSEN
#define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, thread_rows, thread_cols,     \
                        stages, threads)                                                           \
    TGI_ROW(image, isa,                                                                            \
            TGI_SIMT_MODES(TGI_CUDA_NAME(family, isa, type, rows, cols, depth), rows, cols, depth, \
                           thread_rows, thread_cols, stages, threads))
#include "core/kernels.def"

extern "C" __global__ void __launch_bounds__(TGI_FINISH_COLS *TGI_FINISH_ROWS_MAX)
    cuda_simt_finish(const __grid_constant__ tgi_gemm_args args)
{
    finish(args);
}
