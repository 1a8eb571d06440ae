#include "core/dtype.h"
#include "tilegemm_lab.h"

#define TGI_STRING(x) #x
#define TGI_VERSION_TEXT(major, minor, patch)                                                      \
    TGI_STRING(major) "." TGI_STRING(minor) "." TGI_STRING(patch)

const char *tg_get_version(void)
{
    return TGI_VERSION_TEXT(TG_VERSION_MAJOR, TG_VERSION_MINOR, TG_VERSION_PATCH);
}

const char *tg_get_type_name(tg_type type)
{
    switch (type) {
#define TGI_TYPE(suffix, name, bytes)                                                              \
    case TG_TYPE_##suffix:                                                                         \
        return name;
#include "core/types.def"
#undef TGI_TYPE
    }
    return NULL;
}

int64_t tg_get_type_bytes(tg_type type)
{
    switch (type) {
#define TGI_TYPE(suffix, name, bytes)                                                              \
    case TG_TYPE_##suffix:                                                                         \
        return bytes;
#include "core/types.def"
#undef TGI_TYPE
    }
    return 0;
}

const char *tg_get_precision_name(tg_precision precision)
{
    switch (precision) {
#define TGI_PRECISION(suffix, name)                                                                \
    case TG_PRECISION_##suffix:                                                                    \
        return name;
#include "core/types.def"
#undef TGI_PRECISION
    }
    return NULL;
}

const char *tg_get_bias_name(tg_bias bias)
{
    switch (bias) {
#define TGI_BIAS(suffix, name)                                                                     \
    case TG_BIAS_##suffix:                                                                         \
        return name;
#include "core/types.def"
#undef TGI_BIAS
    }
    return NULL;
}

const char *tg_get_activation_name(tg_activation activation)
{
    switch (activation) {
#define TGI_ACTIVATION(suffix, name)                                                               \
    case TG_ACTIVATION_##suffix:                                                                   \
        return name;
#include "core/types.def"
#undef TGI_ACTIVATION
    }
    return NULL;
}

const char *tg_get_scale_name(tg_scale scale)
{
    switch (scale) {
#define TGI_SCALE(suffix, name)                                                                    \
    case TG_SCALE_##suffix:                                                                        \
        return name;
#include "core/types.def"
#undef TGI_SCALE
    }
    return NULL;
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
