/*
 * Declares the arithmetic of scores and sums, which are FP32, or FP64 where the operands are. Each
 * function has a form for either type.
 */
#ifndef TGI_ATTEND_REAL_CUH
#define TGI_ATTEND_REAL_CUH

#include "core/arithmetic_ptx.h"
#include "kernels/attend/attend_args.h"
#include "kernels/attend/attend_tile.cuh"

/* The type of the scores and sums of operands of type `Type`. */
template <tg_type Type> struct tgi_attend_real_of {
    typedef float type;
};
template <> struct tgi_attend_real_of<TG_TYPE_FP64> {
    typedef double type;
};
template <tg_type Type> using tgi_attend_real = typename tgi_attend_real_of<Type>::type;

static __device__ __forceinline__ float tgi_attend_exp2(float x)
{
    return tgi_ptx_exp2(x);
}

/* Returns 2^x = 2^n (1 + f q(f)) for x < 1023, with |f| <= 1/2, off by at most 1.2 units roundoff;
 * 0 for x <= -1022. This has fewer instructions than exp2(). */
static __device__ __forceinline__ double tgi_attend_exp2(double x)
{
    constexpr double q[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c598p-3,  0x1.c6b08d704a0c2p-5,
                            0x1.3b2ab6fba1ddap-7,  0x1.5d87fe78a5276p-10, 0x1.430913096fd9fp-13,
                            0x1.ffcbfc670dcd4p-17, 0x1.62bfd47773353p-20, 0x1.b524fae627834p-24,
                            0x1.e6063f7217bc6p-28, 0x1.e9d3fe3952179p-32};
    const double shift = 0x1.8p52, shifted = x + shift; /* n is in its lowest bits */
    const double f = x - (shifted - shift);
    double power = q[10];
    TGI_FOR_UNROLLED(i, 10)
    power = fma(power, f, q[9 - i]);
    power = fma(power, f, 1.0);
    const int n = x > -1022.0 ? __double2loint(shifted) : 0; /* NaN stays NaN */
    power = __hiloint2double(__double2hiint(power) + n * (1 << 20), __double2loint(power));
    return x <= -1022.0 ? 0.0 : power;
}

static __device__ __forceinline__ float tgi_attend_log(float x)
{
    return logf(x);
}

static __device__ __forceinline__ double tgi_attend_log(double x)
{
    return log(x);
}

static __device__ __forceinline__ float tgi_attend_larger(float x, float y)
{
    return fmaxf(x, y);
}

static __device__ __forceinline__ double tgi_attend_larger(double x, double y)
{
    return fmax(x, y);
}

static __device__ __forceinline__ float tgi_attend_magnitude(float x)
{
    return fabsf(x);
}

static __device__ __forceinline__ double tgi_attend_magnitude(double x)
{
    return fabs(x);
}

/* Return 1 if the sign of x is minus. */
static __device__ __forceinline__ int tgi_attend_is_negative(float x)
{
    return __float_as_uint(x) >> 31;
}

static __device__ __forceinline__ int tgi_attend_is_negative(double x)
{
    return __double2hiint(x) < 0;
}

/* Return x y + z, rounded once. */
static __device__ __forceinline__ float tgi_attend_multiply_add(float x, float y, float z)
{
    return fmaf(x, y, z);
}

static __device__ __forceinline__ double tgi_attend_multiply_add(double x, double y, double z)
{
    return fma(x, y, z);
}

/* Return x y, which no addition is fused with. */
static __device__ __forceinline__ float tgi_attend_multiply(float x, float y)
{
    return __fmul_rn(x, y);
}

static __device__ __forceinline__ double tgi_attend_multiply(double x, double y)
{
    return __dmul_rn(x, y);
}

/* Returns the factor that makes products scores to base 2. */
template <typename Real>
static __device__ __forceinline__ Real tgi_attend_find_scale(const tgi_attend_args &p)
{
    if constexpr (sizeof(Real) == sizeof(double))
        return p.attention.scale * TGI_ATTEND_LOG2_E;
    else
        return p.scale;
}

/* Returns 1 if scores are softened. */
template <typename Real>
static __device__ __forceinline__ int tgi_attend_has_cap(const tgi_attend_args &p)
{
    if constexpr (sizeof(Real) == sizeof(double))
        return p.attention.soft_cap != 0.0;
    else
        return p.cap != 0.0f;
}

/* Return cap tanh(x / cap). */
static __device__ __forceinline__ float tgi_attend_soften(const tgi_attend_args &p, float x)
{
    const float power = tgi_ptx_exp2(fabsf(x) * p.cap_inverse * -2.8853900817779268f);
    return copysignf(p.cap * ((1.0f - power) * tgi_ptx_reciprocal(1.0f + power)), x);
}

static __device__ __forceinline__ double tgi_attend_soften(const tgi_attend_args &p, double x)
{
    const double cap = p.attention.soft_cap * TGI_ATTEND_LOG2_E;
    const double power = tgi_attend_exp2(fabs(x) / p.attention.soft_cap * -2.0);
    return copysign(cap * ((1.0 - power) / (1.0 + power)), x);
}

template <typename Real, int Blocks, int Count>
static __device__ __forceinline__ void tgi_attend_zero(Real (&sums)[Blocks][Count][4])
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(j, Count)
    TGI_FOR_UNROLLED(i, 4)
    sums[b][j][i] = 0;
}

/* Store two neighbouring numbers at once. */
static __device__ __forceinline__ void tgi_attend_store_two(float *to, float first, float second)
{
    *reinterpret_cast<float2 *>(to) = {first, second};
}

static __device__ __forceinline__ void tgi_attend_store_two(double *to, double first, double second)
{
    *reinterpret_cast<double2 *>(to) = {first, second};
}

#endif
