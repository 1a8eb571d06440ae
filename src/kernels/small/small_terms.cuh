/* Adds C and a bias to an element of D, and applies its activation, for functions of family small
 * that take a microsecond. Functions that can request C and the bias before the sum is there do, so
 * that nothing waits for them alone. Args are arguments that have the epilogue, C and the bias. */
#ifndef TGI_SMALL_TERMS_CUH
#define TGI_SMALL_TERMS_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/small/small_shape.h"

/* A function's code has no terms, always those without GELU and SILU, or all of them if its
 * argument says so. */
typedef enum tgi_terms_kind { TGI_TERMS_NONE, TGI_TERMS_SIMPLE, TGI_TERMS_ASKED } tgi_terms_kind;

/* C and the bias of an element: of FP64, or the bits of another type. */
template <typename Bits> struct tgi_short_terms {
    Bits c, bias;
};

/* The terms of a product by its type. */
template <tg_type Type> struct tgi_terms_of {
    typedef uint32_t bits;
};
template <> struct tgi_terms_of<TG_TYPE_FP64> {
    typedef double bits;
};

/* Reads element `index` of C or a bias, and does not wait for it. */
template <typename Bits>
static __device__ __forceinline__ Bits tgi_read_short_term(const void *data, int64_t index,
                                                           tg_type type)
{
    if (sizeof(Bits) == 8 || TGI_LEAST_D_BYTES == 4 || type == TG_TYPE_FP32)
        return static_cast<const Bits *>(data)[index];
    return static_cast<const uint16_t *>(data)[index];
}

static __device__ __forceinline__ tg_type tgi_find_short_d_type(const tgi_sums_args &args)
{
    return static_cast<tg_type>(args.d_type & (TGI_SHORT_PAIRS - 1));
}

/* The compiler puts code for terms that are asked for behind the rest. */
template <tgi_terms_kind Kind = TGI_TERMS_ASKED>
static __device__ __forceinline__ bool tgi_has_short_terms(const tgi_sums_args &args)
{
    return Kind == TGI_TERMS_SIMPLE ||
           (Kind == TGI_TERMS_ASKED && __builtin_expect(args.d_type >= TGI_SHORT_TERMS, 0));
}

/* Requests C and the bias of an element. */
template <typename Bits, typename Args>
static __device__ __forceinline__ tgi_short_terms<Bits>
tgi_request_terms(const Args &args, tg_type type, int row, int col)
{
    tgi_short_terms<Bits> own = {};
    if (args.epilogue.beta != 0.0)
        own.c = tgi_read_short_term<Bits>(
            args.c, blockIdx.z * args.c_batch + row * args.c_row + col * args.c_col, type);
    if (args.epilogue.bias != TG_BIAS_NONE)
        own.bias = tgi_read_short_term<Bits>(args.bias,
                                             args.epilogue.bias == TG_BIAS_ROW ? row : col, type);
    return own;
}

/* Applies alpha, C and the bias to the element's sum. */
static __device__ __forceinline__ float
tgi_combine_short_terms(const tgi_epilogue &e, tg_type type, const tgi_short_terms<uint32_t> &own,
                        float sum)
{
    const tgi_terms_fp32 all = {static_cast<float>(e.alpha), tgi_decode_element(own.c, type),
                                tgi_decode_element(own.bias, type)};
    return tgi_combine_fp32(&e, &all, sum);
}

static __device__ __forceinline__ double tgi_combine_short_terms(const tgi_epilogue &e, tg_type,
                                                                 const tgi_short_terms<double> &own,
                                                                 double sum)
{
    const tgi_terms_fp64 all = {e.alpha, own.c, own.bias};
    return tgi_combine_fp64(&e, &all, sum);
}

/* Applies the epilogue to the element's sum. */
template <tgi_terms_kind Kind = TGI_TERMS_ASKED, typename Args, typename Bits, typename Sum>
static __device__ __forceinline__ Sum tgi_apply_terms(const Args &args, tg_type type,
                                                      const tgi_short_terms<Bits> &own, Sum sum)
{
    const tgi_epilogue &e = args.epilogue;
    sum = tgi_combine_short_terms(e, type, own, sum);
    if (e.activation == TG_ACTIVATION_RELU)
        return tgi_limit_sum(sum);
    if constexpr (Kind == TGI_TERMS_ASKED)
        if (e.activation != TG_ACTIVATION_NONE)
            return tgi_call_activation(sum, e.activation, type != TG_TYPE_FP32);
    return sum;
}

#endif
