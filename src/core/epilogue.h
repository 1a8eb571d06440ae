/*
 * Declares the epilogue, the operations from a sum of products to D, in one source for CPU, GPU and
 * simulator. It compiles as C11, C++17 and CUDA. Every executor keeps the order of these
 * operations: the rows of src/cpu/finish_body.h, the elements and the rows of a few columns of
 * kernels/epilogue/element_epilogue.cuh, the register fragments of fragment_epilogue.cuh and
 * warpgroup_epilogue.cuh, the staged units of staged_rows.cuh.
 *
 *     if (A or B has a scale)                    1 stands for a scale that is not there
 *         alpha = alpha * (scale_a * scale_b)    tgi_scale_alpha_fp32
 *     t = alpha * sum                            TGI_COMBINE: one multiplication
 *     if (beta != 0) t = fma(beta, c, t)         C is not looked at if beta is 0
 *     if (there is a bias) t = t + bias          tgi_add_bias_fp32
 *     t = activation(t)                          tgi_activate_fp32, or _narrow
 *     if (D has a scale) t = t * scale_d         tgi_scale_d_fp32
 *
 * The product of the scales comes first because it does not change when A and B swap roles.
 */
#ifndef TGI_EPILOGUE_H
#define TGI_EPILOGUE_H

#include "core/activation.h"
#include "core/activation_fp64.h"
#include "core/epilogue_args.h"

/* TGI_COMBINE makes the operations up to the bias, on numbers or on vectors, whose operations are
 * `multiply` and `fma`. c is evaluated only if uses_c is not 0. */
#define TGI_COMBINE(t, multiply, fma, alpha, sum, uses_c, beta, c)                                 \
    do {                                                                                           \
        (t) = multiply((alpha), (sum));                                                            \
        if (uses_c)                                                                                \
            (t) = fma((beta), (c), (t));                                                           \
    } while (0)

/* ---------------------------------------------------------------------------------- FP32 -- */

/* Returns alpha of an element of D with the scales of A and B; 1 stands for a missing scale. */
TGI_INLINE float tgi_scale_alpha_fp32(float alpha, float scale_a, float scale_b)
{
    return TGI_MULTIPLY_FP32(alpha, TGI_MULTIPLY_FP32(scale_a, scale_b));
}

TGI_INLINE float tgi_add_bias_fp32(float t, float bias)
{
    return t + bias;
}

/* Returns an activated element with D's scale. */
TGI_INLINE float tgi_scale_d_fp32(float t, float scale_d)
{
    return TGI_MULTIPLY_FP32(t, scale_d);
}

/* The terms of an element of D besides its sum are alpha with the scales of A and B, its C and its
 * bias. C and bias are any numbers if the epilogue does not use them. */
typedef struct tgi_terms_fp32 {
    float alpha, c, bias;
} tgi_terms_fp32;

/* Returns the epilogue's result before the activation. */
TGI_INLINE float tgi_combine_fp32(const tgi_epilogue *epilogue, const tgi_terms_fp32 *terms,
                                  float sum)
{
    const float beta = (float)epilogue->beta;
    float t;
    TGI_COMBINE(t, TGI_MULTIPLY_FP32, TGI_FMA_FP32, terms->alpha, sum, beta != 0.0f, beta,
                terms->c);
    return epilogue->bias != TG_BIAS_NONE ? tgi_add_bias_fp32(t, terms->bias) : t;
}

/* Returns one element of D before D's scale and its conversion. is_narrow is 1 if D has 16 or 8
 * bits. */
TGI_INLINE float tgi_epilogue_fp32(const tgi_epilogue *epilogue, const tgi_terms_fp32 *terms,
                                   int is_narrow, float sum)
{
    const float t = tgi_combine_fp32(epilogue, terms, sum);
    return is_narrow ? tgi_activate_narrow(t, epilogue->activation)
                     : tgi_activate_fp32(t, epilogue->activation);
}

/* ---------------------------------------------------------------------------------- FP64 -- */

TGI_INLINE double tgi_add_bias_fp64(double t, double bias)
{
    return t + bias;
}

typedef struct tgi_terms_fp64 {
    double alpha, c, bias;
} tgi_terms_fp64;

TGI_INLINE double tgi_combine_fp64(const tgi_epilogue *epilogue, const tgi_terms_fp64 *terms,
                                   double sum)
{
    const double beta = epilogue->beta;
    double t;
    TGI_COMBINE(t, TGI_MULTIPLY_FP64, TGI_FMA_FP64, terms->alpha, sum, beta != 0.0, beta, terms->c);
    return epilogue->bias != TG_BIAS_NONE ? tgi_add_bias_fp64(t, terms->bias) : t;
}

TGI_INLINE double tgi_epilogue_fp64(const tgi_epilogue *epilogue, const tgi_terms_fp64 *terms,
                                    double sum)
{
    return tgi_activate_fp64(tgi_combine_fp64(epilogue, terms, sum), epilogue->activation);
}

#endif
