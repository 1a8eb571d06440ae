/*
 * The products of attention by wgmma (sm_90a): a warpgroup has 64 queries. Scores of the next step
 * and sums of this one are computed at the same time, and the sums while scores become weights.
 */
#ifndef TGI_ATTEND_GROUPS_CUH
#define TGI_ATTEND_GROUPS_CUH

#include "kernels/attend/attend_products.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup_mma_across.cuh"

template <tg_type Type, int Head, int Warps, int Blocks, int Keys>
struct tgi_attend_by_groups : tgi_attend_sizes<Type, Head, Warps, Blocks, Keys> {
    static_assert(Blocks == 1 && Warps % 4 == 0, "a warpgroup has 64 queries");
    static constexpr int rows = 16 * Warps;
    static constexpr tg_type a_type = Type;
    static constexpr int across_a = 0, across_b = 0; /* Q and K^T lie along k */
    typedef tgi_attend_state<Head, 1> state_of_rows;
    typedef float score_array[Keys / 2], sum_array[Head / 2];

    template <int Pending> static __device__ __forceinline__ void wait_copies(void)
    {
        tgi_copy_async_wait<Pending>();
        tgi_fence_async_proxy();
        __syncthreads();
    }

    /* Waits for the scores, behind which `Pending` groups of sums were issued. */
    template <int Pending>
    static __device__ __forceinline__ void wait_scores(float (&scores)[1][Keys / 8][4])
    {
        tgi_wgmma_wait<Pending>();
        tgi_pin_sums(reinterpret_cast<score_array &>(scores));
    }

    static __device__ __forceinline__ void wait_sums(state_of_rows &state)
    {
        tgi_wgmma_wait<0>();
        tgi_pin_sums(reinterpret_cast<sum_array &>(state.sums));
    }

    static __device__ __forceinline__ void score(uint32_t q, uint32_t k,
                                                 float (&scores)[1][Keys / 8][4])
    {
        score_array &sum = reinterpret_cast<score_array &>(scores);
        const uint32_t first = q + tgi_make_uniform(tgi_reread_thread() / 128) * 64 * 128;
        tgi_wgmma_fence();
        TGI_FOR_UNROLLED(e, Head / 16)
        {
            const uint64_t a = tgi_describe(first + e / 4 * rows * 128 + e % 4 * 32, 0, 1024);
            const uint64_t b = tgi_describe(k + e / 4 * Keys * 128 + e % 4 * 32, 0, 1024);
            if (e == 0)
                tgi_multiply_lines<tgi_attend_by_groups, 0>(sum, a, b);
            else
                tgi_multiply_lines<tgi_attend_by_groups, 1>(sum, a, b);
        }
        tgi_wgmma_commit();
    }

    static __device__ __forceinline__ void
    add(uint32_t v, const uint32_t (&weights)[1][Keys / 16][4], state_of_rows &state)
    {
        tgi_wgmma_fence();
        TGI_FOR_UNROLLED(j, Keys / 16)
        tgi_multiply_across<Type>(reinterpret_cast<sum_array &>(state.sums), weights[0][j],
                                  tgi_describe(v + j * 16 * 128, Keys * 128, 1024));
        tgi_wgmma_commit();
    }

    static __device__ __forceinline__ void start(uint32_t q, uint32_t k,
                                                 float (&scores)[1][Keys / 8][4])
    {
        score(q, k, scores);
        wait_scores<0>(scores);
    }

    /* Both branches begin and end their products themselves: the compiler lets those of a branch
     * that it has to complete after it not overlap. */
    static __device__ __forceinline__ void turn(int has_next, uint32_t q, uint32_t k, uint32_t v,
                                                const uint32_t (&weights)[1][Keys / 16][4],
                                                float (&scores)[1][Keys / 8][4],
                                                state_of_rows &state)
    {
        if (has_next) {
            score(q, k, scores);
            add(v, weights, state);
            wait_scores<1>(scores);
        } else {
            add(v, weights, state);
        }
    }
};

#endif
