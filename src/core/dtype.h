/*
 * Converts scalars between FP32 and the types of 16 and 8 bits by integer arithmetic, in one source
 * for CPU, GPU and simulator. It compiles as C11, C++17 and CUDA, without branches, so that loops
 * over these functions vectorize. Rounding is to nearest, ties to even. Subnormals are kept on both
 * sides, and overflow becomes infinite. NaN stays NaN and becomes quiet, with its leading payload
 * bits kept, as in the conversion instructions of x86 and NVIDIA processors. In FP8, overflow
 * becomes the largest finite number and NaN loses its payload, as in NVIDIA's cvt.rn.satfinite.
 */
#ifndef TGI_DTYPE_H
#define TGI_DTYPE_H

#include <stdint.h>
#include <string.h>

/* These functions are inlined even without optimization, so that a caller's instruction set (target
 * attribute) holds for the body too. */
#if defined(__CUDACC__)
#define TGI_INLINE static __device__ __forceinline__
#elif defined(__GNUC__)
#define TGI_INLINE static inline __attribute__((always_inline))
#else
#define TGI_INLINE static inline
#endif

TGI_INLINE uint32_t tgi_bits_from_fp32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

TGI_INLINE float tgi_fp32_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TGI_INLINE uint64_t tgi_bits_from_fp64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

TGI_INLINE double tgi_fp64_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns a if is_a is 1, b if it is 0. It does not use ?:, because gcc moves floating-point
 * operations that only one side needs into a branch, which it cannot vectorize (they may trap). */
TGI_INLINE uint32_t tgi_select_bits(uint32_t is_a, uint32_t a, uint32_t b)
{
    uint32_t mask = 0u - is_a;
    return (a & mask) | (b & ~mask);
}

/* The conversion is exact; a signalling NaN keeps its bits. */
TGI_INLINE float tgi_fp32_from_bf16(uint16_t bf16)
{
    return tgi_fp32_from_bits((uint32_t)bf16 << 16);
}

TGI_INLINE uint16_t tgi_bf16_from_fp32(float value)
{
    uint32_t bits = tgi_bits_from_fp32(value);
    /* The addend is half a unit less one, plus the last kept bit, so that a tie moves up only from
     * an odd number. The carry out of the fraction goes into the exponent, and at the top of the
     * range to infinity. */
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/* The conversion is exact. */
TGI_INLINE float tgi_fp32_from_fp16(uint16_t fp16)
{
    uint32_t magnitude = fp16 & 0x7fffu;
    uint32_t normal = (magnitude << 13) + 0x38000000u; /* exponent bias 15 -> 127 */
    uint32_t infinite = normal + 0x38000000u;          /* exponent field 31 -> 255 */
    uint32_t nan = infinite | 0x400000u;
    /* The magnitude is 0..1023 units of 2^-24. The product is exact and normal in every rounding
     * mode. */
    uint32_t subnormal = tgi_bits_from_fp32((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t bits = magnitude < 0x7c00u ? normal : infinite;
    bits = magnitude > 0x7c00u ? nan : bits;
    bits = tgi_select_bits((magnitude - 0x400u) >> 31, subnormal, bits); /* magnitude < 0x400 */
    return tgi_fp32_from_bits(bits | (uint32_t)(fp16 & 0x8000u) << 16);
}

TGI_INLINE uint16_t tgi_fp16_from_fp32(float value)
{
    uint32_t bits = tgi_bits_from_fp32(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;

    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    normal = normal < 0x7c00u ? normal : 0x7c00u;

    /* Below 2^-14 the result counts units of 2^-24: the 24-bit significand, shifted right by
     * 126 - exponent (14 or more) and rounded. From 25 places on nothing is left, so the shift may
     * stop at 31; that also covers FP32 subnormals, which have no leading bit. */
    uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t shift = 126u - (magnitude >> 23);
    shift = shift < 31u ? shift : 31u;
    uint32_t below_half = (1u << ((shift - 1u) & 31u)) - 1u;
    uint32_t subnormal = (significand + below_half + ((significand >> shift) & 1u)) >> shift;

    uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
    result = magnitude > 0x7f800000u ? nan : result;
    return (uint16_t)(result | sign);
}

/* The conversion is exact. E4M3 has 4 bits of exponent, bias 7, and its last code of each sign is
 * NaN. */
TGI_INLINE float tgi_fp32_from_e4m3(uint8_t fp8)
{
    uint32_t magnitude = fp8 & 0x7fu;
    uint32_t normal = (magnitude << 20) + 0x3c000000u; /* exponent bias 7 -> 127 */
    /* The magnitude is 0..7 units of 2^-9. */
    uint32_t subnormal = tgi_bits_from_fp32((float)(int32_t)magnitude * 0x1p-9f);
    uint32_t bits = magnitude < 0x7fu ? normal : 0x7fc00000u;
    bits = tgi_select_bits((magnitude - 8u) >> 31, subnormal, bits); /* magnitude < 8 */
    return tgi_fp32_from_bits(bits | (uint32_t)(fp8 & 0x80u) << 24);
}

/* The conversion is exact. */
TGI_INLINE float tgi_fp32_from_e5m2(uint8_t fp8)
{
    return tgi_fp32_from_fp16((uint16_t)(fp8 << 8));
}

/* Converts to either FP8 type. The arguments are constants: bits of the fraction, exponent bias,
 * and the code of the largest finite number. The operations are those of tgi_fp16_from_fp32. */
TGI_INLINE uint8_t tgi_fp8_from_fp32(float value, uint32_t fraction_bits, uint32_t bias,
                                     uint32_t largest)
{
    uint32_t bits = tgi_bits_from_fp32(value);
    uint32_t magnitude = bits & 0x7fffffffu, dropped_bits = 23u - fraction_bits;

    uint32_t normal = magnitude - ((127u - bias) << 23) + ((1u << (dropped_bits - 1u)) - 1u);
    normal = (normal + ((magnitude >> dropped_bits) & 1u)) >> dropped_bits;
    normal = normal < largest ? normal : largest;

    /* The result counts units of 2^(1 - bias - fraction_bits). */
    uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t shift = 151u - bias - fraction_bits - (magnitude >> 23);
    shift = shift < 31u ? shift : 31u;
    uint32_t below_half = (1u << ((shift - 1u) & 31u)) - 1u;
    uint32_t subnormal = (significand + below_half + ((significand >> shift) & 1u)) >> shift;

    uint32_t result = magnitude < (128u - bias) << 23 ? subnormal : normal;
    result = magnitude > 0x7f800000u ? 0x7fu : result;
    return (uint8_t)(result | ((bits >> 24) & 0x80u));
}

TGI_INLINE uint8_t tgi_e4m3_from_fp32(float value)
{
    return tgi_fp8_from_fp32(value, 3u, 7u, 0x7eu);
}

TGI_INLINE uint8_t tgi_e5m2_from_fp32(float value)
{
    return tgi_fp8_from_fp32(value, 2u, 15u, 0x7bu);
}

#endif
