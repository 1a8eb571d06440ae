/*
 * Makes the kernels of a device source from its rows of kernels.def. A source vector.cu, which is
 * image vector, defines the kernel of a row:
 *
 *     #define TGI_IMAGE_vector TGI_CHOSEN
 *     #define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,
 *                          threads)
 *         extern "C" __global__ void name(const float *a, const float *b, float *d, int m, int n,
 *                                         int k)
 *         { multiply<rows, cols, depth>(a, b, d, m, n, k); }
 *     #include "core/kernels.def"
 *
 * Rows of other images, and rows whose instruction set this compilation lacks, become
 * nothing. `type` is the word of A's type; TGI_TYPE_OF(type) is its enumerator.
 */
#ifndef TGI_INSTANCES_CUH
#define TGI_INSTANCES_CUH

#include "core/kernel_name.h"

#define TGI_CUDA_ROW(image, family, isa, type, b_types, sum, math, order, rows, cols, depth,       \
                     thread_rows, thread_cols, stages, threads)                                    \
    TGI_ROW(image, isa,                                                                            \
            TGI_INSTANCE(TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth), family, type,  \
                         rows, cols, depth, thread_rows, thread_cols, stages, threads))

/* TGI_ROW gives its last argument for rows of a chosen image and a present instruction set. A name
 * that is defined as TGI_CHOSEN brings an argument of its own, so that 1 is the second argument; an
 * undefined name is a single argument, and 0 is the second. */
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

/* The instruction sets of isa.def that this compilation is for. */
#if defined(__CUDA_ARCH__)
#define TGI_HAS_sm75 TGI_CHOSEN
#if __CUDA_ARCH__ >= 800
#define TGI_HAS_sm80 TGI_CHOSEN
#endif
#if __CUDA_ARCH__ >= 890
#define TGI_HAS_sm89 TGI_CHOSEN
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TGI_HAS_sm90a TGI_CHOSEN
#endif
#endif

#endif
