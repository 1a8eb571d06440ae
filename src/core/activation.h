/*
 * Declares the activations of the epilogue, of FP32 in one source for CPU, GPU and simulator. It
 * compiles as C11, C++17 and CUDA. There are two forms: one for a D of FP32, and a shorter one,
 * named narrow, for a D of 16 or 8 bits. activation_fp64.h has those of FP64.
 *
 * The errors are those against the exact activation of the given argument, also far into the
 * negative tail, where results are tiny but not zero. For a D of FP32, u = 2^-24:
 *     SILU, GELU_TANH: |error| <= 14 u |result| + 2^-149
 *     GELU_ERF:        |error| <= 20 u |result| + 2^-149
 * For a D of 16 or 8 bits:
 *     SILU, GELU_TANH: |error| <= 1.3 * 2^-14 |result| + 2^-119
 *     GELU_ERF:        |error| <= 1.6 * 2^-14 |result| + 2^-119
 * NaN gives NaN. +Inf gives +Inf, -Inf gives -0 (RELU: +0). No other argument gives NaN or Inf.
 *
 * They have no branches, tables or libm calls, so that loops over them vectorize.
 */
#ifndef TGI_ACTIVATION_H
#define TGI_ACTIVATION_H

#include <math.h>

#include "core/arithmetic.h"
#include "tilegemm.h"

/* log2(Q(t)) = C0 + C1 t + ... for 0 <= t <= 13.1, where Q(t) = erfc(t / sqrt 2) / 2 is the upper
 * tail of the normal law. The relative error of Q is 2^-13.76 where t Q(t) is far above 2^-106, and
 * grows to 1 at 2^-120. tools/measure/fit_activation finds these coefficients and the next ones. */
#define TGI_TAIL_C0 -0x1.000676p0f
#define TGI_TAIL_C1 -0x1.26679cp0f
#define TGI_TAIL_C2 -0x1.d8002cp-2f
#define TGI_TAIL_C3 -0x1.aae98ap-5f
#define TGI_TAIL_C4 0x1.01fc4cp-7f
#define TGI_TAIL_C5 -0x1.b27fe8p-11f
#define TGI_TAIL_C6 0x1.d84d32p-15f
#define TGI_TAIL_C7 -0x1.26cab6p-19f
#define TGI_TAIL_C8 0x1.3f2256p-25f

/* Q(t) exp(t^2 / 2) = (P0 + P1 t + ...) / (S0 + S1 t + ...) for 0 <= t <= 14.5, with relative error
 * 2^-24.00. The left side is the Mills ratio of the normal law. All terms are positive, so nothing
 * cancels. */
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

/* 1 / (1 + e) = C0 + C1 e + ... for 0 <= e <= 1, with relative error 2^-14.26. On a GPU it takes
 * less time than a quotient, whose reciprocal and power would wait for the same unit. */
#define TGI_LOGISTIC_C0 0x1.fff95p-1f
#define TGI_LOGISTIC_C1 -0x1.fe17dap-1f
#define TGI_LOGISTIC_C2 0x1.e826c4p-1f
#define TGI_LOGISTIC_C3 -0x1.8a888ap-1f
#define TGI_LOGISTIC_C4 0x1.abf7e8p-2f
#define TGI_LOGISTIC_C5 -0x1.abf7e8p-4f

/* Powers of e are computed as powers of 2: SILU is x / (1 + 2^-z) with z = x log2(e), and GELU_TANH
 * has z = x (A + B x^2), where A = 2 sqrt(2/pi) log2(e) and B = 0.044715 A. A constant is the sum
 * of the nearest number and a tail. HALF_A has 21 bits, so that a sum with it can be split exactly
 * into its value and its rounding error. */
#define TGI_LOG2E_FP32 0x1.715476p+0f
#define TGI_LOG2E_TAIL_FP32 0x1.4ae0cp-26f
#define TGI_GELU_A_NARROW 0x1.26aec2p+1f
#define TGI_GELU_B_NARROW 0x1.a5a7dp-4f
#define TGI_GELU_HALF_A_FP32 0x1.26aecp+0f
#define TGI_GELU_HALF_A_TAIL_FP32 0x1.0de73ap-23f
#define TGI_GELU_HALF_B_FP32 0x1.a5a7dp-5f
#define TGI_GELU_HALF_B_TAIL_FP32 (-0x1.151aaep-30f)

/* Magnitudes from which on the result of a negative argument rounds to -0. */
#define TGI_SILU_END_FP32 112.0f
#define TGI_GELU_TANH_END_FP32 11.0f
#define TGI_GELU_ERF_END_FP32 14.5f
#define TGI_GELU_ERF_END_NARROW 13.1f

/* ---------------------------------------------------------------------------------- FP32 -- */

/* Returns max(x, 0) - part * factor. It is -0 for a negative x whose second term underflows, and
 * NaN if x is NaN. */
TGI_INLINE float tgi_subtract_decay_fp32(float x, float part, float factor)
{
    return TGI_FMA_FP32(-part, factor, tgi_limit_below_fp32(x, -0.0f));
}

/* Returns x / (1 + p^2), where p = 2^-(half + tail) and half >= 0 belongs to t, the magnitude of x.
 * It is computed as t p^2 / (1 + p^2) subtracted from x or 0, so that nothing cancels. Since p does
 * not underflow, the result is rounded to subnormal only once. */
TGI_INLINE float tgi_logistic_fp32(float x, float t, float half, float tail)
{
    float p = tgi_exp2_fp32(-half, -tail);
    float part = tgi_divide_fp32(t * p, TGI_FMA_FP32(p, p, 1.0f));
    return tgi_subtract_decay_fp32(x, part, p);
}

TGI_INLINE float tgi_silu_fp32(float x)
{
    float t = tgi_limit_magnitude_fp32(x, TGI_SILU_END_FP32);
    float half = t * (0.5f * TGI_LOG2E_FP32);
    float tail = tgi_rounding_tail_fp32(t, 0.5f * TGI_LOG2E_FP32, -half);
    tail = TGI_FMA_FP32(t, 0.5f * TGI_LOG2E_TAIL_FP32, tail);
    return tgi_logistic_fp32(x, t, half, tail);
}

TGI_INLINE float tgi_gelu_tanh_fp32(float x)
{
    float t = tgi_limit_magnitude_fp32(x, TGI_GELU_TANH_END_FP32);
    /* half = t (A + B t^2) / 2 reaches 81, and its absolute error is the relative error of the
     * power. Each operation therefore carries its rounding error. */
    float square = t * t;
    float square_tail = tgi_rounding_tail_fp32(t, t, -square);
    float slope = TGI_FMA_FP32(TGI_GELU_HALF_B_FP32, square, TGI_GELU_HALF_A_FP32);
    float slope_tail =
        tgi_rounding_tail_fp32(TGI_GELU_HALF_B_FP32, square, TGI_GELU_HALF_A_FP32 - slope);
    slope_tail = TGI_FMA_FP32(TGI_GELU_HALF_B_TAIL_FP32, square, slope_tail);
    slope_tail = TGI_FMA_FP32(TGI_GELU_HALF_B_FP32, square_tail, slope_tail);
    float half = t * slope;
    float tail = tgi_rounding_tail_fp32(t, slope, -half);
    tail = TGI_FMA_FP32(t, slope_tail + TGI_GELU_HALF_A_TAIL_FP32, tail);
    return tgi_logistic_fp32(x, t, half, tail);
}

/* Returns x Q(-x), where Q is the upper tail of the normal law. It is t Q(t), with Q <= 1/2,
 * subtracted from x or 0. */
TGI_INLINE float tgi_gelu_erf_fp32(float x)
{
    float t = tgi_limit_magnitude_fp32(x, TGI_GELU_ERF_END_FP32);
    /* exp(-t^2 / 2) is the square of 2^-half, which does not underflow. */
    float square = t * t;
    float square_tail = tgi_rounding_tail_fp32(t, t, -square);
    float half = square * (0.25f * TGI_LOG2E_FP32);
    float tail = tgi_rounding_tail_fp32(square, 0.25f * TGI_LOG2E_FP32, -half);
    tail = TGI_FMA_FP32(square, 0.25f * TGI_LOG2E_TAIL_FP32, tail);
    tail = TGI_FMA_FP32(square_tail, 0.25f * TGI_LOG2E_FP32, tail);
    float root = tgi_exp2_fp32(-half, -tail);

    float p = TGI_FMA_FP32(TGI_MILLS_P4, t, TGI_MILLS_P3);
    p = TGI_FMA_FP32(p, t, TGI_MILLS_P2);
    p = TGI_FMA_FP32(p, t, TGI_MILLS_P1);
    p = TGI_FMA_FP32(p, t, TGI_MILLS_P0);
    float s = TGI_FMA_FP32(TGI_MILLS_S5, t, TGI_MILLS_S4);
    s = TGI_FMA_FP32(s, t, TGI_MILLS_S3);
    s = TGI_FMA_FP32(s, t, TGI_MILLS_S2);
    s = TGI_FMA_FP32(s, t, TGI_MILLS_S1);
    s = TGI_FMA_FP32(s, t, TGI_MILLS_S0);
    return tgi_subtract_decay_fp32(x, tgi_divide_fp32(t * root * p, s), root);
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

/* ------------------------------------------------------------- FP32 for D of 16 or 8 bits -- */

/* Returns the magnitude of x. Processors limit it, because their powers and Inf * 0 would give NaN.
 * A GPU has tgi_multiply_decay instead, which is an instruction less. */
TGI_INLINE float tgi_find_magnitude_narrow(float x, float limit)
{
#if defined(__CUDA_ARCH__)
    (void)limit;
    return fabsf(x);
#else
    return tgi_limit_magnitude_fp32(x, limit);
#endif
}

/* Returns t e, which is below 1, for e = 2^w that falls faster than t grows, and 0 for Inf * 0. */
TGI_INLINE float tgi_multiply_decay(float t, float e)
{
#if defined(__CUDA_ARCH__)
    return __saturatef(t * e); /* 0 for NaN */
#else
    return t * e;
#endif
}

/* Returns x / (1 + e), where e = 2^w and w <= 0 belongs to t, the magnitude of x. It is computed as
 * t e / (1 + e) subtracted from x or 0. */
TGI_INLINE float tgi_logistic_narrow(float x, float t, float w)
{
    float e = tgi_exp2_narrow(w);
    float q = TGI_FMA_FP32(TGI_LOGISTIC_C5, e, TGI_LOGISTIC_C4);
    q = TGI_FMA_FP32(q, e, TGI_LOGISTIC_C3);
    q = TGI_FMA_FP32(q, e, TGI_LOGISTIC_C2);
    q = TGI_FMA_FP32(q, e, TGI_LOGISTIC_C1);
    q = TGI_FMA_FP32(q, e, TGI_LOGISTIC_C0);
    return tgi_subtract_decay_fp32(x, tgi_multiply_decay(t, e), q);
}

TGI_INLINE float tgi_silu_narrow(float x)
{
    float t = tgi_find_magnitude_narrow(x, TGI_SILU_END_FP32);
    return tgi_logistic_narrow(x, t, t * -TGI_LOG2E_FP32);
}

TGI_INLINE float tgi_gelu_tanh_narrow(float x)
{
    float t = tgi_find_magnitude_narrow(x, TGI_GELU_TANH_END_FP32);
    float slope = TGI_FMA_FP32(t * t, -TGI_GELU_B_NARROW, -TGI_GELU_A_NARROW);
    return tgi_logistic_narrow(x, t, t * slope);
}

TGI_INLINE float tgi_gelu_erf_narrow(float x)
{
    float t = tgi_limit_magnitude_fp32(x, TGI_GELU_ERF_END_NARROW);
    float w = TGI_FMA_FP32(TGI_TAIL_C8, t, TGI_TAIL_C7);
    w = TGI_FMA_FP32(w, t, TGI_TAIL_C6);
    w = TGI_FMA_FP32(w, t, TGI_TAIL_C5);
    w = TGI_FMA_FP32(w, t, TGI_TAIL_C4);
    w = TGI_FMA_FP32(w, t, TGI_TAIL_C3);
    w = TGI_FMA_FP32(w, t, TGI_TAIL_C2);
    w = TGI_FMA_FP32(w, t, TGI_TAIL_C1);
    w = TGI_FMA_FP32(w, t, TGI_TAIL_C0);
    return tgi_subtract_decay_fp32(x, t, tgi_exp2_narrow(w));
}

/* This is the activation for a D of 16 or 8 bits. */
TGI_INLINE float tgi_activate_narrow(float x, tg_activation kind)
{
    switch (kind) {
    case TG_ACTIVATION_GELU_ERF:
        return tgi_gelu_erf_narrow(x);
    case TG_ACTIVATION_GELU_TANH:
        return tgi_gelu_tanh_narrow(x);
    case TG_ACTIVATION_SILU:
        return tgi_silu_narrow(x);
    case TG_ACTIVATION_RELU:
    case TG_ACTIVATION_NONE:
        break;
    }
    return tgi_activate_fp32(x, kind);
}

#endif
