#include "core/attention_rows.h"

#include <stddef.h>

static const tgi_attention_row rows[] = {
#define TGI_ATTENTION_ROW(image, family, isa, type, queries, head, products, warps, keys,          \
                          resident)                                                                \
    {TGI_QUOTE_VALUE(TGI_ATTENTION_NAME(family, isa, type, queries, head)),                        \
     #image,                                                                                       \
     TGI_ISA_##isa,                                                                                \
     TGI_TYPE_OF(type),                                                                            \
     queries,                                                                                      \
     head,                                                                                         \
     warps,                                                                                        \
     keys,                                                                                         \
     resident},
#include "core/attention_kernels.def"
#undef TGI_ATTENTION_ROW
};

const tgi_attention_row *tgi_attention_rows_get(int index)
{
    return index < (int)(sizeof rows / sizeof rows[0]) ? &rows[index] : NULL;
}
