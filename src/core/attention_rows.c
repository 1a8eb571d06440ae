#include "core/attention_rows.h"

#include <stddef.h>

#define TGI_ATTENTION_IS_GROUPED_warps 0
#define TGI_ATTENTION_IS_GROUPED_groups 1
#define TGI_ATTENTION_IS_GROUPED_splits 0
#define TGI_ATTENTION_IS_GROUPED_clusters 0
#define TGI_ATTENTION_IS_SPLIT_warps 0
#define TGI_ATTENTION_IS_SPLIT_groups 0
#define TGI_ATTENTION_IS_SPLIT_splits 1
#define TGI_ATTENTION_IS_SPLIT_clusters 1
#define TGI_ATTENTION_CLUSTER_warps 1
#define TGI_ATTENTION_CLUSTER_groups 1
#define TGI_ATTENTION_CLUSTER_splits 1
#define TGI_ATTENTION_CLUSTER_clusters 8 /* every chip with clusters has these */

static const tgi_attention_row rows[] = {
#define TGI_ATTENTION_ROW(image, family, isa, type, queries, head, products, warps, keys, tiles,   \
                          resident)                                                                \
    {TGI_QUOTE_VALUE(TGI_ATTENTION_NAME(family, isa, type, queries, head)),                        \
     #image,                                                                                       \
     TGI_ISA_##isa,                                                                                \
     TGI_TYPE_OF(type),                                                                            \
     queries,                                                                                      \
     head,                                                                                         \
     TGI_ISA_##isa == TGI_ISA_sm90a,                                                               \
     TGI_ATTENTION_IS_GROUPED_##products,                                                          \
     TGI_ATTENTION_IS_SPLIT_##products,                                                            \
     TGI_ATTENTION_CLUSTER_##products,                                                             \
     warps,                                                                                        \
     keys,                                                                                         \
     tiles,                                                                                        \
     resident},
#include "core/attention_kernels.def"
#undef TGI_ATTENTION_ROW
};

const tgi_attention_row *tgi_attention_rows_get(int index)
{
    return index < (int)(sizeof rows / sizeof rows[0]) ? &rows[index] : NULL;
}
