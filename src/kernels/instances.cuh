/*
 * Instances of a device source from its rows of kernels.def. A source vector.cu, image vector:
 *
 *     #define TGI_IMAGE_vector TGI_CHOSEN
 *     #define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, thread_rows,
 *                             thread_cols, stages, threads)
 *         TGI_ROW(image, isa,
 *                 extern "C" __global__ void TGI_CUDA_NAME(family, isa, type, rows, cols, depth)(
 *                     const float *a, const float *b, float *d, int m, int n, int k)
 *                 { multiply<rows, cols, depth>(a, b, d, m, n, k); })
 *     #include "core/kernels.def"
 *
 * TGI_ROW gives its last argument for the rows of the chosen image whose instruction set the chip
 * that is compiled for has, and nothing for the others.
 */
#ifndef TGI_ROWS_CUH
#define TGI_ROWS_CUH

#include "core/kernel_name.h"

/* A name defined as TGI_CHOSEN brings an argument of its own, so that 1 is the second; an undefined
 * name is a single argument, and 0 is the second. */
#define TGI_CHOSEN ~, 1
#define TGI_SECOND(first, second, ...) second
#define TGI_IS_CHOSEN(...) TGI_SECOND(__VA_ARGS__, 0, )

#define TGI_KEEP_00(...)
#define TGI_KEEP_01(...)
#define TGI_KEEP_10(...)
#define TGI_KEEP_11(...) __VA_ARGS__
#define TGI_JOIN_KEEP(is_image, is_isa) TGI_KEEP_##is_image##is_isa
#define TGI_KEEP(is_image, is_isa) TGI_JOIN_KEEP(is_image, is_isa)
#define TGI_ROW(image, isa, ...)                                                                   \
    TGI_KEEP(TGI_IS_CHOSEN(TGI_IMAGE_##image), TGI_IS_CHOSEN(TGI_HAS_##isa))(__VA_ARGS__)

/* Instruction sets of isa.def that the chip has which this pass compiles for. */
#if defined(__CUDA_ARCH__)
#define TGI_HAS_sm75 TGI_CHOSEN
#if __CUDA_ARCH__ >= 800
#define TGI_HAS_sm80 TGI_CHOSEN
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TGI_HAS_sm90a TGI_CHOSEN
#endif
#endif

#endif
