/* Declares types.def as C: enumerators by the words that rows of kernels.def use, and a table of
 * the types and of the precisions. It compiles as C11 and CUDA. */
#ifndef TGI_TYPES_H
#define TGI_TYPES_H

#include "tilegemm.h"

/* TGI_TYPE_bf16 is TG_TYPE_BF16. */
enum {
#define TGI_TYPE(suffix, word, bytes, kind, sum, d_types) TGI_TYPE_##word = TG_TYPE_##suffix,
#include "core/types.def"
#undef TGI_TYPE
};
#define TGI_TYPE_OF(word) ((tg_type)TGI_TYPE_##word)

/* Sets of types have a bit for each type: TGI_TYPES_bf16 is 1 << TG_TYPE_BF16. */
enum {
#define TGI_TYPE(suffix, word, bytes, kind, sum, d_types) TGI_TYPES_##word = 1 << TG_TYPE_##suffix,
#include "core/types.def"
#undef TGI_TYPE
    TGI_TYPES_fp8 = TGI_TYPES_fp8_e4m3 | TGI_TYPES_fp8_e5m2
};

/* TGI_BYTES_bf16 is 2, the bytes of an element, for macros. */
enum {
#define TGI_TYPE(suffix, word, bytes, kind, sum, d_types) TGI_BYTES_##word = bytes,
#include "core/types.def"
#undef TGI_TYPE
};

/* TGI_TYPE_COUNT types, whose enumerators run from 0. */
enum {
#define TGI_TYPE(suffix, word, bytes, kind, sum, d_types) TGI_TYPE_INDEX_##suffix,
#include "core/types.def"
#undef TGI_TYPE
    TGI_TYPE_COUNT
};

typedef enum tgi_type_kind { TGI_KIND_FLOAT, TGI_KIND_INT } tgi_type_kind;

typedef struct tgi_type_row {
    const char *name;
    int64_t bytes; /* bytes of an element */
    tgi_type_kind kind;
    tg_type sum;      /* type in which products are summed */
    unsigned d_types; /* set of types that D may have */
} tgi_type_row;

extern const tgi_type_row tgi_type_table[TGI_TYPE_COUNT];

/* Returns 1 if the type is in the set. */
static inline int tgi_type_is_in(tg_type type, unsigned types)
{
    return (int)(types >> type & 1u);
}

static inline int tgi_type_is_fp8(tg_type type)
{
    return tgi_type_is_in(type, TGI_TYPES_fp8);
}

/* Returns the bytes of an element, for a valid type. */
static inline int64_t tgi_type_bytes(tg_type type)
{
    return tgi_type_table[type].bytes;
}

/* Returns the bytes of a sum of products of the type. */
static inline int64_t tgi_type_sum_bytes(tg_type type)
{
    return tgi_type_table[tgi_type_table[type].sum].bytes;
}

enum {
#define TGI_PRECISION(suffix, name, types, slices, products, slice) TGI_PRECISION_INDEX_##suffix,
#include "core/types.def"
#undef TGI_PRECISION
    TGI_PRECISION_COUNT
};

typedef struct tgi_precision_row {
    const char *name;
    unsigned types;    /* set of input types */
    int slice_count;   /* slices of an FP32 operand; 0: it may not be sliced */
    int product_count; /* products of slices for each product of operands */
    tg_type slice;     /* type of a slice */
} tgi_precision_row;

extern const tgi_precision_row tgi_precision_table[TGI_PRECISION_COUNT];

#endif
