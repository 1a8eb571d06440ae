/* Declares which keys a query sees, for every device. */
#ifndef TGI_ATTENTION_MASK_H
#define TGI_ATTENTION_MASK_H

#include "tilegemm_attention.h"

#define TGI_ATTENTION_FAR (INT64_C(1) << 32) /* further than any two places are apart */

/* A query at place p sees those of keys p - before .. p + after that exist. Place p is the query's
 * number, plus keys - queries if is_bottom is 1. */
typedef struct tgi_attention_window {
    int64_t before, after; /* at most TGI_ATTENTION_FAR; both 0 or more */
    int is_bottom;
} tgi_attention_window;

static inline tgi_attention_window tgi_attention_find_window(const tg_attention *a)
{
    tgi_attention_window window = {a->keys_before >= 0 ? a->keys_before : TGI_ATTENTION_FAR,
                                   a->keys_after >= 0 ? a->keys_after : TGI_ATTENTION_FAR,
                                   a->causal == TG_CAUSAL_BOTTOM_RIGHT};
    if (a->causal != TG_CAUSAL_NONE)
        window.after = 0;
    return window;
}

#endif
