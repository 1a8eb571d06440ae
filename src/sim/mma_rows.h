/*
 * Lists the rows of families mma, mma_bf16x and mma_fp16x that the library's simulator has, a
 * choice of tiles for each type: all of them would take half a megabyte. Tests define
 * TGI_SIM_ALL_ROWS to have all. TGI_SIM_IF_ROW(image, name, ...) gives its last arguments for these
 * rows and nothing for others. Compiles as C11 and C++17.
 */
#ifndef TGI_SIM_MMA_ROWS_H
#define TGI_SIM_MMA_ROWS_H

#include "kernels/instances.cuh"

#define TGI_SIM_ROW_cuda_mma_sm80_bf16_64x64x64 TGI_CHOSEN
#define TGI_SIM_ROW_cuda_mma_sm80_bf16_16x64x64 TGI_CHOSEN
#define TGI_SIM_ROW_cuda_mma_sm80_fp16_128x128x32 TGI_CHOSEN
#define TGI_SIM_ROW_cuda_mma_sm80_tf32_64x64x32 TGI_CHOSEN
#define TGI_SIM_ROW_cuda_mma_sm89_fp8_e4m3_64x64x128 TGI_CHOSEN
#define TGI_SIM_ROW_cuda_mma_bf16x_sm80_fp32_64x128x32 TGI_CHOSEN
#define TGI_SIM_ROW_cuda_mma_fp16x_sm80_fp32_64x128x32 TGI_CHOSEN

#ifndef TGI_SIM_ALL_ROWS
#define TGI_SIM_IF_ROW(image, name, ...) TGI_SIM_IF_NAMED(name, __VA_ARGS__)
#define TGI_SIM_IF_NAMED(name, ...) TGI_KEEP(TGI_IS_CHOSEN(TGI_SIM_ROW_##name), 1)(__VA_ARGS__)
#else
#define TGI_SIM_IF_ROW(image, name, ...) TGI_SIM_IF_IMAGE(image, __VA_ARGS__)
#define TGI_SIM_IF_IMAGE(image, ...) TGI_KEEP(TGI_IS_CHOSEN(TGI_SIM_IMAGE_##image), 1)(__VA_ARGS__)
#define TGI_SIM_IMAGE_mma_bf16 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_fp16 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_large_bf16 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_large_fp16 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_large_tf32 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_tf32_ahead TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_sm75 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_fma TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_tf32 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_fp32 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_fp16x TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_fp8 TGI_CHOSEN
#define TGI_SIM_IMAGE_mma_wide_fp8 TGI_CHOSEN
#endif

#endif
