/*
 * The two products of attention: scores = Q K^T and sums += weights V. A kernel takes one of these
 * structs, which has the sizes of a block too.
 */
#ifndef TGI_ATTEND_PRODUCTS_CUH
#define TGI_ATTEND_PRODUCTS_CUH

#include "kernels/attend/attend_scores.cuh"

/* The sizes of a block: a warp has Blocks x 16 queries. */
template <tg_type Type, int Head, int Warps, int Blocks, int Keys> struct tgi_attend_sizes {
    static constexpr tg_type type = Type;
    static constexpr int head = Head, warps = Warps, blocks = Blocks, keys = Keys;
    static constexpr int rows = 16 * Warps * Blocks, copiers = 32 * Warps;
};

/* Products by mma.sync, a warp on its own. Its results are there at once. */
template <tg_type Type, int Head, int Warps, int Blocks, int Keys>
struct tgi_attend_by_warps : tgi_attend_sizes<Type, Head, Warps, Blocks, Keys> {
    static constexpr int rows = 16 * Warps * Blocks;
    typedef tgi_attend_state<Head, Blocks> state_of_rows;

    /* Waits until what the block's threads copied is there, except for the last `Pending` steps. */
    template <int Pending> static __device__ __forceinline__ void wait_copies(void)
    {
        tgi_copy_async_wait<Pending>();
        __syncthreads();
    }

    /* Forms the scores of the first step, unscaled. */
    static __device__ __forceinline__ void start(uint32_t q, uint32_t k,
                                                 float (&scores)[Blocks][Keys / 8][4])
    {
        /* Addresses are formed here each time: kept from step to step they would take 30
         * registers. */
        const int thread = tgi_reread_thread();
        const int lane = thread % 32, warp_row = thread / 32 * Blocks * 16;
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(j, Keys / 8)
        TGI_FOR_UNROLLED(i, 4)
        scores[b][j][i] = 0.0f;
#pragma unroll 2
        for (int e = 0; e < Head / 16; e++) {
            uint32_t line[Blocks][4];
            TGI_FOR_UNROLLED(b, Blocks)
            tgi_read_matrices(line[b], tgi_attend_find_unit<rows>(q, warp_row + 16 * b + lane % 16,
                                                                  2 * e + lane / 16));
            TGI_FOR_UNROLLED(j, Keys / 16)
            {
                uint32_t part[4];
                tgi_read_matrices(part,
                                  tgi_attend_find_unit<Keys>(k, 16 * j + lane % 8 + lane / 16 * 8,
                                                             2 * e + lane / 8 % 2));
                TGI_FOR_UNROLLED(b, Blocks)
                {
                    tgi_multiply_16x8x16<Type>(scores[b][2 * j], line[b], part[0], part[1]);
                    tgi_multiply_16x8x16<Type>(scores[b][2 * j + 1], line[b], part[2], part[3]);
                }
            }
        }
    }

    /* Adds weights times V. */
    static __device__ __forceinline__ void
    add(uint32_t v, const uint32_t (&weights)[Blocks][Keys / 16][4], state_of_rows &state)
    {
        const int lane = tgi_reread_thread() % 32;
        TGI_FOR_UNROLLED(j, Keys / 16)
        TGI_FOR_UNROLLED(e, Head / 16)
        {
            uint32_t part[4];
            tgi_read_matrices_transposed(
                part, tgi_attend_find_unit<Keys>(v, 16 * j + lane % 16, 2 * e + lane / 16));
            TGI_FOR_UNROLLED(b, Blocks)
            {
                tgi_multiply_16x8x16<Type>(state.sums[b][2 * e], weights[b][j], part[0], part[1]);
                tgi_multiply_16x8x16<Type>(state.sums[b][2 * e + 1], weights[b][j], part[2],
                                           part[3]);
            }
        }
    }

    /* Adds a step's weights times V, and forms the scores of the next step if there is one. */
    static __device__ __forceinline__ void turn(int has_next, uint32_t q, uint32_t k, uint32_t v,
                                                const uint32_t (&weights)[Blocks][Keys / 16][4],
                                                float (&scores)[Blocks][Keys / 8][4],
                                                state_of_rows &state)
    {
        if (has_next)
            start(q, k, scores);
        add(v, weights, state);
    }
};

#endif
