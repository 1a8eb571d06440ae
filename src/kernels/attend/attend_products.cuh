/*
 * Declares the two products of attention, scores = Q K^T and sums += weights V. A kernel uses one
 * of these structs, which also has the sizes of a block.
 */
#ifndef TGI_ATTEND_PRODUCTS_CUH
#define TGI_ATTEND_PRODUCTS_CUH

#include "kernels/attend/attend_scores.cuh"

/* The sizes of a block, whose warps have Blocks x 16 queries each. */
template <tg_type Type, int Head, int Warps, int Blocks, int Keys> struct tgi_attend_sizes {
    static constexpr tg_type type = Type;
    static constexpr int head = Head, warps = Warps, blocks = Blocks, keys = Keys;
    static constexpr int rows = 16 * Warps * Blocks, copiers = 32 * Warps;
};

/* These products use mma.sync, in which each warp works alone and results are available at once. */
template <tg_type Type, int Head, int Warps, int Blocks, int Keys>
struct tgi_attend_by_warps : tgi_attend_sizes<Type, Head, Warps, Blocks, Keys> {
    static constexpr int rows = 16 * Warps * Blocks, is_split = 0, is_clustered = 0;
    static constexpr int depth = Blocks == 2 ? 2 : 4; /* a fragment serves 2 Blocks products */
    typedef tgi_attend_state<Head, Blocks> state_of_rows;

    /* Returns the number of the block's cluster. A block without one is its own. */
    static __device__ __forceinline__ int find_cluster(void)
    {
        return static_cast<int>(blockIdx.x);
    }

    /* Returns the number of the block in its cluster. */
    static __device__ __forceinline__ int find_rank(void)
    {
        return 0;
    }

    /* Waits for the block's copies to arrive, except those of the last `Pending` steps. */
    template <int Pending> static __device__ __forceinline__ void wait_copies(void)
    {
        tgi_copy_async_wait<Pending>();
        __syncthreads();
    }

    /* Waits for the block's threads, and returns 1 if any of them passes 1. */
    static __device__ __forceinline__ int has_any(int is_set)
    {
        return __syncthreads_or(is_set);
    }

    /* Calls use(words, i) for `Count` fragments of four matrices in order. load(words, i) reads
     * each one `Depth` - 1 fragments before its use, so that the tensor cores do not wait for
     * shared memory. */
    template <int Depth, int Count, typename Load, typename Use>
    static __device__ __forceinline__ void go_through(Load load, Use use)
    {
        uint32_t words[Depth][4];
        TGI_FOR_UNROLLED(i, Depth - 1)
        load(words[i], i);
        TGI_FOR_UNROLLED(i, Count)
        {
            if (i + Depth - 1 < Count)
                load(words[(i + Depth - 1) % Depth], i + Depth - 1);
            use(words[i % Depth], i);
        }
    }

    /* Return where the lane reads, in bytes from the beginning of Q, and of a tile of K or V. The
     * first is computed again at each use. */
    static __device__ __forceinline__ uint32_t find_in_q(void)
    {
        const unsigned thread = tgi_reread_thread(), lane = thread % 32;
        return tgi_attend_find_unit<0>(0, thread / 32 % Warps * Blocks * 16 + lane % 16, lane / 16);
    }

    static __device__ __forceinline__ uint32_t find_in_k(void)
    {
        const unsigned lane = static_cast<unsigned>(tgi_thread()) % 32;
        return tgi_attend_find_unit<0>(0, lane % 8 + lane / 16 * 8, lane / 8 % 2);
    }

    static __device__ __forceinline__ uint32_t find_in_v(void)
    {
        const unsigned lane = static_cast<unsigned>(tgi_thread()) % 32;
        return tgi_attend_find_unit<0>(0, lane % 16, lane / 16);
    }

    /* Forms the scores of a step, unscaled. beside(i) is called between products, for
     * i < Head / 16 * Keys / 16. */
    template <class Line, typename Beside>
    static __device__ __forceinline__ void score(const tgi_attend_line &own_q, const Line &own_k,
                                                 float (&scores)[Blocks][Keys / 8][4],
                                                 Beside beside)
    {
        enum { ROUND = Keys / 16 };
        uint32_t line[2][Blocks][4]; /* two units of Q: the current one and the next */
        const auto read_line = [&](int e) {
            TGI_FOR_UNROLLED(b, Blocks)
            tgi_read_matrices(line[e % 2][b], own_q.template find<rows>(16 * b, 2 * e));
        };
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(j, Keys / 8)
        TGI_FOR_UNROLLED(i, 4)
        scores[b][j][i] = 0.0f;
        read_line(0);
        go_through<depth, Head / 16 * ROUND>(
            [&](uint32_t(&words)[4], int i) {
                tgi_read_matrices(words, own_k.template find<Keys>(i % ROUND * 16, i / ROUND * 2));
            },
            [&](const uint32_t(&words)[4], int i) {
                const int e = i / ROUND, j = i % ROUND;
                if (j == 0 && e + 1 < Head / 16)
                    read_line(e + 1);
                beside(i);
                TGI_FOR_UNROLLED(b, Blocks)
                {
                    tgi_multiply_16x8x16<Type>(scores[b][2 * j], line[e % 2][b], words[0],
                                               words[1]);
                    tgi_multiply_16x8x16<Type>(scores[b][2 * j + 1], line[e % 2][b], words[2],
                                               words[3]);
                }
            });
    }

    /* Adds weights times V, and calls beside(i) as `score` does. */
    template <class Line, typename Beside>
    static __device__ __forceinline__ void add(const Line &own_v,
                                               const uint32_t (&weights)[Blocks][Keys / 16][4],
                                               state_of_rows &state, Beside beside)
    {
        enum { ROUND = Head / 16 };
        go_through<depth, Keys / 16 * ROUND>(
            [&](uint32_t(&words)[4], int i) {
                tgi_read_matrices_transposed(
                    words, own_v.template find<Keys>(i / ROUND * 16, i % ROUND * 2));
            },
            [&](const uint32_t(&words)[4], int i) {
                const int j = i / ROUND, e = i % ROUND;
                beside(i);
                TGI_FOR_UNROLLED(b, Blocks)
                {
                    tgi_multiply_16x8x16<Type>(state.sums[b][2 * e], weights[b][j], words[0],
                                               words[1]);
                    tgi_multiply_16x8x16<Type>(state.sums[b][2 * e + 1], weights[b][j], words[2],
                                               words[3]);
                }
            });
    }
};

/* In these products all warps of a block have the same 16 queries, and each has its own tiles and a
 * split of the keys. */
template <tg_type Type, int Head, int Keys>
struct tgi_attend_by_splits : tgi_attend_by_warps<Type, Head, 1, 1, Keys> {
    static constexpr int is_split = 1;

    template <int Pending> static __device__ __forceinline__ void wait_copies(void)
    {
        tgi_copy_async_wait<Pending>();
        __syncwarp();
    }

    static __device__ __forceinline__ int has_any(int is_set)
    {
        const int is_any = __any_sync(~0u, is_set);
        __syncwarp(); /* zeros that lanes wrote for Inf and NaN are read by other lanes */
        return is_any;
    }

    /* Reads 8 bytes, or 16, of the state of a row. */
    static __device__ __forceinline__ void read(float (&value)[2], uint32_t shared)
    {
        tgi_read_shared_8(shared, value);
    }

    static __device__ __forceinline__ void read(float (&value)[4], uint32_t shared)
    {
        tgi_attend_read_unit(value, shared);
    }
};

#endif
