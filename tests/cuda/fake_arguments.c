/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <string.h>

#include "fake_streams.h"
#include "kernels/add_args.h"
#include "kernels/gemm_args.h"
#include "kernels/small/small_relay_args.h"
#include "kernels/small/small_shape.h"

static tg_type find_type(const char *kernel)
{
    return strstr(kernel, "_fp64")   ? TG_TYPE_FP64
           : strstr(kernel, "_bf16") ? TG_TYPE_BF16
           : strstr(kernel, "_fp16") ? TG_TYPE_FP16
                                     : TG_TYPE_FP32;
}

const void *fake_expand_argument(const char *kernel, uint32_t batch_count, const void *argument,
                                 void *expanded, size_t expanded_bytes)
{
    tgi_sums_args from;
    tgi_short_args terms = {.epilogue.alpha = 1.0};
    tg_type a_type = find_type(kernel), b_type = a_type;
    tgi_gemm_args to;
    const int adds_sums = strncmp(kernel, "tgi_add_sums_", 13) == 0;
    const int adds_terms = strncmp(kernel, "tgi_add_terms_", 14) == 0;
    if (adds_sums || adds_terms) {
        memset(expanded, 0, expanded_bytes);
        return memcpy(expanded, argument,
                      adds_sums ? sizeof(tgi_add_args) : sizeof(tgi_add_terms_args));
    }
    if (strncmp(kernel, "tgi_strip_", 10) == 0) {
        tgi_strip_args strips;
        memcpy(&strips, argument, sizeof strips);
        from = strips.sums;
        a_type = strips.a_type;
        b_type = strips.b_type;
    } else if (strncmp(kernel, "tgi_outer_", 10) == 0) {
        tgi_outer_args outer;
        memcpy(&outer, argument, sizeof outer);
        from = outer.sums;
    } else if (strncmp(kernel, "tgi_short_", 10) == 0 || strncmp(kernel, "tgi_piece_", 10) == 0 ||
               strncmp(kernel, "tgi_relay_", 10) == 0) {
        /* The argument of each begins with the sums'. */
        memcpy(&from, argument, sizeof from);
        if (from.d_type & TGI_SHORT_TERMS && strncmp(kernel, "tgi_relay_", 10) == 0) {
            tgi_relay_short_args relay;
            memcpy(&relay, argument, sizeof relay);
            terms = (tgi_short_args){relay.relay.sums, relay.epilogue, relay.c,      relay.bias,
                                     relay.c_row,      relay.c_col,    relay.c_batch};
        } else if (from.d_type & TGI_SHORT_TERMS) {
            memcpy(&terms, argument, sizeof terms);
        }
        from.d_type &= TGI_SHORT_TERMS - 1;
    } else {
        return argument;
    }
    memset(&to, 0, sizeof to);
    to.problem.m = from.m;
    to.problem.n = from.n;
    to.problem.k = from.k;
    to.problem.batch_count = batch_count;
    to.problem.a = (tgi_layout){from.a_row, from.a_k, from.a_batch};
    to.problem.b = (tgi_layout){from.b_k, from.b_col, from.b_batch};
    to.problem.d = (tgi_layout){from.d_row, from.d_col, from.d_batch};
    to.problem.type = a_type;
    to.problem.b_type = b_type;
    to.problem.d_type = from.d_type;
    to.problem.c = (tgi_layout){terms.c_row, terms.c_col, terms.c_batch};
    to.problem.epilogue = terms.epilogue;
    to.c = terms.c;
    to.bias = terms.bias;
    to.a = from.a;
    to.b = from.b;
    to.d = from.d;
    memset(expanded, 0, expanded_bytes);
    memcpy(expanded, &to, sizeof to);
    return expanded;
}
