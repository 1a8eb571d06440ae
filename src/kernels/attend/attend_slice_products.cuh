/*
 * Forms the products of attention on FP32 operands by the matrix instructions of TF32. A number is
 * the sum of two slices: the nearest TF32 number, and what is left, of which the instruction reads
 * all but a rest of at most 2^-23 of the number. The product of the second slices, at most 2^-22 of
 * the whole, is left out. A product is thus off by at most 8 units roundoff, and numbers below
 * 2^-114, whose second slice is subnormal, lose more. Numbers whose first slice is infinite, Inf
 * and NaN make sums NaN; such sums are formed again by multiply-adds.
 */
#ifndef TGI_ATTEND_SLICE_PRODUCTS_CUH
#define TGI_ATTEND_SLICE_PRODUCTS_CUH

#include "kernels/attend/attend_real_products.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* The slices of the lane's numbers of an operand. */
template <int Count> struct tgi_attend_slices {
    uint32_t slice[2][Count];

    __device__ __forceinline__ void set(int i, float x)
    {
        slice[0][i] = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
        slice[1][i] = __float_as_uint(x - __uint_as_float(slice[0][i]));
    }
};

/* Adds the products of slices of Blocks x 16 rows of A and Count x 8 columns of B, those of the
 * smaller slices first. */
template <int Blocks, int Count>
static __device__ __forceinline__ void
tgi_attend_multiply_slices(const tgi_attend_slices<4> (&a)[Blocks],
                           const tgi_attend_slices<2> (&b)[Count], float (&sums)[Blocks][Count][4])
{
    TGI_FOR_UNROLLED(i, 3)
    TGI_FOR_UNROLLED(j, Count)
    TGI_FOR_UNROLLED(block, Blocks)
    {
        const uint32_t(&columns)[2] = b[j].slice[i == 1];
        tgi_multiply_tf32(sums[block][j], a[block].slice[i == 0], columns[0], columns[1]);
    }
}

template <int Head, int Blocks, int Keys, int Sharers>
struct tgi_attend_real_products<TG_TYPE_FP32, Head, Blocks, Keys, Sharers, 1> {
    typedef tgi_attend_sharing_lanes<Sharers> Lanes;
    enum { PITCH = 4 * Head + TGI_ATTEND_KEY_PAD(4) };
    enum { V_PITCH = 4 * Head + TGI_ATTEND_PAD, WEIGHT_PITCH = 4 * Keys + TGI_ATTEND_PAD };
    enum { PASS = 32, IS_SLICED = 1 };
    struct weight_set {
    };

    /* Returns the first of the lane's columns 2 j and 2 j + 1. It has 8 neighbours of each 32. */
    static __device__ __forceinline__ int find_pair(int j)
    {
        return j / 4 * 32 + Lanes::find_column() * 8 + j % 4 * 2;
    }

    /* A product may sum elements in any order, so that a lane reads units of 16 bytes, and of each
     * two units one after the other, which makes lanes read different banks. */
    template <int Count>
    static __device__ __forceinline__ void score(uint32_t q, uint32_t k, int size,
                                                 float (&scores)[Blocks][Count][4])
    {
        q += Lanes::find_row() * PITCH + Lanes::find_column() * 32;
        k += Lanes::find_row() * PITCH + Lanes::find_column() * 32;
        tgi_attend_zero(scores);
#pragma unroll 1
        for (int i = 0; i < (size + 31) / 32 * 2; i++) {
            const int at = i / 2 * 128 + i % 2 * 16;
            float line[Blocks][2][4], key[Count][4];
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(half, 2)
            tgi_attend_read_unit(line[b][half], q + at + (16 * b + 8 * half) * PITCH);
            TGI_FOR_UNROLLED(j, Count)
            tgi_attend_read_unit(key[j], k + at + 8 * j * PITCH);
            TGI_FOR_UNROLLED(e, 2)
            {
                tgi_attend_slices<4> rows[Blocks];
                tgi_attend_slices<2> columns[Count];
                TGI_FOR_UNROLLED(x, 4)
                TGI_FOR_UNROLLED(b, Blocks)
                rows[b].set(x, line[b][x % 2][2 * e + x / 2]);
                TGI_FOR_UNROLLED(x, 2)
                TGI_FOR_UNROLLED(j, Count)
                columns[j].set(x, key[j][2 * e + x]);
                tgi_attend_multiply_slices(rows, columns, scores);
            }
        }
    }

    static __device__ __forceinline__ void read_set(uint32_t, weight_set &)
    {
    }

    /* Tile j of 8 columns has every fourth column of the pass, from column j on, so that a lane
     * reads a unit of a row of V for four tiles. */
    static __device__ __forceinline__ void add(const weight_set &, uint32_t weights, uint32_t v,
                                               int count, float (&sums)[Blocks][PASS / 8][4])
    {
        float tiles[Blocks][4][4];
        weights += Lanes::find_row() * WEIGHT_PITCH + Lanes::find_column() * 8;
        v += Lanes::find_column() * 2 * V_PITCH + Lanes::find_row() * 16;
        tgi_attend_zero(tiles);
#pragma unroll 1
        for (int key = 0; key < count; key += 8) {
            tgi_attend_slices<4> rows[Blocks];
            tgi_attend_slices<2> columns[4];
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(half, 2)
            {
                float weight[2];
                tgi_read_shared_8(weights + (16 * b + 8 * half) * WEIGHT_PITCH, weight);
                TGI_FOR_UNROLLED(x, 2)
                rows[b].set(2 * x + half, weight[x]);
            }
            TGI_FOR_UNROLLED(x, 2)
            {
                float value[4];
                tgi_attend_read_unit(value, v + x * V_PITCH);
                TGI_FOR_UNROLLED(j, 4)
                columns[j].set(x, value[j]);
            }
            tgi_attend_multiply_slices(rows, columns, tiles);
            weights += 32;
            v += 8 * V_PITCH;
        }
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(j, 4)
        TGI_FOR_UNROLLED(i, 4)
        sums[b][j / 2 + i % 2 * 2][i / 2 * 2 + j % 2] = tiles[b][j][i];
    }
};
#endif

#endif
