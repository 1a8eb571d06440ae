/*
 * Forms the products of attention on FP32 and FP64 operands in shared memory: scores of a step, and
 * weights times V. The products of FP32 are multiply-adds of CUDA cores, those of FP64 matrix
 * instructions, which round as multiply-adds do.
 *
 * Rows lie apart so that lanes that read at once read different banks.
 */
#ifndef TGI_ATTEND_REAL_PRODUCTS_CUH
#define TGI_ATTEND_REAL_PRODUCTS_CUH

#include "kernels/attend/attend_scores.cuh"
#include "kernels/ptx/warp_mma_fp64.cuh"

/* Lanes of mma.sync, of `Sharers` warps that share rows. */
template <int Sharers> struct tgi_attend_sharing_lanes : tgi_attend_lanes {
    static __device__ __forceinline__ int find_warp(void)
    {
        return tgi_thread() / 32 / Sharers;
    }
};

/* Lanes whose numbers differ in bit 0 have the same row, and those that differ in bit 1 the same
 * column, so that a read of 16 bytes of either takes two turns of shared memory in place of
 * four. */
template <int Sharers> struct tgi_attend_paired_lanes : tgi_attend_sharing_lanes<Sharers> {
    static __device__ __forceinline__ int find_row(void)
    {
        return tgi_thread() % 16 / 2;
    }

    static __device__ __forceinline__ int find_column(void)
    {
        return tgi_thread() % 2 + tgi_thread() % 32 / 16 * 2;
    }

    template <typename T> static __device__ __forceinline__ T exchange(T value, int bit)
    {
        return __shfl_xor_sync(~0u, value, bit == 1 ? 1 : 16);
    }
};

/* Read a number. */
static __device__ __forceinline__ void tgi_attend_read_one(float &value, uint32_t shared)
{
    value = tgi_read_shared_4(shared);
}

static __device__ __forceinline__ void tgi_attend_read_one(double &value, uint32_t shared)
{
    float word[2];
    tgi_read_shared_8(shared, word);
    value = __hiloint2double(static_cast<int>(__float_as_uint(word[1])),
                             static_cast<int>(__float_as_uint(word[0])));
}

/* Read two neighbouring numbers. */
static __device__ __forceinline__ void tgi_attend_read_two(float (&values)[2], uint32_t shared)
{
    tgi_read_shared_8(shared, values);
}

static __device__ __forceinline__ void tgi_attend_read_two(double (&values)[2], uint32_t shared)
{
    tgi_attend_read_unit(values, shared);
}

/* Write a number. */
static __device__ __forceinline__ void tgi_attend_write_one(uint32_t shared, float value)
{
    tgi_write_shared_4(shared, value);
}

static __device__ __forceinline__ void tgi_attend_write_one(uint32_t shared, double value)
{
    tgi_write_shared_8(shared, __uint_as_float(static_cast<uint32_t>(__double2loint(value))),
                       __uint_as_float(static_cast<uint32_t>(__double2hiint(value))));
}

/* Write two neighbouring numbers. */
static __device__ __forceinline__ void tgi_attend_write_two(uint32_t shared, float first,
                                                            float second)
{
    tgi_write_shared_8(shared, first, second);
}

static __device__ __forceinline__ void tgi_attend_write_two(uint32_t shared, double first,
                                                            double second)
{
    tgi_write_shared_unit(shared, {static_cast<uint32_t>(__double2loint(first)),
                                   static_cast<uint32_t>(__double2hiint(first)),
                                   static_cast<uint32_t>(__double2loint(second)),
                                   static_cast<uint32_t>(__double2hiint(second))});
}

/* Products by multiply-adds for a step of Keys keys, of Sharers warps that share rows. A warp has
 * Blocks x 16 queries, and a pass the sums of PASS columns of V. */
template <typename Real, int Head, int Blocks, int Keys, int Sharers>
struct tgi_attend_plain_products {
    typedef tgi_attend_paired_lanes<Sharers> Lanes;
    enum { BYTES = sizeof(Real), UNIT = 16 / BYTES };
    enum { PITCH = BYTES * Head + TGI_ATTEND_KEY_PAD(BYTES) };
    enum { V_PITCH = BYTES * Head + TGI_ATTEND_PAD, WEIGHT_PITCH = BYTES * Keys + TGI_ATTEND_PAD };
    enum { PASS = 32, IS_SLICED = 0 };
    struct weight_set {
    };

    /* Returns the first of the lane's columns 2 j and 2 j + 1. It has 4 neighbours of each 16. */
    static __device__ __forceinline__ int find_pair(int j)
    {
        return j / 2 * 16 + Lanes::find_column() * 4 + j % 2 * 2;
    }

    /* Forms the scores of `size` elements of the warp's rows at `q` with its keys at `k`. */
    template <int Count>
    static __device__ __forceinline__ void score(uint32_t q, uint32_t k, int size,
                                                 Real (&scores)[Blocks][Count][4])
    {
        q += Lanes::find_row() * PITCH;
        k += Lanes::find_column() * 2 * PITCH;
        tgi_attend_zero(scores);
#pragma unroll 1
        for (int at = 0; at < size; at += UNIT) {
            Real line[Blocks][2][UNIT];
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(half, 2)
            tgi_attend_read_unit(line[b][half], q + (16 * b + 8 * half) * PITCH);
            TGI_FOR_UNROLLED(j, Count)
            TGI_FOR_UNROLLED(i, 2)
            {
                Real key[UNIT];
                tgi_attend_read_unit(key, k + (8 * j + i) * PITCH);
                TGI_FOR_UNROLLED(e, UNIT)
                TGI_FOR_UNROLLED(b, Blocks)
                TGI_FOR_UNROLLED(half, 2)
                scores[b][j][2 * half + i] =
                    tgi_attend_multiply_add(line[b][half][e], key[e], scores[b][j][2 * half + i]);
            }
            q += 16;
            k += 16;
        }
    }

    static __device__ __forceinline__ void read_set(uint32_t, weight_set &)
    {
    }

    /* Forms the products of the warp's weights of `count` keys, a multiple of 4, with columns of V
     * from address `v` on. Sums of a row are formed in order and those of the next in reverse, so
     * that a factor of a product is often that of the one before, in the operand cache. */
    static __device__ __forceinline__ void add(const weight_set &, uint32_t weights, uint32_t v,
                                               int count, Real (&sums)[Blocks][PASS / 8][4])
    {
        weights += Lanes::find_row() * WEIGHT_PITCH;
        v += Lanes::find_column() * 4 * BYTES;
        tgi_attend_zero(sums);
#pragma unroll 1
        for (int key = 0; key < count; key += UNIT) {
            Real weight[2 * Blocks][UNIT];
            TGI_FOR_UNROLLED(r, 2 * Blocks)
            tgi_attend_read_unit(weight[r], weights + 8 * r * WEIGHT_PITCH);
            TGI_FOR_UNROLLED(e, UNIT)
            {
                Real value[PASS / 4 / UNIT][UNIT];
                TGI_FOR_UNROLLED(unit, PASS / 4 / UNIT)
                tgi_attend_read_unit(value[unit], v + e * V_PITCH + unit * UNIT / 4 * 16 * BYTES +
                                                      unit * UNIT % 4 * BYTES);
                TGI_FOR_UNROLLED(r, 2 * Blocks)
                TGI_FOR_UNROLLED(j, PASS / 4)
                {
                    const int x = r % 2 ? PASS / 4 - 1 - j : j;
                    Real &sum = sums[r / 2][x / 2][r % 2 * 2 + x % 2];
                    sum = tgi_attend_multiply_add(weight[r][e], value[x / UNIT][x % UNIT], sum);
                }
            }
            weights += 16;
            v += UNIT * V_PITCH;
        }
    }
};

/* Products of FP32, and of FP64 if HasMatrices is 0, are multiply-adds. */
template <tg_type Type, int Head, int Blocks, int Keys, int Sharers, int HasMatrices>
struct tgi_attend_real_products
    : tgi_attend_plain_products<tgi_attend_real<Type>, Head, Blocks, Keys, Sharers> {
};

template <int Head, int Blocks, int Keys, int Sharers>
struct tgi_attend_real_products<TG_TYPE_FP64, Head, Blocks, Keys, Sharers, 1> {
    typedef tgi_attend_sharing_lanes<Sharers> Lanes;
    enum { PITCH = 8 * Head + TGI_ATTEND_KEY_PAD(8) };
    enum { V_PITCH = 8 * Head + TGI_ATTEND_PAD, WEIGHT_PITCH = 8 * Keys + TGI_ATTEND_PAD };
    enum { PASS = 32, IS_SLICED = 0 };
    struct weight_set {
        double rows[Keys / 8][Blocks][2][2]; /* weights of the lane's two keys of each 8 */
    };

    static __device__ __forceinline__ int find_pair(int j)
    {
        return 8 * j + Lanes::find_column() * 2;
    }

    /* The lane's numbers of 8 elements of queries and keys. */
    template <int Count> struct fragment {
        double rows[Blocks][2][2], keys[Count][2];

        __device__ __forceinline__ void read(uint32_t q, uint32_t k)
        {
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(half, 2)
            tgi_attend_read_unit(rows[b][half], q + (16 * b + 8 * half) * PITCH);
            TGI_FOR_UNROLLED(j, Count)
            tgi_attend_read_unit(keys[j], k + 8 * j * PITCH);
        }

        __device__ __forceinline__ void multiply(double (&scores)[Blocks][Count][4]) const
        {
            TGI_FOR_UNROLLED(j, Count)
            TGI_FOR_UNROLLED(b, Blocks)
            tgi_multiply_fp64_16x8x8(scores[b][j], rows[b], keys[j]);
        }
    };

    template <int Count>
    static __device__ __forceinline__ void score(uint32_t q, uint32_t k, int size,
                                                 double (&scores)[Blocks][Count][4])
    {
        fragment<Count> part;
        q += Lanes::find_row() * PITCH + Lanes::find_column() * 16;
        k += Lanes::find_row() * PITCH + Lanes::find_column() * 16;
        tgi_attend_zero(scores);
#pragma unroll 1
        for (int at = 0; at < size; at += 8) {
            part.read(q, k);
            part.multiply(scores);
            q += 64;
            k += 64;
        }
    }

    /* Reads the weights that the lane multiplies, for all passes. */
    static __device__ __forceinline__ void read_set(uint32_t weights, weight_set &set)
    {
        weights += Lanes::find_row() * WEIGHT_PITCH + Lanes::find_column() * 16;
        TGI_FOR_UNROLLED(t, Keys / 8)
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        {
            tgi_attend_read_unit(set.rows[t][b][half],
                                 weights + (16 * b + 8 * half) * WEIGHT_PITCH + 64 * t);
        }
    }

    /* The lane's values of 8 keys and the columns of a pass. */
    struct value_set {
        double value[PASS / 8][2];

        __device__ __forceinline__ void read(uint32_t v)
        {
            TGI_FOR_UNROLLED(j, PASS / 8)
            TGI_FOR_UNROLLED(e, 2)
            tgi_attend_read_one(value[j][e], v + e * V_PITCH + j * 64);
        }
    };

    static __device__ __forceinline__ void add(const weight_set &set, uint32_t, uint32_t v, int,
                                               double (&sums)[Blocks][PASS / 8][4])
    {
        value_set values[Keys / 8];
        v += Lanes::find_column() * 2 * V_PITCH + Lanes::find_row() * 8;
        tgi_attend_zero(sums);
        TGI_FOR_UNROLLED(t, Keys / 8)
        values[t].read(v + 8 * t * V_PITCH);
        TGI_FOR_UNROLLED(t, Keys / 8)
        TGI_FOR_UNROLLED(j, PASS / 8)
        TGI_FOR_UNROLLED(b, Blocks)
        tgi_multiply_fp64_16x8x8(sums[b][j], set.rows[t][b], values[t].value[j]);
    }
};

#endif
