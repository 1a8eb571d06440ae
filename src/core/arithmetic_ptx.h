/*
 * Wraps instructions of a GPU for arithmetic.h, where other processors need several. CUDA C++ has
 * no names for them. Wrappers of the kernels' other instructions are in src/kernels/ptx, which
 * core does not see.
 */
#ifndef TGI_ARITHMETIC_PTX_H
#define TGI_ARITHMETIC_PTX_H

/* Returns the larger number, +0 above -0, and NaN if either is NaN. From sm_80 on. */
static __device__ __forceinline__ float tgi_ptx_max_nan(float x, float y)
{
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
    return larger;
}

/* Returns 2^x within 2^-22 of it. Subnormal numbers are 0. */
static __device__ __forceinline__ float tgi_ptx_exp2(float x)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

/* Returns 1 / x within 2^-23 of it. Subnormal numbers are 0. */
static __device__ __forceinline__ float tgi_ptx_reciprocal(float x)
{
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
    return reciprocal;
}

/* Returns 1 / x within 2^-20 of it. */
static __device__ __forceinline__ double tgi_ptx_reciprocal_fp64(double x)
{
    double reciprocal;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(reciprocal) : "d"(x));
    return reciprocal;
}

#endif
