/*
 * Declares the arithmetic of the activations: fused multiply-adds, their rounding errors, limits,
 * powers of two, quotients. It compiles as C11, C++17 and CUDA. On a GPU a limit, a power and a
 * reciprocal are an instruction each; elsewhere a power is a polynomial. There are no branches,
 * tables or libm calls, so that loops vectorize. It assumes rounding to nearest and must not be
 * compiled with -ffast-math.
 *
 * TGI_EPILOGUE_HAS_FMA says whether fma is one instruction. A file whose instruction set comes from
 * target attributes sets it to 1 before the #include. Without it fma is a multiplication and an
 * addition, so that results may differ in their last bits from one instruction set to another; on
 * one instruction set they are always the same.
 */
#ifndef TGI_ARITHMETIC_H
#define TGI_ARITHMETIC_H

#include <math.h>

#include "core/dtype.h"

#if defined(__CUDA_ARCH__)
#include "core/arithmetic_ptx.h"
#endif

#ifndef TGI_EPILOGUE_HAS_FMA
#if defined(__FMA__) || defined(__AVX512F__) || defined(__CUDACC__) || defined(__aarch64__)
#define TGI_EPILOGUE_HAS_FMA 1
#else
#define TGI_EPILOGUE_HAS_FMA 0
#endif
#endif

#if TGI_EPILOGUE_HAS_FMA && defined(__GNUC__) && !defined(__CUDA_ARCH__)
#define TGI_FMA_FP32(x, y, z) __builtin_fmaf((x), (y), (z))
#define TGI_FMA_FP64(x, y, z) __builtin_fma((x), (y), (z))
#elif TGI_EPILOGUE_HAS_FMA
#define TGI_FMA_FP32(x, y, z) fmaf((x), (y), (z))
#define TGI_FMA_FP64(x, y, z) fma((x), (y), (z))
#else
#define TGI_FMA_FP32(x, y, z) ((x) * (y) + (z))
#define TGI_FMA_FP64(x, y, z) ((x) * (y) + (z))
#endif

/* nvcc fuses a product with a later sum unless it is told that the product is rounded. */
#if defined(__CUDA_ARCH__)
#define TGI_MULTIPLY_FP32(x, y) __fmul_rn((x), (y))
#define TGI_MULTIPLY_FP64(x, y) __dmul_rn((x), (y))
#else
#define TGI_MULTIPLY_FP32(x, y) ((x) * (y))
#define TGI_MULTIPLY_FP64(x, y) ((x) * (y))
#endif

#define TGI_LN2_FP32 0x1.62e43p-1f

/* 2^r = 1 + r (ln 2 + C2 r + ...) for |r| <= 1/2, relative errors 2^-27.87 and, by the coefficients
 * named NARROW, 2^-17.51. From tools/measure/fit_activation. */
#define TGI_EXP2_C2 0x1.ebfbdcp-3f
#define TGI_EXP2_C3 0x1.c6af88p-5f
#define TGI_EXP2_C4 0x1.3b2e1p-7f
#define TGI_EXP2_C5 0x1.5f049cp-10f
#define TGI_EXP2_C6 0x1.414df4p-13f
#define TGI_EXP2_NARROW_C2 0x1.ec08dp-3f
#define TGI_EXP2_NARROW_C3 0x1.c9104ep-5f
#define TGI_EXP2_NARROW_C4 0x1.383826p-7f

/* Returns x y + rest, where rest is z minus the rounded x y + z, without error. The result is the
 * rounding error of x y + z, exact except for underflow. For z = 0, rest is the negative rounded
 * product. */
TGI_INLINE float tgi_rounding_tail_fp32(float x, float y, float rest)
{
#if TGI_EPILOGUE_HAS_FMA
    return TGI_FMA_FP32(x, y, rest);
#else
    /* The halves have 12 bits, so that their products are exact (Dekker 1971). */
    float x_high = tgi_fp32_from_bits(tgi_bits_from_fp32(x) & 0xfffff000u), x_low = x - x_high;
    float y_high = tgi_fp32_from_bits(tgi_bits_from_fp32(y) & 0xfffff000u), y_low = y - y_high;
    float product = x * y;
    float tail = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
    return (product + rest) + tail;
#endif
}

/* Returns what tgi_rounding_tail_fp32 does, in FP64. */
TGI_INLINE double tgi_rounding_tail_fp64(double x, double y, double rest)
{
#if TGI_EPILOGUE_HAS_FMA
    return TGI_FMA_FP64(x, y, rest);
#else
    const uint64_t high_bits = 0xfffffffff8000000u; /* halves of 26 and 27 bits */
    double x_high = tgi_fp64_from_bits(tgi_bits_from_fp64(x) & high_bits), x_low = x - x_high;
    double y_high = tgi_fp64_from_bits(tgi_bits_from_fp64(y) & high_bits), y_low = y - y_high;
    double product = x * y;
    double tail = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
    return (product + rest) + tail;
#endif
}

/* The limits compare the bits of numbers as integers, because after a comparison of numbers gcc
 * would branch on a constant limit. Bits grow with a positive number and with a negative number's
 * magnitude, and those of a negative number are larger. */
TGI_INLINE uint32_t tgi_lesser_bits(uint32_t bits, uint32_t limit)
{
    return bits < limit ? bits : limit;
}

/* Returns max(x, limit), and NaN for NaN. The limit is negative, and may be -0. On GPUs from 8.0 on
 * it may be any number. */
TGI_INLINE float tgi_limit_below_fp32(float x, float limit)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return tgi_ptx_max_nan(x, limit);
#elif defined(__CUDA_ARCH__)
    return x < limit ? limit : x;
#else
    /* Adding past_inf makes the bits of -Inf the largest unsigned value. Those of negative NaNs
     * wrap around to small ones, so that the minimum keeps them. */
    const uint32_t past_inf = 0x7fffffu;
    uint32_t bits = tgi_bits_from_fp32(x) + past_inf, most = tgi_bits_from_fp32(limit) + past_inf;
    return tgi_fp32_from_bits(tgi_lesser_bits(bits, most) - past_inf);
#endif
}

/* Returns min(|x|, limit), and limit for NaN. */
TGI_INLINE float tgi_limit_magnitude_fp32(float x, float limit)
{
#if defined(__CUDA_ARCH__)
    return fminf(fabsf(x), limit);
#else
    uint32_t magnitude = tgi_bits_from_fp32(x) & 0x7fffffffu;
    return tgi_fp32_from_bits(tgi_lesser_bits(magnitude, tgi_bits_from_fp32(limit)));
#endif
}

/* Returns m 2^whole, where shifted is whole + 1.5 * 2^23, so that its low bits hold whole. */
TGI_INLINE float tgi_scale_by_bits_fp32(float m, float shifted)
{
    return tgi_fp32_from_bits(tgi_bits_from_fp32(m) + (tgi_bits_from_fp32(shifted) << 23));
}

/* Returns 2^(w + tail) for -126 <= w <= 126 and |tail| <= 2^-15, within 2^-22 of it. */
TGI_INLINE float tgi_exp2_fp32(float w, float tail)
{
#if defined(__CUDA_ARCH__)
    const float power = tgi_ptx_exp2(w);
    return fmaf(power, tail * TGI_LN2_FP32, power);
#else
    float shifted = w + 0x1.8p+23f;
    float r = (w - (shifted - 0x1.8p+23f)) + tail;
    float q = TGI_FMA_FP32(TGI_EXP2_C6, r, TGI_EXP2_C5);
    q = TGI_FMA_FP32(q, r, TGI_EXP2_C4);
    q = TGI_FMA_FP32(q, r, TGI_EXP2_C3);
    q = TGI_FMA_FP32(q, r, TGI_EXP2_C2);
    q = TGI_FMA_FP32(q, r, TGI_LN2_FP32);
    return tgi_scale_by_bits_fp32(TGI_FMA_FP32(q, r, 1.0f), shifted);
#endif
}

/* Returns 2^w within 2^-17 of it for -126 <= w <= 126. For lesser w it is at most 2^-126, and 0
 * from -127 on. */
TGI_INLINE float tgi_exp2_narrow(float w)
{
#if defined(__CUDA_ARCH__)
    return tgi_ptx_exp2(w);
#else
    float low = tgi_limit_below_fp32(w, -127.0f);
    float shifted = low + 0x1.8p+23f;
    float r = low - (shifted - 0x1.8p+23f);
    float q = TGI_FMA_FP32(TGI_EXP2_NARROW_C4, r, TGI_EXP2_NARROW_C3);
    q = TGI_FMA_FP32(q, r, TGI_EXP2_NARROW_C2);
    q = TGI_FMA_FP32(q, r, TGI_LN2_FP32);
    return tgi_scale_by_bits_fp32(TGI_FMA_FP32(q, r, 1.0f), shifted);
#endif
}

/* Returns x / y within two units in the last place, for 2^-126 <= y <= 2^126. */
TGI_INLINE float tgi_divide_fp32(float x, float y)
{
#if defined(__CUDA_ARCH__)
    return x * tgi_ptx_reciprocal(y);
#else
    return x / y;
#endif
}

/* Returns 1 / x for 1 <= x <= 2^6, within 1.5 units in the last place. */
TGI_INLINE double tgi_invert_fp64(double x)
{
#if defined(__CUDA_ARCH__)
    const double guess = tgi_ptx_reciprocal_fp64(x), error = fma(-x, guess, 1.0);
    return fma(guess, fma(error, error, error), guess);
#else
    return 1.0 / x;
#endif
}

#endif
