/*
 * Declares the argument of the functions of splits.cu that add splits where D is sums alone.
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

#endif
