/* Instantiates the kernels of family mma on FP32 multiply-adds, for types of 16 and 8 bits. */
#define TGI_LEAST_D_BYTES 1

#include "kernels/mma/mma_instances.cuh"

#define TGI_FMA_bf16(name, ...) TGI_MMA(name, __VA_ARGS__, tgi_mma_fma<TG_TYPE_BF16, TG_TYPE_BF16>)
#define TGI_FMA_fp16(name, ...) TGI_MMA(name, __VA_ARGS__, tgi_mma_fma<TG_TYPE_FP16, TG_TYPE_FP16>)
#define TGI_FMA_fp8_e4m3(name, ...) TGI_MMA_FP8(tgi_mma_fma, name, fp8_e4m3, __VA_ARGS__)
#define TGI_FMA_fp8_e5m2(name, ...) TGI_MMA_FP8(tgi_mma_fma, name, fp8_e5m2, __VA_ARGS__)

#define TGI_IMAGE_mma_fma TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, ...) TGI_FMA_##type(name, __VA_ARGS__)
#include "core/kernels.def"
