#include "core/attention_rows.h"

#include <stddef.h>

/* The kind of a row, whether TMA copies its operands, and the most blocks of a cluster, which is
 * eight on every chip with clusters. */
#define TRAITS_warps TGI_ATTENTION_WIDE, 0, 1
#define TRAITS_groups TGI_ATTENTION_WIDE, 1, 1
#define TRAITS_splits TGI_ATTENTION_THIN, 0, 1
#define TRAITS_clusters TGI_ATTENTION_THIN, 1, 8
#define TRAITS_multiply_adds TGI_ATTENTION_WIDE, 0, 1
#define TRAITS_few_queries TGI_ATTENTION_FEW_QUERIES, 0, 1
#define TRAITS_few_keys TGI_ATTENTION_FEW_KEYS, 0, 1
#define TRAITS_short_sequences TGI_ATTENTION_SHORT, 1, 1

static const tgi_attention_row rows[] = {
#define TGI_ATTENTION_ROW(image, family, isa, type, queries, head, products, warps, keys, tiles,   \
                          resident)                                                                \
    {TGI_QUOTE_VALUE(TGI_ATTENTION_NAME(family, isa, type, queries, head)),                        \
     #image,                                                                                       \
     TGI_ISA_##isa,                                                                                \
     TGI_TYPE_OF(type),                                                                            \
     queries,                                                                                      \
     head,                                                                                         \
     TRAITS_##products,                                                                            \
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
