/*
 * The name of a CUDA row of kernels.def as a token: its symbol in device code, and as text the name
 * of the kernel. Compiles as C11 and CUDA.
 */
#ifndef TGI_KERNEL_NAME_H
#define TGI_KERNEL_NAME_H

/* The type in lower case, as tg_get_type_name has it. */
#define TGI_TYPE_WORD_FP32 fp32
#define TGI_TYPE_WORD_FP64 fp64
#define TGI_TYPE_WORD_BF16 bf16
#define TGI_TYPE_WORD_FP16 fp16
#define TGI_TYPE_WORD_FP8_E4M3 fp8_e4m3
#define TGI_TYPE_WORD_FP8_E5M2 fp8_e5m2

#define TGI_JOIN_NAME(family, isa, word, rows, cols, depth)                                        \
    cuda_##family##_##isa##_##word##_##rows##x##cols##x##depth
#define TGI_EXPAND_NAME(family, isa, word, rows, cols, depth)                                      \
    TGI_JOIN_NAME(family, isa, word, rows, cols, depth)

/* cuda_simt_sm80_fp32_128x128x16 of (simt, sm80, FP32, 128, 128, 16) */
#define TGI_CUDA_NAME(family, isa, type, rows, cols, depth)                                        \
    TGI_EXPAND_NAME(family, isa, TGI_TYPE_WORD_##type, rows, cols, depth)

#define TGI_QUOTE(text) #text
#define TGI_QUOTE_VALUE(text) TGI_QUOTE(text)

#endif
