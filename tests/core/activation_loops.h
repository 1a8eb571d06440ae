/* Loops over the activations as a backend runs them, one set for each instruction set. */
#ifndef ACTIVATION_LOOPS_H
#define ACTIVATION_LOOPS_H

#include "tilegemm.h"

/* y[i] = activation(x[i]), i < count. */
typedef void activate_fp32(const float *x, float *y, int64_t count);
typedef void activate_fp64(const double *x, double *y, int64_t count);

typedef struct activation_loops {
    const char *isa;
    activate_fp32 *fp32[TG_ACTIVATION_SILU + 1]; /* by tg_activation */
    activate_fp64 *fp64[TG_ACTIVATION_SILU + 1];
} activation_loops;

extern const activation_loops loops_generic, loops_avx2, loops_avx512;

#endif
