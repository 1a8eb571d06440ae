/* Declares the argument of relays (small_relay*.cuh). */
#ifndef TGI_SMALL_RELAY_ARGS_H
#define TGI_SMALL_RELAY_ARGS_H

#include "kernels/gemm_args.h"
#include "kernels/small/small_shape.h"

/* The argument of relays. If D is sums alone, threads read only the first member, whose sums.d_type
 * says so. */
typedef struct tgi_relay_short_args {
    tgi_relay_args relay;
    tgi_epilogue epilogue;
    const void *c, *bias;
    int64_t c_row, c_col, c_batch;
} tgi_relay_short_args;

#endif
