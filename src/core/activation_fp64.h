/*
 * Declares the activations of the epilogue in FP64, as activation.h does those of FP32. With
 * u = 2^-53, |error| <= 8 u |result| + 32 * 2^-1074, also far into the negative tail. NaN gives
 * NaN, +Inf gives +Inf, -Inf gives -0 (RELU: +0), and no other argument gives NaN or Inf.
 *
 * They have no branches, tables or libm calls: loops over them vectorize, and a GPU computes
 * several side by side, because one alone is a chain of operations that wait for each other.
 */
#ifndef TGI_ACTIVATION_FP64_H
#define TGI_ACTIVATION_FP64_H

#include "core/arithmetic.h"
#include "tilegemm.h"

/* Powers of e are computed as powers of 2, as in activation.h. A has 40 bits, so that a sum with it
 * can be split exactly into its value and its rounding error. */
#define TGI_LOG2E_FP64 0x1.71547652b82fep+0
#define TGI_LOG2E_TAIL_FP64 0x1.777d0ffda0d24p-56
#define TGI_GELU_A_FP64 0x1.26aec21bcep+1
#define TGI_GELU_A_TAIL_FP64 0x1.d652ed2859b43p-41
#define TGI_GELU_B_FP64 0x1.a5a7cf7572a98p-4
#define TGI_GELU_B_TAIL_FP64 (-0x1.b91c940e4cfcfp-58)

/* A number below 2^51 plus this one has its nearest integer in its low bits. */
#define TGI_SHIFT_FP64 0x1.8p+52

/* 2^-r = 1 + C1 r + C2 r^2 + ... for |r| <= 1/2, with relative error 2^-55.1. From
 * tools/measure/fit_activation_fp64, as the next ones. */
#define TGI_DECAY_C1 (-0x1.62e42fefa39efp-1)
#define TGI_DECAY_C2 0x1.ebfbdff82c5a4p-3
#define TGI_DECAY_C3 (-0x1.c6b08d7049fe6p-5)
#define TGI_DECAY_C4 0x1.3b2ab6fba007fp-7
#define TGI_DECAY_C5 (-0x1.5d87fe78cdbc2p-10)
#define TGI_DECAY_C6 0x1.4309130efa83ep-13
#define TGI_DECAY_C7 (-0x1.ffcbfba87586ep-17)
#define TGI_DECAY_C8 0x1.62bfc74227f36p-20
#define TGI_DECAY_C9 (-0x1.b5267e2704665p-24)
#define TGI_DECAY_C10 0x1.e61bf6f6e9aeep-28
#define TGI_DECAY_C11 (-0x1.e79b1881ad8ep-32)

/* The Mills ratio Q(t) exp(t^2 / 2) of the normal law, whose upper tail is Q, is
 * (C0 + C1 v + ...) / (t + 3.5) with v = (t - 3.5) / (t + 3.5), for 0 <= t <= 38.8, with relative
 * error 2^-54.6. */
#define TGI_MILLS_FP64_C0 0x1.7d241a953a614p-1
#define TGI_MILLS_FP64_C1 (-0x1.2191517fa27b8p-1)
#define TGI_MILLS_FP64_C2 0x1.42fec3680acacp-2
#define TGI_MILLS_FP64_C3 (-0x1.db5837f7f5539p-4)
#define TGI_MILLS_FP64_C4 0x1.1d35bdee169cep-6
#define TGI_MILLS_FP64_C5 0x1.a86cec766c4b3p-8
#define TGI_MILLS_FP64_C6 (-0x1.a200796a69212p-9)
#define TGI_MILLS_FP64_C7 (-0x1.d2a14110f7c2dp-12)
#define TGI_MILLS_FP64_C8 0x1.f3cfaad831d34p-12
#define TGI_MILLS_FP64_C9 0x1.19286249afec5p-14
#define TGI_MILLS_FP64_C10 (-0x1.3d066c94f0af6p-14)
#define TGI_MILLS_FP64_C11 (-0x1.3b39aebb1db1cp-16)
#define TGI_MILLS_FP64_C12 0x1.821969c8c2179p-17
#define TGI_MILLS_FP64_C13 0x1.7b4ae6ca2b518p-18
#define TGI_MILLS_FP64_C14 (-0x1.38bc64178d97bp-20)
#define TGI_MILLS_FP64_C15 (-0x1.8d0dcb9726afcp-20)
#define TGI_MILLS_FP64_C16 (-0x1.33a9a3671a516p-23)
#define TGI_MILLS_FP64_C17 0x1.3c149b4fa6a03p-22
#define TGI_MILLS_FP64_C18 0x1.0a59a68589ca5p-23
#define TGI_MILLS_FP64_C19 (-0x1.026415884e7a3p-25)
#define TGI_MILLS_FP64_C20 (-0x1.38f28726e0227p-25)
#define TGI_MILLS_FP64_C21 (-0x1.0b5024d011115p-28)
#define TGI_MILLS_FP64_C22 0x1.5366af1aa935bp-28
#define TGI_MILLS_FP64_C23 0x1.9c9e94cab0ed8p-30

/* Magnitudes from which on the result of a negative argument rounds to -0. */
#define TGI_SILU_END_FP64 800.0
#define TGI_GELU_TANH_END_FP64 22.0
#define TGI_GELU_ERF_END_FP64 38.8

/* Returns min(|x|, limit), and limit for NaN. */
TGI_INLINE double tgi_limit_magnitude_fp64(double x, double limit)
{
    uint64_t bits = tgi_bits_from_fp64(x) & 0x7fffffffffffffffu, most = tgi_bits_from_fp64(limit);
    return tgi_fp64_from_bits(bits < most ? bits : most);
}

/* The factors of a power of two. Neither underflows where the power does; low is exact. */
typedef struct tgi_power_fp64 {
    double low, high;
} tgi_power_fp64;

/* Returns 2^-(whole + r), where shifted is whole + 1.5 * 2^52, 0 <= whole < 2000 and |r| <= 1/2. */
TGI_INLINE tgi_power_fp64 tgi_exp2_fp64(double shifted, double r)
{
    double q = TGI_FMA_FP64(TGI_DECAY_C11, r, TGI_DECAY_C10);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C9);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C8);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C7);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C6);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C5);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C4);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C3);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C2);
    q = TGI_FMA_FP64(q, r, TGI_DECAY_C1);
    q = TGI_FMA_FP64(q, r, 1.0);
    uint64_t whole = tgi_bits_from_fp64(shifted), half = whole >> 1;
    tgi_power_fp64 power;
    power.low = tgi_fp64_from_bits(0x3ff0000000000000u - (half << 52));
    power.high = tgi_fp64_from_bits(tgi_bits_from_fp64(q) - ((whole - half) << 52));
    return power;
}

/* Returns max(x, 0) - part * factor, as tgi_subtract_decay_fp32 does. */
TGI_INLINE double tgi_subtract_decay_fp64(double x, double part, double factor)
{
    return TGI_FMA_FP64(-part, factor, x < 0.0 ? -0.0 : x);
}

/* Returns x / (1 + power), where t is the magnitude of x. */
TGI_INLINE double tgi_logistic_fp64(double x, double t, tgi_power_fp64 power)
{
    double below = TGI_FMA_FP64(power.low, power.high, 1.0);
    return tgi_subtract_decay_fp64(x, t * power.low * tgi_invert_fp64(below), power.high);
}

TGI_INLINE double tgi_silu_fp64(double x)
{
    double t = tgi_limit_magnitude_fp64(x, TGI_SILU_END_FP64);
    double shifted = TGI_FMA_FP64(t, TGI_LOG2E_FP64, TGI_SHIFT_FP64);
    double r = tgi_rounding_tail_fp64(t, TGI_LOG2E_FP64, -(shifted - TGI_SHIFT_FP64));
    r = TGI_FMA_FP64(t, TGI_LOG2E_TAIL_FP64, r);
    return tgi_logistic_fp64(x, t, tgi_exp2_fp64(shifted, r));
}

TGI_INLINE double tgi_gelu_tanh_fp64(double x)
{
    double t = tgi_limit_magnitude_fp64(x, TGI_GELU_TANH_END_FP64);
    double square = t * t;
    double square_tail = tgi_rounding_tail_fp64(t, t, -square);
    double slope = TGI_FMA_FP64(TGI_GELU_B_FP64, square, TGI_GELU_A_FP64);
    double slope_tail = tgi_rounding_tail_fp64(TGI_GELU_B_FP64, square, TGI_GELU_A_FP64 - slope);
    slope_tail = TGI_FMA_FP64(TGI_GELU_B_TAIL_FP64, square, slope_tail);
    slope_tail = TGI_FMA_FP64(TGI_GELU_B_FP64, square_tail, slope_tail);
    double shifted = TGI_FMA_FP64(t, slope, TGI_SHIFT_FP64);
    double r = tgi_rounding_tail_fp64(t, slope, -(shifted - TGI_SHIFT_FP64));
    r = TGI_FMA_FP64(t, slope_tail + TGI_GELU_A_TAIL_FP64, r);
    return tgi_logistic_fp64(x, t, tgi_exp2_fp64(shifted, r));
}

TGI_INLINE double tgi_gelu_erf_fp64(double x)
{
    double t = tgi_limit_magnitude_fp64(x, TGI_GELU_ERF_END_FP64);
    double square = t * t;
    double square_tail = tgi_rounding_tail_fp64(t, t, -square);
    double shifted = TGI_FMA_FP64(square, 0.5 * TGI_LOG2E_FP64, TGI_SHIFT_FP64);
    double r = tgi_rounding_tail_fp64(square, 0.5 * TGI_LOG2E_FP64, -(shifted - TGI_SHIFT_FP64));
    r = TGI_FMA_FP64(square, 0.5 * TGI_LOG2E_TAIL_FP64, r);
    r = TGI_FMA_FP64(square_tail, 0.5 * TGI_LOG2E_FP64, r);
    tgi_power_fp64 power = tgi_exp2_fp64(shifted, r);

    double inverse = tgi_invert_fp64(t + 3.5), v = (t - 3.5) * inverse;
    double q = TGI_FMA_FP64(TGI_MILLS_FP64_C23, v, TGI_MILLS_FP64_C22);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C21);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C20);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C19);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C18);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C17);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C16);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C15);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C14);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C13);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C12);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C11);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C10);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C9);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C8);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C7);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C6);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C5);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C4);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C3);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C2);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C1);
    q = TGI_FMA_FP64(q, v, TGI_MILLS_FP64_C0);
    return tgi_subtract_decay_fp64(x, t * inverse * q * power.low, power.high);
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
