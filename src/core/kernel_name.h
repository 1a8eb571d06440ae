/*
 * Makes the name of a CUDA row of kernels.def as a token, which is its symbol in device code, and
 * as text, which is the name of the kernel. It compiles as C11 and CUDA.
 */
#ifndef TGI_KERNEL_NAME_H
#define TGI_KERNEL_NAME_H

/* The word in a name for the operands: the type of A, tf32, or fp32w. */
#define TGI_WORD_fma(type) type
#define TGI_WORD_mma(type) type
#define TGI_WORD_fp64(type) fp32w
#define TGI_WORD_tf32(type) tf32
#define TGI_WORD_bf16x(type) type
#define TGI_WORD_fp16x(type) type

#define TGI_JOIN_NAME(family, isa, word, rows, cols, depth)                                        \
    cuda_##family##_##isa##_##word##_##rows##x##cols##x##depth
#define TGI_EXPAND_NAME(family, isa, word, rows, cols, depth)                                      \
    TGI_JOIN_NAME(family, isa, word, rows, cols, depth)

/* TGI_CUDA_NAME gives cuda_simt_sm80_fp32_64x128x16 for (simt, sm80, fp32, fma, 64, 128, 16). */
#define TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth)                                  \
    TGI_EXPAND_NAME(family, isa, TGI_WORD_##math(type), rows, cols, depth)

/* TGI_ATTENTION_NAME gives cuda_attend_sm80_bf16_128x64 for (attend, sm80, bf16, 128, 64), a row of
 * attention_kernels.def. */
#define TGI_ATTENTION_NAME(family, isa, type, queries, head)                                       \
    cuda_##family##_##isa##_##type##_##queries##x##head

#define TGI_QUOTE(text) #text
#define TGI_QUOTE_VALUE(text) TGI_QUOTE(text)

#endif
