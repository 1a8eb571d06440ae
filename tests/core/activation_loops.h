/*
 * These loops run the epilogue as a backend does, over the activations and one element at a time.
 * There is one set for each instruction set.
 */
#ifndef ACTIVATION_LOOPS_H
#define ACTIVATION_LOOPS_H

#include "tilegemm.h"

/* Computes y[i] = activation(x[i]) for i < count. */
typedef void activate_fp32(const float *x, float *y, int64_t count);
typedef void activate_fp64(const double *x, double *y, int64_t count);

/* Has the parameters of tgi_epilogue_fp32; finish_fp64 those of tgi_epilogue_fp64. */
typedef float finish_fp32(float sum, float alpha, float beta, float c, int has_bias, float bias,
                          tg_activation kind, int is_narrow);
typedef double finish_fp64(double sum, double alpha, double beta, double c, int has_bias,
                           double bias, tg_activation kind);

typedef struct activation_loops {
    const char *isa;
    activate_fp32 *fp32[TG_ACTIVATION_SILU + 1]; /* indexed by tg_activation */
    activate_fp32 *narrow[TG_ACTIVATION_SILU + 1];
    activate_fp64 *fp64[TG_ACTIVATION_SILU + 1];
    finish_fp32 *finish_fp32;
    finish_fp64 *finish_fp64;
} activation_loops;

extern const activation_loops loops_generic, loops_avx2, loops_avx512;

#endif
