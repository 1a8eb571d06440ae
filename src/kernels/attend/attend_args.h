/* The argument of the kernels of attention. The host (C11) fills it. */
#ifndef TGI_ATTEND_ARGS_H
#define TGI_ATTEND_ARGS_H

#include "core/dtype.h" /* TGI_INLINE */
#include "kernels/divisor.h"
#include "tilegemm_attention.h"

#define TGI_ATTEND_LOG2_E 1.4426950408889634
#define TGI_ATTEND_MERGE_WARPS 4 /* rows of D that a block of the merge writes */

typedef struct tgi_attend_args {
    tg_attention attention;
    float scale, cap, cap_inverse; /* base 2; no cap: 0 */
    /* A query at place p sees keys p - before .. p + after; at most 2^30 - 1 each. */
    int32_t before, after, is_bottom; /* as in core/attention_mask.h */
    int32_t is_plain;                 /* 1: scores are scaled by a positive factor, and no more */
    int32_t shared_heads;             /* query heads whose rows share tiles; 1: no other does */
    int32_t head_groups;              /* head_count / shared_heads */
    int32_t kv_shares;                /* query heads that share a head of K and V */
    int32_t tile_count;               /* tiles of the rows of these heads */
    int32_t part_count, part_keys;    /* the keys go to blocks by parts of part_keys */
    int32_t has_units[3];             /* Q, K, V: 1 if 16 bytes at once can be copied */
    int32_t has_d_units;              /* 1 if 16 bytes of D at once can be stored */
    tgi_divisor page_rows;
    float *parts; /* with more than one part: sums of each part, see tgi_attend_part_floats */
} tgi_attend_args;

/* Returns the floats of a row of a part: the sums of V, the largest score, the sum of weights. */
TGI_INLINE int64_t tgi_attend_part_floats(int64_t v_head_size)
{
    return v_head_size + v_head_size % 2 + 2;
}

#define TGI_ATTEND_PITCH(head) ((head) + 8) /* floats from row to row of staged sums */

/* Returns the bytes of shared memory of a block: Q, and K and V of two steps; at the end the sums
 * of its rows are staged there. */
TGI_INLINE int32_t tgi_attend_shared_bytes(int32_t head, int32_t queries, int32_t keys)
{
    const int32_t tiles = 2 * head * (queries + 4 * keys);
    const int32_t sums = 4 * queries * TGI_ATTEND_PITCH(head);
    return tiles > sums ? tiles : sums;
}

#endif
