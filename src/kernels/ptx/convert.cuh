/*
 * Conversions of numbers in one instruction: PTX ISA, "Data Movement and Conversion Instructions:
 * cvt". They give what core/dtype.h computes, but for the payload of a NaN.
 */
#ifndef TGI_PTX_CONVERT_CUH
#define TGI_PTX_CONVERT_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "core/dtype.h"
#include "tilegemm.h"

static __device__ __forceinline__ float tgi_decode_fp16(uint16_t bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

static __device__ __forceinline__ uint16_t tgi_encode_fp16(float value)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

static __device__ __forceinline__ uint16_t tgi_encode_bf16(float value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    return tgi_bf16_from_fp32(value);
#endif
}

/* Encodes two numbers as BF16 or FP16 (sm_80), `low` in the lower half. */
static __device__ __forceinline__ uint32_t tgi_encode_pair(tg_type type, float low, float high)
{
    uint32_t pair;
    if (type == TG_TYPE_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* Encodes two numbers as E4M3, or as E5M2, `low` in the lower byte. Numbers beyond the largest of
 * the type, and infinity, become the largest; a NaN loses its sign. */
static __device__ __forceinline__ uint16_t tgi_encode_fp8_pair(int is_e4m3, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t pair;
    if (is_e4m3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return static_cast<uint16_t>(is_e4m3 ? tgi_e4m3_from_fp32(low) | tgi_e4m3_from_fp32(high) << 8
                                         : tgi_e5m2_from_fp32(low) | tgi_e5m2_from_fp32(high) << 8);
#endif
}

/* Converts the E4M3 numbers in the lower two bytes to FP16 (sm_89), the first to the lower half.
 * Earlier chips return 0: no kernel of theirs multiplies E4M3. */
static __device__ __forceinline__ uint32_t tgi_decode_e4m3_pair(uint32_t pair)
{
    uint32_t wide = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"(static_cast<uint16_t>(pair)));
#endif
    return wide;
}

#endif
