/*
 * This file is compiled once for each instruction set: LOOPS_TARGET and TGI_EPILOGUE_HAS_FMA choose
 * it, LOOPS_NAME names the table.
 */
#include "activation_loops.h"
#include "core/epilogue.h"

#define DEFINE_LOOP(name, elem, activate, kind)                                                    \
    LOOPS_TARGET static void name(const elem *x, elem *y, int64_t count)                           \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = activate(x[i], kind);                                                           \
    }

DEFINE_LOOP(none_fp32, float, tgi_activate_fp32, TG_ACTIVATION_NONE)
DEFINE_LOOP(relu_fp32, float, tgi_activate_fp32, TG_ACTIVATION_RELU)
DEFINE_LOOP(gelu_erf_fp32, float, tgi_activate_fp32, TG_ACTIVATION_GELU_ERF)
DEFINE_LOOP(gelu_tanh_fp32, float, tgi_activate_fp32, TG_ACTIVATION_GELU_TANH)
DEFINE_LOOP(silu_fp32, float, tgi_activate_fp32, TG_ACTIVATION_SILU)
DEFINE_LOOP(none_narrow, float, tgi_activate_narrow, TG_ACTIVATION_NONE)
DEFINE_LOOP(relu_narrow, float, tgi_activate_narrow, TG_ACTIVATION_RELU)
DEFINE_LOOP(gelu_erf_narrow, float, tgi_activate_narrow, TG_ACTIVATION_GELU_ERF)
DEFINE_LOOP(gelu_tanh_narrow, float, tgi_activate_narrow, TG_ACTIVATION_GELU_TANH)
DEFINE_LOOP(silu_narrow, float, tgi_activate_narrow, TG_ACTIVATION_SILU)
DEFINE_LOOP(none_fp64, double, tgi_activate_fp64, TG_ACTIVATION_NONE)
DEFINE_LOOP(relu_fp64, double, tgi_activate_fp64, TG_ACTIVATION_RELU)
DEFINE_LOOP(gelu_erf_fp64, double, tgi_activate_fp64, TG_ACTIVATION_GELU_ERF)
DEFINE_LOOP(gelu_tanh_fp64, double, tgi_activate_fp64, TG_ACTIVATION_GELU_TANH)
DEFINE_LOOP(silu_fp64, double, tgi_activate_fp64, TG_ACTIVATION_SILU)

LOOPS_TARGET static float finish_one_fp32(float sum, float alpha, float beta, float c, int has_bias,
                                          float bias, tg_activation kind, int is_narrow)
{
    const tgi_epilogue epilogue = {.alpha = alpha,
                                   .beta = beta,
                                   .bias = has_bias ? TG_BIAS_ROW : TG_BIAS_NONE,
                                   .activation = kind};
    const tgi_terms_fp32 terms = {alpha, c, bias};
    return tgi_epilogue_fp32(&epilogue, &terms, is_narrow, sum);
}

LOOPS_TARGET static double finish_one_fp64(double sum, double alpha, double beta, double c,
                                           int has_bias, double bias, tg_activation kind)
{
    const tgi_epilogue epilogue = {.alpha = alpha,
                                   .beta = beta,
                                   .bias = has_bias ? TG_BIAS_ROW : TG_BIAS_NONE,
                                   .activation = kind};
    const tgi_terms_fp64 terms = {alpha, c, bias};
    return tgi_epilogue_fp64(&epilogue, &terms, sum);
}

const activation_loops LOOPS_NAME = {
    LOOPS_ISA,
    {none_fp32, relu_fp32, gelu_erf_fp32, gelu_tanh_fp32, silu_fp32},
    {none_narrow, relu_narrow, gelu_erf_narrow, gelu_tanh_narrow, silu_narrow},
    {none_fp64, relu_fp64, gelu_erf_fp64, gelu_tanh_fp64, silu_fp64},
    finish_one_fp32,
    finish_one_fp64,
};
