#include "core/dtype.h"
#include "core/types.h"
#include "tilegemm_lab.h"

#define TGI_STRING(x) #x
#define TGI_VERSION_TEXT(major, minor, patch)                                                      \
    TGI_STRING(major) "." TGI_STRING(minor) "." TGI_STRING(patch)

const char *tg_get_version(void)
{
    return TGI_VERSION_TEXT(TG_VERSION_MAJOR, TG_VERSION_MINOR, TG_VERSION_PATCH);
}

const tgi_type_row tgi_type_table[TGI_TYPE_COUNT] = {
#define TGI_TYPE(suffix, word, bytes, kind, sum, d_types)                                          \
    [TG_TYPE_##suffix] = {#word, bytes, TGI_KIND_##kind, TG_TYPE_##sum, d_types},
#include "core/types.def"
#undef TGI_TYPE
};

const tgi_precision_row tgi_precision_table[TGI_PRECISION_COUNT] = {
#define TGI_PRECISION(suffix, name, types, slices, products, slice)                                \
    [TG_PRECISION_##suffix] = {name, types, slices, products, TG_TYPE_##slice},
#include "core/types.def"
#undef TGI_PRECISION
};

static const char *const bias_names[] = {
#define TGI_BIAS(suffix, name) [TG_BIAS_##suffix] = name,
#include "core/types.def"
#undef TGI_BIAS
};

static const char *const activation_names[] = {
#define TGI_ACTIVATION(suffix, name) [TG_ACTIVATION_##suffix] = name,
#include "core/types.def"
#undef TGI_ACTIVATION
};

static const char *const scale_names[] = {
#define TGI_SCALE(suffix, name) [TG_SCALE_##suffix] = name,
#include "core/types.def"
#undef TGI_SCALE
};

#define COUNT_OF(table) (sizeof(table) / sizeof(table)[0])

const char *tg_get_type_name(tg_type type)
{
    return (unsigned)type < TGI_TYPE_COUNT ? tgi_type_table[type].name : NULL;
}

int64_t tg_get_type_bytes(tg_type type)
{
    return (unsigned)type < TGI_TYPE_COUNT ? tgi_type_table[type].bytes : 0;
}

const char *tg_get_precision_name(tg_precision precision)
{
    return (unsigned)precision < TGI_PRECISION_COUNT ? tgi_precision_table[precision].name : NULL;
}

const char *tg_get_bias_name(tg_bias bias)
{
    return (unsigned)bias < COUNT_OF(bias_names) ? bias_names[bias] : NULL;
}

const char *tg_get_activation_name(tg_activation activation)
{
    return (unsigned)activation < COUNT_OF(activation_names) ? activation_names[activation] : NULL;
}

const char *tg_get_scale_name(tg_scale scale)
{
    return (unsigned)scale < COUNT_OF(scale_names) ? scale_names[scale] : NULL;
}

float tg_decode_bits(tg_type type, uint16_t bits)
{
    return type == TG_TYPE_BF16       ? tgi_fp32_from_bf16(bits)
           : type == TG_TYPE_FP16     ? tgi_fp32_from_fp16(bits)
           : type == TG_TYPE_FP8_E4M3 ? tgi_fp32_from_e4m3((uint8_t)bits)
                                      : tgi_fp32_from_e5m2((uint8_t)bits);
}

uint16_t tg_encode_bits(tg_type type, float value)
{
    return type == TG_TYPE_BF16       ? tgi_bf16_from_fp32(value)
           : type == TG_TYPE_FP16     ? tgi_fp16_from_fp32(value)
           : type == TG_TYPE_FP8_E4M3 ? tgi_e4m3_from_fp32(value)
                                      : tgi_e5m2_from_fp32(value);
}
