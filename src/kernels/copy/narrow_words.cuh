/*
 * Converts operands of the matrix instructions 16 x 8 x 16, for the bodies for types of 16 and 8
 * bits. FP8 becomes FP16, which holds it exactly.
 */
#ifndef TGI_NARROW_WORDS_CUH
#define TGI_NARROW_WORDS_CUH

#include "kernels/ptx/convert.cuh"

template <int IsFp8> struct tgi_narrow {
    typedef uint16_t elem;
};
template <> struct tgi_narrow<1> {
    typedef uint8_t elem;
};

static constexpr int tgi_narrow_is_fp8(tg_type type)
{
    return type == TG_TYPE_FP8_E4M3 || type == TG_TYPE_FP8_E5M2;
}

/* Converts the two FP8 numbers in the lower half of a word to two FP16 numbers. */
template <int IsE5m2> static __device__ __forceinline__ uint32_t tgi_widen_pair(uint32_t pair)
{
    return IsE5m2 ? __byte_perm(pair, 0, 0x1404) : tgi_decode_e4m3_pair(pair);
}

/* Converts words of an operand. The instruction takes their elements in the order in which they
 * lie. Words of 16-bit types stay, and words of FP8 become twice as many. */
template <int IsFp8, int IsE5m2, int Count>
static __device__ __forceinline__ void tgi_widen(uint32_t (&wide)[IsFp8 ? 2 * Count : Count],
                                                 const uint32_t (&words)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i++) {
        if constexpr (IsFp8) {
            wide[2 * i] = tgi_widen_pair<IsE5m2>(words[i]);
            wide[2 * i + 1] = tgi_widen_pair<IsE5m2>(words[i] >> 16);
        } else {
            wide[i] = words[i];
        }
    }
}

#endif
