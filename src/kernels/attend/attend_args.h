/* Declares the argument of the kernels of attention. The host (C11) fills it. */
#ifndef TGI_ATTEND_ARGS_H
#define TGI_ATTEND_ARGS_H

#include "core/dtype.h" /* TGI_INLINE */
#include "kernels/divisor.h"
#include "kernels/tma_map.h"
#include "tilegemm_attention.h"

#define TGI_ATTEND_LOG2_E 1.4426950408889634
#define TGI_ATTEND_HEAD_MAX 256       /* elements of a row */
#define TGI_ATTEND_RUN 16             /* keys that are copied together if no page ends among them */
#define TGI_ATTEND_MERGE_ROWS 4       /* rows of a block of the merge if splits are few */
#define TGI_ATTEND_MERGE_WARPS_MAX 16 /* most warps of a block of the merge */

typedef struct tgi_attend_args {
    tgi_tensor_map map[4]; /* K, V, Q, D: elements, rows, heads, entries or pages */
    tg_attention attention;
    float scale, cap, cap_inverse; /* scores are to base 2; cap 0: none */
    /* A query at place p sees keys p - before .. p + after; at most 2^30 - 1 each. */
    int32_t before, after, is_bottom; /* as in core/attention_mask.h */
    int32_t is_plain;                 /* 1: scores are only scaled by a positive factor */
    int32_t shared_heads;             /* query heads whose rows share tiles; 1: none share */
    tgi_divisor head_groups;          /* head_count / shared_heads */
    tgi_divisor kv_shares;            /* query heads that share a head of K and V */
    tgi_divisor query_count;          /* queries of each head; with lists, the most */
    tgi_divisor tile_count;           /* tiles of the rows of these heads */
    uint32_t block_count;             /* tiles of all rows, for each split */
    tgi_divisor section_groups[2];    /* groups of heads whose tiles come in turn; the last ones */
    tgi_divisor section_tiles;        /* tiles of the former, for each split */
    int32_t tile_rows;                /* rows of many queries: a multiple of 64, or of 8 */
    int32_t split_count;              /* blocks, or clusters, that share the keys of a tile */
    int32_t cluster_count;            /* blocks of a cluster; 1: no clusters */
    int32_t warp_split_count; /* warps of a block that share its keys; 1: all read all of them.
                                 Short sequences: groups of four warps */
    int32_t subtile_count;    /* subtiles of a block, computed one after another */
    int32_t split_keys;       /* keys of a block, or of each warp that shares them */
    int32_t kept_keys;        /* shared memory has room for so many keys of split_keys */
    int32_t lets_next_start;  /* 1: the stream's next kernel may start while this one runs */
    int32_t has_units[3];     /* Q, K, V: 1: 16 bytes can be copied at once */
    int32_t has_runs;         /* 1: no page ends within a run of keys */
    int32_t has_map[4];       /* K, V, Q, D: 1: TMA copies it */
    int32_t box_rows;         /* rows of a TMA box, a divisor of a step's keys */
    int32_t is_dense;         /* 1: tiles of K and V are dense (attend_dense.cuh) */
    int32_t has_d_units;      /* 1: 16 bytes of D can be stored at once */
    tgi_divisor page_rows;
    int32_t tile_places;      /* FP32, FP64: 1: K and V take turns in one place */
    tgi_divisor round_blocks; /* FP32, FP64: blocks of a round; every other round is reversed */
    void *splits; /* with more than one split: sums of each split, see tgi_attend_split_reals */
} tgi_attend_args;

/* Returns the numbers of a row of a split: the sums of V, the largest score, the sum of weights. */
TGI_INLINE int64_t tgi_attend_split_reals(int64_t v_head_size)
{
    return v_head_size + v_head_size % 2 + 2;
}

/* Returns the rows of D that a block of the merge writes. If splits are few, each of its warps has
 * a row; if they are many, all warps share one row. */
TGI_INLINE int32_t tgi_attend_count_merged(int32_t splits)
{
    return splits < 2 * TGI_ATTEND_MERGE_ROWS ? TGI_ATTEND_MERGE_ROWS : 1;
}

/* Returns the warps of a block of the merge. A warp that shares a row reads four splits of it or
 * more, four at a time. */
TGI_INLINE int32_t tgi_attend_count_merge_warps(int32_t splits)
{
    const int32_t rows = tgi_attend_count_merged(splits), sharers = (splits + 3) / 4;
    if (rows > 1)
        return rows;
    return sharers < TGI_ATTEND_MERGE_WARPS_MAX ? sharers : TGI_ATTEND_MERGE_WARPS_MAX;
}

#define TGI_ATTEND_BARRIER_BYTES 512

/* Returns the places for tiles of queries in a block of warpgroups. Those of larger heads leave no
 * room for a second. */
#define TGI_ATTEND_QUERY_PLACES(head) ((head) <= 128 ? 2 : 1)

/* Returns the bytes of shared memory of a block: Q, tiles of K and V, and barriers. */
TGI_INLINE int32_t tgi_attend_shared_bytes(int32_t head, int32_t queries, int32_t keys,
                                           int32_t tiles)
{
    return 2 * head * (queries + tiles * keys) + TGI_ATTEND_BARRIER_BYTES;
}

/* Bytes behind rows in shared memory of FP32 and FP64, and behind those of Q and K, by the bytes of
 * an element. */
#define TGI_ATTEND_PAD 16
#define TGI_ATTEND_KEY_PAD(bytes) ((bytes) == 8 ? 64 : TGI_ATTEND_PAD)

/* The queries of a tile of FP32 or FP64 are a multiple of this many. */
#define TGI_ATTEND_REAL_ROWS 8

/* Returns how many warps of FP32 or FP64 share rows: each forms the scores of a part of the keys of
 * a step, and then the sums of a part of the columns. */
#define TGI_ATTEND_REAL_SHARERS(head, queries, warps)                                              \
    ((head) > 128 || 16 * (warps) > (queries) ? 2 : 1)

/* Returns the bytes of shared memory of a block of FP32 or FP64: Q, tiles of K and V in one or two
 * places, weights, and the numbers of each row that its warps exchange. The block's warps have
 * `warp_rows` rows, of which the last ones may be no queries. */
TGI_INLINE int32_t tgi_attend_real_bytes(int32_t elem_bytes, int32_t head, int32_t queries,
                                         int32_t warp_rows, int32_t sharers, int32_t keys,
                                         int32_t places)
{
    const int32_t pad = TGI_ATTEND_KEY_PAD(elem_bytes);
    return (queries + keys) * (elem_bytes * head + pad) +
           (places > 1 ? keys * (elem_bytes * head + TGI_ATTEND_PAD) : 0) +
           warp_rows * (elem_bytes * keys + TGI_ATTEND_PAD) +
           (sharers > 1 ? warp_rows * elem_bytes * 2 : 0);
}

#define TGI_ATTEND_LANE_BYTES 64  /* bytes of a head that a lane has, in rows of few queries */
#define TGI_ATTEND_KEYS_AT_ONCE 2 /* keys that each lane of those reads together */

/* Returns how many lanes share a key in rows of few queries: a power of two. With fewer than four
 * the keys of a warp's step would be more than those of the row's. */
TGI_INLINE int32_t tgi_attend_count_lanes(int32_t head, int32_t elem_bytes)
{
    int32_t lanes = 4;
    while (lanes * TGI_ATTEND_LANE_BYTES < head * elem_bytes)
        lanes *= 2;
    return lanes;
}

/* Returns the bytes of shared memory of a block of few queries of FP32 or FP64: the queries, and of
 * each warp the sums, the largest score and the sum of weights of each. */
TGI_INLINE int32_t tgi_attend_few_queries_bytes(int32_t elem_bytes, int32_t queries, int32_t warps)
{
    return elem_bytes * queries * (TGI_ATTEND_HEAD_MAX + warps * (TGI_ATTEND_HEAD_MAX + 2));
}

/* Returns the bytes of the state of a warp that has 16 queries and `columns` columns of D, in rows
 * of few keys. */
TGI_INLINE int32_t tgi_attend_state_bytes(int32_t columns)
{
    return 512 * (columns / 8 + 1);
}

/* Returns the bytes of the scores that warps of a block of few keys add, for two steps in turn. */
TGI_INLINE int32_t tgi_attend_score_bytes(int32_t warps, int32_t sharers, int32_t keys)
{
    return sharers > 1 ? 2 * 512 * warps * keys / 8 : 0;
}

/* Returns the bytes of K and V that a block of few keys keeps in shared memory: `kept_keys` keys of
 * each of `warp_splits` warps, or 0 if a step's `keys` are as many. */
TGI_INLINE int32_t tgi_attend_kept_bytes(int32_t head, int32_t warp_splits, int32_t keys,
                                         int32_t kept_keys)
{
    return kept_keys > keys ? 4 * head * warp_splits * kept_keys : 0;
}

/* Returns the bytes of shared memory of a block of few keys: scores, kept keys, and states of
 * `warp_splits` warps that share out keys. `sharers` warps share the elements of the same heads. */
TGI_INLINE int32_t tgi_attend_few_keys_bytes(int32_t head, int32_t warps, int32_t sharers,
                                             int32_t warp_splits, int32_t keys, int32_t kept_keys)
{
    return tgi_attend_score_bytes(warps, sharers, keys) +
           (warp_splits - 1) * sharers * tgi_attend_state_bytes(head / sharers) +
           tgi_attend_kept_bytes(head, warp_splits, keys, kept_keys);
}

/* Returns the places for tiles of queries in a block of short sequences: two of each of its groups
 * of four warps, or one of each of its tiles if these are fewer. */
TGI_INLINE int32_t tgi_attend_short_places(int32_t subtiles, int32_t groups)
{
    return subtiles < 2 * groups ? subtiles : 2 * groups;
}

/* Returns the bytes of shared memory of a block of short sequences: K and V of all steps, tiles of
 * queries, and barriers. */
TGI_INLINE int32_t tgi_attend_short_bytes(int32_t head, int32_t queries, int32_t subtiles,
                                          int32_t groups, int32_t kept_keys)
{
    return tgi_attend_shared_bytes(head, tgi_attend_short_places(subtiles, groups) * queries,
                                   kept_keys, 2);
}

#endif
