/*
 * Declares the arguments of the functions of splits.cu that add splits where D is sums alone, or
 * sums with C or a bias.
 */
#ifndef TGI_ADD_ARGS_H
#define TGI_ADD_ARGS_H

#include "core/types.h"

/* It is a fraction of tgi_gemm_args, because a kernel that runs for a microsecond waits for each
 * line of constant memory that it reads. Strides are in elements. */
typedef struct tgi_add_args {
    const void *sums; /* the splits, as in tgi_gemm_args */
    void *d;
    int64_t d_row, d_col, d_batch;
    int32_t n, total; /* columns and elements of D */
    int32_t split_count;
    tg_type d_type;
} tgi_add_args;

/* Says how sums become D if not as they are: they are multiplied by alpha, get beta times C if beta
 * is not 0, and a bias if there is one, and may be limited by RELU. */
typedef struct tgi_add_terms {
    const void *c, *bias; /* bias: NULL if there is none */
    double alpha, beta;
    int64_t c_row, c_col, c_batch;
    int32_t bias_row, bias_col; /* elements from one row or column of D to the next */
    tg_activation activation;   /* none or RELU */
} tgi_add_terms;

typedef struct tgi_add_terms_args {
    tgi_add_args sums;
    tgi_add_terms terms;
} tgi_add_terms_args;

#endif
