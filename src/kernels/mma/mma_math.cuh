/*
 * Declares the math of family mma: what an element is, and how a warp multiplies fragments. A
 * fragment is 32 bytes along k of 16 entries of an operand. A math has
 *
 *     elem                     an element as memory holds it; types of 16 bits have a `type` too
 *     turns                    turns of a loop in which the products of all fragments are added
 *     words                    32-bit words of a fragment that the instructions of a turn take
 *     is_promoted              1: the sums of a stage are formed apart and added in FP32
 *     prepare(read)            changes the words of a fragment that was read
 *     take<IsA>(word, read, t) makes those of turn t from the four that were read
 *     multiply(sum, a, b, h)   adds the turn's products of a fragment of A and entries 8 h ..
 *                              8 h + 7 of one of B
 */
#ifndef TGI_MMA_MATH_CUH
#define TGI_MMA_MATH_CUH

#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/warp_mma.cuh"

template <int Bytes> struct tgi_mma_elem {
    typedef uint8_t type;
};
template <> struct tgi_mma_elem<2> {
    typedef uint16_t type;
};

/* This base passes words to instructions as they were read. */
struct tgi_mma_words {
    static constexpr int turns = 1, words = 4, is_promoted = 0;

    static __device__ __forceinline__ void prepare(uint32_t (&)[4])
    {
    }

    template <int IsA>
    static __device__ __forceinline__ void take(uint32_t (&word)[4], const uint32_t (&read)[4], int)
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[i] = read[i];
    }
};

template <tg_type Type> struct tgi_mma_16_bits : tgi_mma_words {
    typedef uint16_t elem;
    static constexpr tg_type type = Type;

    static __device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[4], int h)
    {
        tgi_multiply_16x8x16<Type>(sum, a, b[2 * h], b[2 * h + 1]);
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* FP32 that was rounded to TF32 ahead of the kernel (kernels/copy/repack.cu). */
struct tgi_mma_rounded_tf32 : tgi_mma_words {
    typedef uint32_t elem;

    static __device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[4], int h)
    {
        tgi_multiply_tf32(sum, a, b[2 * h], b[2 * h + 1]);
    }
};

/* FP32, rounded to TF32 in registers. */
struct tgi_mma_tf32 : tgi_mma_rounded_tf32 {
    static __device__ __forceinline__ void prepare(uint32_t (&read)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            read[i] = tgi_round_tf32(read[i]);
    }
};
#endif

/* FP8 by instructions of FP8, which keep 13 fraction bits of a sum. */
template <tg_type Type, tg_type B_type> struct tgi_mma_fp8 : tgi_mma_words {
    typedef uint8_t elem;
    static constexpr int is_promoted = 1;

    static __device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[4], int h)
    {
        tgi_multiply_fp8<Type, B_type>(sum, a, b[2 * h], b[2 * h + 1]);
    }
};

/* FP8 by instructions of FP16, which hold it exactly. A word becomes two, the first two of its four
 * neighbours along k and the other two. Their place in an instruction's k is free. */
template <tg_type Type, tg_type B_type> struct tgi_mma_wide_fp8 : tgi_mma_words {
    typedef uint8_t elem;
    static constexpr int words = 8;

    template <int IsA>
    static __device__ __forceinline__ void take(uint32_t (&word)[8], const uint32_t (&read)[4], int)
    {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint32_t pair = i % 2 ? read[i / 2] >> 16 : read[i / 2];
            word[i] = (IsA ? Type : B_type) == TG_TYPE_FP8_E5M2 ? __byte_perm(pair, 0, 0x1404)
                                                                : tgi_decode_e4m3_pair(pair);
        }
    }

    static __device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[8],
                                                    const uint32_t (&b)[8], int h)
    {
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
            const uint32_t own[4] = {a[i], a[i + 2], a[i + 1], a[i + 3]};
            tgi_multiply_16x8x16<TG_TYPE_FP16>(sum, own, b[4 * h + i / 2], b[4 * h + i / 2 + 1]);
        }
    }
};

/* Types of 16 and 8 bits by FP32 multiply-adds, in the order of k. It serves chips without
 * instructions of the type, and precisions that round every sum. A turn multiplies two words along
 * k: few chips need these kernels, and without turns they take twice the code. A lane reads what
 * its sums need: of A the words of row lane / 4, then of the row eight below; of B, for both halves
 * of its entries, those of column 2 (lane % 4), then of the next one. */
template <tg_type Type, tg_type B_type> struct tgi_mma_fma : tgi_mma_words {
    static constexpr int elem_bytes = Type == TG_TYPE_BF16 || Type == TG_TYPE_FP16 ? 2 : 1;
    typedef typename tgi_mma_elem<elem_bytes>::type elem;
    static constexpr tg_type type = Type;
    static constexpr int turns = 4, words = 8;

    template <int IsA>
    static __device__ __forceinline__ void take(uint32_t (&word)[8], const uint32_t (&read)[4],
                                                int turn)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < (IsA ? 4 : 8); i++) {
            const int line = i / 2 % 2, half = i / 4;
            const int group = IsA ? lane / 4 : lane % 4 * 2 + line;
            const uint32_t low = read[IsA ? line : half * 2];
            const uint32_t high = read[IsA ? line + 2 : half * 2 + 1];
            word[i] = __shfl_sync(~0u, turn < 2 ? low : high, group * 4 + turn % 2 * 2 + i % 2);
        }
    }

    static __device__ __forceinline__ float decode(uint32_t word, int index, tg_type type)
    {
        if (type == TG_TYPE_BF16)
            return __uint_as_float(index ? word & 0xffff0000u : word << 16);
        if (type == TG_TYPE_FP8_E4M3)
            word = tgi_decode_e4m3_pair(word >> index / 2 * 16);
        else if (type == TG_TYPE_FP8_E5M2)
            word = __byte_perm(word >> index / 2 * 16, 0, 0x1404);
        return tgi_decode_fp16(static_cast<uint16_t>(word >> index % 2 * 16));
    }

    static __device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[8],
                                                    const uint32_t (&b)[8], int h)
    {
#pragma unroll
        for (int i = 0; i < 2 * 4 / elem_bytes; i++) {
            const int k = i * elem_bytes / 4, index = i % (4 / elem_bytes);
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[j] = fmaf(decode(a[j / 2 * 2 + k], index, Type),
                              decode(b[4 * h + j % 2 * 2 + k], index, B_type), sum[j]);
        }
    }
};

/* Names the slices of A and of B that a product multiplies. */
struct tgi_mma_pair {
    int a, b;
};

/* Finds a product of a precision by its number, in an order in which most products share a slice
 * with the one before. It is a slice of B, whose fragments are more, if Is_b_kept is 1. The largest
 * product, of both first slices, is the last, so that the others lose nothing beside it. */
template <int Count, int Is_b_kept>
static __device__ constexpr tgi_mma_pair tgi_mma_find_pair(int product)
{
    constexpr tgi_mma_pair three[] = {{0, 1}, {1, 0}, {0, 0}};
    constexpr tgi_mma_pair six[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};
    constexpr tgi_mma_pair nine[] = {{2, 2}, {1, 2}, {0, 2}, {0, 1}, {1, 1},
                                     {2, 1}, {2, 0}, {1, 0}, {0, 0}};
    const tgi_mma_pair pair = Count == 3   ? three[product]
                              : Count == 6 ? six[product]
                                           : nine[product];
    return Is_b_kept ? pair : tgi_mma_pair{pair.b, pair.a};
}

#endif
