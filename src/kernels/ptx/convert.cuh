/*
 * Wraps the PTX instructions for conversions of numbers: PTX ISA, "Data Movement and Conversion
 * Instructions: cvt". The results are those of core/dtype.h, except for the payload of a NaN.
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

/* Encodes two numbers as BF16 or FP16, `low` in the lower half. */
static __device__ __forceinline__ uint32_t tgi_encode_pair(tg_type type, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    const auto encode = type == TG_TYPE_BF16 ? tgi_encode_bf16 : tgi_encode_fp16;
    return encode(low) | static_cast<uint32_t>(encode(high)) << 16;
#else
    uint32_t pair;
    if (type == TG_TYPE_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#endif
}

/* Encodes RELU of two numbers as BF16 or FP16, `low` in the lower half. */
static __device__ __forceinline__ uint32_t tgi_encode_relu_pair(tg_type type, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    return tgi_encode_pair(type, low < 0.0f ? 0.0f : low, high < 0.0f ? 0.0f : high);
#else
    uint32_t pair;
    if (type == TG_TYPE_BF16)
        asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#endif
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

/* Converts the E4M3 numbers in the lower two bytes to FP16, the first to the lower half. A chip
 * before sm_89 shifts exponent and fraction into place, which gives 2^-8 of the number, subnormal
 * or not. */
static __device__ __forceinline__ uint32_t tgi_decode_e4m3_pair(uint32_t pair)
{
    uint32_t wide = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"(static_cast<uint16_t>(pair)));
#else
    const uint32_t bytes = __byte_perm(pair, 0, 0x1404);
    /* All bits are set if the number is a NaN, whose magnitude is 0x7f. */
    uint32_t is_nan;
    asm("prmt.b32 %0, %1, 0, 0x9988;" : "=r"(is_nan) : "r"((pair & 0x7f7fu) + 0x0101u));
    const uint32_t shifted = (bytes & 0x80008000u) | (bytes >> 1 & 0x3f803f80u) | is_nan;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(wide) : "r"(shifted), "r"(0x5c005c00u));
#endif
    return wide;
}

/* Rounds an FP32 number to the nearest TF32 number, ties away from zero. The lower 13 bits stay
 * undefined, because matrix instructions do not read them. */
static __device__ __forceinline__ uint32_t tgi_round_tf32(uint32_t bits)
{
    return fabsf(__uint_as_float(bits)) < INFINITY ? bits + 0x1000u : bits;
}

#endif
