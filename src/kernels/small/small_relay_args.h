/* Declares the argument of relays with an epilogue (small_relay.cuh). */
#ifndef TGI_SMALL_RELAY_ARGS_H
#define TGI_SMALL_RELAY_ARGS_H

#include "kernels/gemm_args.h"
#include "kernels/small/small_shape.h"

typedef struct tgi_relay_terms_args {
    tgi_relay_args relay;
    tgi_gemm_args all;
} tgi_relay_terms_args;

#endif
