/* Makes the argument of a rung of attention from an attention without gaps, on the host. */
#ifndef TGI_ATTENTION_RUNG_CALL_H
#define TGI_ATTENTION_RUNG_CALL_H

#include "kernels/attention_ladder/attention_rung_args.h"
#include "tilegemm_attention.h"

/* `scores` is memory for the score matrices of rung 1, NULL for the others. */
static inline tgi_attention_rung_args tgi_make_attention_rung_args(const tg_attention *a,
                                                                   float *scores)
{
    const double log2_e = 1.4426950408889634;
    return (tgi_attention_rung_args){.q = a->q.data,
                                     .k = a->k.data,
                                     .v = a->v.data,
                                     .d = a->d.data,
                                     .scores = scores,
                                     .m = (int)a->m,
                                     .n = (int)a->n,
                                     .head_size = (int)a->head_size,
                                     .heads_per_kv_head = (int)(a->head_count / a->kv_head_count),
                                     .shift = a->causal == TG_CAUSAL_NONE ? (int)a->n
                                              : a->causal == TG_CAUSAL_TOP_LEFT
                                                  ? 0
                                                  : (int)(a->n - a->m),
                                     .scale = (float)(a->scale * log2_e)};
}

#endif
