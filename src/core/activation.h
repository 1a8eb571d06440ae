/*
 * The activations of the epilogue: the one source for CPU, GPU and simulator. Compiles as C11,
 * C++17 and CUDA.
 *
 * Accuracy for the argument as it stands, far into the negative tail too, where they are tiny but
 * not zero. FP32, u = 2^-24:
 *     SILU, GELU_TANH: |error| <=  5 u |result| + 2^-149
 *     GELU_ERF:        |error| <= 10 u |result| + 2^-149
 * FP64, u = 2^-53:     |error| <=  8 u |result| + 32 * 2^-1074
 * NaN gives NaN. +Inf gives +Inf, -Inf gives -0 (RELU: +0). No other argument gives NaN or Inf.
 *
 * The FP32 activations have no branches, tables or libm calls, so that loops over them vectorize.
 * They assume rounding to nearest and must not be compiled with -ffast-math.
 *
 * TGI_EPILOGUE_HAS_FMA says whether fma is one instruction. A file whose instruction set comes from
 * target attributes sets it to 1 before the #include. Without it fma is a multiplication and an
 * addition, so that results may differ in their last bits from one instruction set to another; on
 * one instruction set they are always the same.
 */
#ifndef TGI_ACTIVATION_H
#define TGI_ACTIVATION_H

#include <math.h>

#include "core/dtype.h"
#include "tilegemm.h"

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

/* exp(r) = 1 + r + r^2 (C0 + C1 r + ...) for |r| <= ln(2) / 2, relative error 2^-27.76. From
 * tools/measure/fit_activation, as are the next. */
#define TGI_EXP_C0 0x1.fffffcp-2f
#define TGI_EXP_C1 0x1.55549p-3f
#define TGI_EXP_C2 0x1.5558f4p-5f
#define TGI_EXP_C3 0x1.123a6cp-7f
#define TGI_EXP_C4 0x1.6a2352p-10f

/* Q(t) exp(t^2 / 2) = (P0 + P1 t + ...) / (S0 + S1 t + ...) for 0 <= t <= 14.5, relative error
 * 2^-24.00, where Q(t) = erfc(t / sqrt 2) / 2 is the upper tail of the normal law and the left side
 * its Mills ratio. All terms are positive: nothing cancels. */
#define TGI_MILLS_P0 0x1p-1f
#define TGI_MILLS_P1 0x1.c018e4p-2f
#define TGI_MILLS_P2 0x1.76263cp-3f
#define TGI_MILLS_P3 0x1.4b4c9cp-5f
#define TGI_MILLS_P4 0x1.0bc0fep-8f
#define TGI_MILLS_S0 0x1p0f
#define TGI_MILLS_S1 0x1.ac4eap0f
#define TGI_MILLS_S2 0x1.3346a6p0f
#define TGI_MILLS_S3 0x1.df41eap-2f
#define TGI_MILLS_S4 0x1.9f3fbcp-4f
#define TGI_MILLS_S5 0x1.4f936p-7f

/* GELU_TANH is x / (1 + exp(-z)) with z = x (2 sqrt(2/pi) + 2 sqrt(2/pi) 0.044715 x^2). Each of the
 * two factors is the sum of the nearest number and a tail. */
#define TGI_GELU_A_FP32 (0x1.988454p+0f)
#define TGI_GELU_A_TAIL_FP32 (-0x1.857936p-25f)
#define TGI_GELU_B_FP32 (0x1.2444f2p-4f)
#define TGI_GELU_B_TAIL_FP32 (0x1.49b16ap-29f)
#define TGI_GELU_A_FP64 (0x1.9884533d43651p+0)
#define TGI_GELU_A_TAIL_FP64 (-0x1.cbc0d30ebfd15p-54)
#define TGI_GELU_B_FP64 (0x1.2444f2a4d8b4bp-4)
#define TGI_GELU_B_TAIL_FP64 (-0x1.6c843a29d1c7p-61)

/* Magnitudes from which on the result of a negative argument rounds to -0. */
#define TGI_SILU_END_FP32 112.0f
#define TGI_SILU_END_FP64 800.0
#define TGI_GELU_TANH_END_FP32 11.0f
#define TGI_GELU_TANH_END_FP64 22.0
#define TGI_GELU_ERF_END_FP32 14.5f
#define TGI_GELU_ERF_END_FP64 40.0

/* ---------------------------------------------------------------------------------- FP32 -- */

/* Returns x y - product, where product is x y rounded: the rounding error, exact but for
 * underflow. */
TGI_INLINE float tgi_product_tail_fp32(float x, float y, float product)
{
#if TGI_EPILOGUE_HAS_FMA
    return TGI_FMA_FP32(x, y, -product);
#else
    /* Halves of 12 bits, whose products are exact (Dekker 1971). */
    float x_high = tgi_fp32_from_bits(tgi_bits_from_fp32(x) & 0xfffff000u), x_low = x - x_high;
    float y_high = tgi_fp32_from_bits(tgi_bits_from_fp32(y) & 0xfffff000u), y_low = y - y_high;
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
#endif
}

/* exp(x) = mantissa * scale_1 * scale_2 for -112.5 <= x <= 0. The mantissa is in (0.7, 1.42), each
 * scale is a power of two down to 2^-82: a product with all three rounds to subnormal once. */
typedef struct tgi_exp_parts {
    float mantissa, scale_1, scale_2;
} tgi_exp_parts;

/* Returns exp(x + tail), |tail| <= 2^-17. */
TGI_INLINE tgi_exp_parts tgi_exp_fp32(float x, float tail)
{
    /* Adding 1.5 * 2^23 rounds to a whole number, which is then in the low bits. */
    float shifted = TGI_FMA_FP32(x, 0x1.715476p+0f, 0x1.8p+23f);
    int32_t whole = (int32_t)(tgi_bits_from_fp32(shifted) - 0x4b400000u);
    float whole_fp32 = shifted - 0x1.8p+23f;
    /* ln 2 in two parts; the first has 16 bits, so its product is exact without fma. */
    float r = TGI_FMA_FP32(whole_fp32, -0x1.62e4p-1f, x);
    r = TGI_FMA_FP32(whole_fp32, -0x1.7f7d1cp-20f, r) + tail;
    float q = TGI_FMA_FP32(TGI_EXP_C4, r, TGI_EXP_C3);
    q = TGI_FMA_FP32(q, r, TGI_EXP_C2);
    q = TGI_FMA_FP32(q, r, TGI_EXP_C1);
    q = TGI_FMA_FP32(q, r, TGI_EXP_C0);

    int32_t half = whole / 2;
    tgi_exp_parts parts;
    parts.mantissa = 1.0f + TGI_FMA_FP32(r * r, q, r);
    parts.scale_1 = tgi_fp32_from_bits((uint32_t)(half + 127) << 23);
    parts.scale_2 = tgi_fp32_from_bits((uint32_t)(whole - half + 127) << 23);
    return parts;
}

/* Returns min(|x|, end), and end for NaN. It works on the bits: after a comparison gcc would branch
 * on the constant. */
TGI_INLINE float tgi_clamp_magnitude_fp32(float x, float end)
{
    uint32_t magnitude = tgi_bits_from_fp32(x) & 0x7fffffffu, limit = tgi_bits_from_fp32(end);
    return tgi_fp32_from_bits(tgi_select_bits((magnitude - limit) >> 31, magnitude, limit));
}

/* Returns a if x has its sign bit set, -0 and NaN included, else b. */
TGI_INLINE float tgi_select_negative_fp32(float x, float a, float b)
{
    return tgi_fp32_from_bits(
        tgi_select_bits(tgi_bits_from_fp32(x) >> 31, tgi_bits_from_fp32(a), tgi_bits_from_fp32(b)));
}

/* Returns x / (1 + exp(-z - tail)), where z + tail >= 0 belongs to |x|. A negative x takes
 * x exp(z) / (1 + exp(z)), whose denominator does not overflow. */
TGI_INLINE float tgi_logistic_fp32(float x, float end, float z, float tail)
{
    tgi_exp_parts decay = tgi_exp_fp32(-z, -tail);
    float partial = decay.mantissa * decay.scale_1;
    float denominator = 1.0f + partial * decay.scale_2;
    float low = x < -end ? -end : x; /* -Inf * 0 would be NaN */
    float factor = tgi_select_negative_fp32(x, partial, 1.0f);
    float scale = tgi_select_negative_fp32(x, decay.scale_2, 1.0f);
    return low * factor / denominator * scale;
}

TGI_INLINE float tgi_silu_fp32(float x)
{
    float t = tgi_clamp_magnitude_fp32(x, TGI_SILU_END_FP32);
    return tgi_logistic_fp32(x, TGI_SILU_END_FP32, t, 0.0f);
}

TGI_INLINE float tgi_gelu_tanh_fp32(float x)
{
    float t = tgi_clamp_magnitude_fp32(x, TGI_GELU_TANH_END_FP32);
    /* z = t (A + B t^2) reaches 112, and its absolute error is the relative error of exp(-z): each
     * operation carries what it rounds off. A + p is an exact sum (Knuth) whichever is larger. */
    float square = t * t;
    float square_tail = tgi_product_tail_fp32(t, t, square);
    float p = TGI_GELU_B_FP32 * square;
    float p_tail = tgi_product_tail_fp32(TGI_GELU_B_FP32, square, p);
    float slope = TGI_GELU_A_FP32 + p;
    float part = slope - TGI_GELU_A_FP32;
    float slope_tail = (TGI_GELU_A_FP32 - (slope - part)) + (p - part);
    slope_tail += p_tail + TGI_GELU_A_TAIL_FP32;
    slope_tail += TGI_GELU_B_FP32 * square_tail + TGI_GELU_B_TAIL_FP32 * square;
    float z = t * slope;
    float z_tail = tgi_product_tail_fp32(t, slope, z) + t * slope_tail;
    return tgi_logistic_fp32(x, TGI_GELU_TANH_END_FP32, z, z_tail);
}

/* Returns x Q(-x) with Q the upper tail of the normal law; x >= 0 takes x (1 - Q(x)), Q <= 1/2. */
TGI_INLINE float tgi_gelu_erf_fp32(float x)
{
    float t = tgi_clamp_magnitude_fp32(x, TGI_GELU_ERF_END_FP32);
    float square = t * t;
    float square_tail = tgi_product_tail_fp32(t, t, square);
    tgi_exp_parts decay = tgi_exp_fp32(-0.5f * square, -0.5f * square_tail);

    float p = TGI_FMA_FP32(TGI_MILLS_P4, t, TGI_MILLS_P3);
    p = TGI_FMA_FP32(p, t, TGI_MILLS_P2);
    p = TGI_FMA_FP32(p, t, TGI_MILLS_P1);
    p = TGI_FMA_FP32(p, t, TGI_MILLS_P0);
    float s = TGI_FMA_FP32(TGI_MILLS_S5, t, TGI_MILLS_S4);
    s = TGI_FMA_FP32(s, t, TGI_MILLS_S3);
    s = TGI_FMA_FP32(s, t, TGI_MILLS_S2);
    s = TGI_FMA_FP32(s, t, TGI_MILLS_S1);
    s = TGI_FMA_FP32(s, t, TGI_MILLS_S0);

    float partial = decay.mantissa * p / s * decay.scale_1;
    float above = 1.0f - partial * decay.scale_2;
    float low = x < -TGI_GELU_ERF_END_FP32 ? -TGI_GELU_ERF_END_FP32 : x; /* -Inf * 0 is NaN */
    float factor = tgi_select_negative_fp32(x, partial, above);
    float scale = tgi_select_negative_fp32(x, decay.scale_2, 1.0f);
    return low * factor * scale;
}

/* `kind` is a constant after inlining in any loop that is to vectorize. */
TGI_INLINE float tgi_activate_fp32(float x, tg_activation kind)
{
    switch (kind) {
    case TG_ACTIVATION_RELU:
        return x < 0.0f ? 0.0f : x;
    case TG_ACTIVATION_GELU_ERF:
        return tgi_gelu_erf_fp32(x);
    case TG_ACTIVATION_GELU_TANH:
        return tgi_gelu_tanh_fp32(x);
    case TG_ACTIVATION_SILU:
        return tgi_silu_fp32(x);
    case TG_ACTIVATION_NONE:
        break;
    }
    return x;
}

/* ---------------------------------------------------------------------------------- FP64 -- */

/* Returns x y - product, where product is x y rounded. */
TGI_INLINE double tgi_product_tail_fp64(double x, double y, double product)
{
#if TGI_EPILOGUE_HAS_FMA
    return TGI_FMA_FP64(x, y, -product);
#else
    const uint64_t high_bits = 0xfffffffff8000000u; /* halves of 26 and 27 bits */
    double x_high = tgi_fp64_from_bits(tgi_bits_from_fp64(x) & high_bits), x_low = x - x_high;
    double y_high = tgi_fp64_from_bits(tgi_bits_from_fp64(y) & high_bits), y_low = y - y_high;
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
#endif
}

TGI_INLINE double tgi_clamp_magnitude_fp64(double x, double end)
{
    double magnitude = tgi_fp64_from_bits(tgi_bits_from_fp64(x) & 0x7fffffffffffffffu);
    return magnitude < end ? magnitude : end;
}

/* Returns x / (1 + exp(-z - tail)), as tgi_logistic_fp32 does. The square root of exp(-z) stays
 * normal, so only the result underflows. */
TGI_INLINE double tgi_logistic_fp64(double x, double end, double z, double tail)
{
    double root = exp(-0.5 * z);
    root -= root * (0.5 * tail);
    double low = x < -end ? -end : x;
    double factor = x < 0.0 ? root : 1.0;
    return low * factor / (1.0 + root * root) * factor;
}

TGI_INLINE double tgi_silu_fp64(double x)
{
    double t = tgi_clamp_magnitude_fp64(x, TGI_SILU_END_FP64);
    return tgi_logistic_fp64(x, TGI_SILU_END_FP64, t, 0.0);
}

TGI_INLINE double tgi_gelu_tanh_fp64(double x)
{
    double t = tgi_clamp_magnitude_fp64(x, TGI_GELU_TANH_END_FP64);
    double square = t * t;
    double square_tail = tgi_product_tail_fp64(t, t, square);
    double p = TGI_GELU_B_FP64 * square;
    double p_tail = tgi_product_tail_fp64(TGI_GELU_B_FP64, square, p);
    double slope = TGI_GELU_A_FP64 + p;
    double part = slope - TGI_GELU_A_FP64;
    double slope_tail = (TGI_GELU_A_FP64 - (slope - part)) + (p - part);
    slope_tail += p_tail + TGI_GELU_A_TAIL_FP64;
    slope_tail += TGI_GELU_B_FP64 * square_tail + TGI_GELU_B_TAIL_FP64 * square;
    double z = t * slope;
    double z_tail = tgi_product_tail_fp64(t, slope, z) + t * slope_tail;
    return tgi_logistic_fp64(x, TGI_GELU_TANH_END_FP64, z, z_tail);
}

TGI_INLINE double tgi_gelu_erf_fp64(double x)
{
    double t = tgi_clamp_magnitude_fp64(x, TGI_GELU_ERF_END_FP64);
    /* erfc magnifies the rounding of t / sqrt 2 by t^2: one step of Taylor's series takes it back,
     * erfc'(y) = -2 / sqrt(pi) exp(-y^2). */
    double y = t * 0x1.6a09e667f3bcdp-1;
    double y_tail = tgi_product_tail_fp64(t, 0x1.6a09e667f3bcdp-1, y) - t * 0x1.bdd3413b26456p-55;
    double complement = erfc(y) - y_tail * 0x1.20dd750429b6dp+0 * exp(-y * y);
    double low = x < -TGI_GELU_ERF_END_FP64 ? -TGI_GELU_ERF_END_FP64 : x;
    return x < 0.0 ? 0.5 * low * complement : x * (1.0 - 0.5 * complement);
}

TGI_INLINE double tgi_activate_fp64(double x, tg_activation kind)
{
    switch (kind) {
    case TG_ACTIVATION_RELU:
        return x < 0.0 ? 0.0 : x;
    case TG_ACTIVATION_GELU_ERF:
        return tgi_gelu_erf_fp64(x);
    case TG_ACTIVATION_GELU_TANH:
        return tgi_gelu_tanh_fp64(x);
    case TG_ACTIVATION_SILU:
        return tgi_silu_fp64(x);
    case TG_ACTIVATION_NONE:
        break;
    }
    return x;
}

#endif
