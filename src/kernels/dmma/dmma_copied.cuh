/*
 * Multiplies as dmma_tma.cuh does where TMA cannot read the operands, as lines that begin between
 * units of 16 bytes. The threads copy them in the background, to the places to which TMA would
 * bring them, by 8 bytes, or by 16 if the operand allows it. Rows of 32 x 32 sums a warp multiply
 * by dmma_spread.cuh.
 *
 *     setup()      takes the shared memory
 *     load()       requests the thread's copies of a step
 *     multiply()   adds a team's products of a stage
 */
#ifndef TGI_DMMA_COPIED_CUH
#define TGI_DMMA_COPIED_CUH

#include "kernels/dmma/dmma_fed.cuh"
#include "kernels/dmma/dmma_spread.cuh"
#include "kernels/ptx/async_copy.cuh"

/* A thread's copies of each stage of an operand with Count entries, rows of A or columns of B. The
 * block copies lines of 16 elements, 8 at once by 8 bytes or 16 at once by 16 bytes, so that a
 * thread's places differ by whole lines alone. Values of k lie Sub_bytes apart by 16. */
template <int Count, int Depth, int Along_k, int Threads, int Sub_bytes> struct tgi_dmma_share {
    static constexpr int subs = Depth / TGI_DMMA_TMA_ELEMS;
    static_assert(Threads == 128, "an element of 8 lines for each thread");
    const double *from;
    int64_t entry_stride, k_stride;
    uint32_t place;
    int entry, k;  /* the first copy's */
    int inside;    /* entries of the tile from there on */
    int has_units; /* 1: copies of 16 bytes */

    /* `given` is the address of the tile's first entry and k. */
    __device__ __forceinline__ tgi_dmma_share(const double *given, int64_t entry_move,
                                              int64_t k_move, int64_t entry_count, int vector_elems)
        : entry_stride(entry_move), k_stride(k_move), has_units(vector_elems > 1)
    {
        const int thread = tgi_thread();
        const int elem = has_units ? thread % 8 * 2 : thread % 16;
        const int line = has_units ? thread / 8 : thread / 16;
        entry = Along_k ? line : elem;
        k = Along_k ? elem : line;
        inside = tgi_clamp_count(entry_count, Count) - entry;
        from = given + entry * entry_stride + k * k_stride;
        place = tgi_find_unit(0, line, elem / 2) + elem % 2 * 8;
    }

    /* Requests the copies of the next step, of which k_left values of k exist, for the place of the
     * operand in a stage. Elements outside are zeros. */
    __device__ __forceinline__ void load(uint32_t to, int64_t k_left)
    {
        const int left = tgi_clamp_count(k_left, Depth) - k;
        to += place;
#pragma unroll
        for (int sub = 0; sub < subs; sub++) {
            const double *const line = from + sub * TGI_DMMA_TMA_ELEMS * k_stride;
            const int k_inside = left - sub * TGI_DMMA_TMA_ELEMS;
            if (has_units) {
                const int along = Along_k ? min(max(k_inside, 0), 2) : k_inside > 0;
#pragma unroll
                for (int i = 0; i < Count / 16; i++) {
                    const int across = Along_k ? inside > 16 * i : min(max(inside - 16 * i, 0), 2);
                    tgi_copy_async<16>(to + sub * Sub_bytes + i * 16 * TGI_SWIZZLE_BYTES,
                                       line + 16 * i * entry_stride, along * across * 8);
                }
            } else {
#pragma unroll
                for (int i = 0; i < Count / 8; i++) {
                    const int next_entry = Along_k ? 8 * i : i / 2 * 16;
                    const int next_k = Along_k ? 0 : i % 2 * 8;
                    tgi_copy_async<8>(to + sub * Sub_bytes + i * 8 * TGI_SWIZZLE_BYTES,
                                      line + next_entry * entry_stride + next_k * k_stride,
                                      next_entry < inside && next_k < k_inside ? 8 : 0);
                }
            }
        }
        from += Depth * k_stride;
    }
};

/* The products of stages that threads copy. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads,
          int A_along_k, int B_along_k>
struct tgi_dmma_copied
    : tgi_dmma_products<Rows, Cols, Depth, Warp_rows, Warp_cols, Threads, A_along_k, B_along_k> {
    typedef tgi_dmma_products<Rows, Cols, Depth, Warp_rows, Warp_cols, Threads, A_along_k,
                              B_along_k>
        products;
    typedef typename products::sums sums;
    static constexpr int stages = Stages, parts = 1, loads_first = 0;

    struct source {
        tgi_dmma_share<Rows, Depth, A_along_k, Threads, products::sub_bytes> a;
        tgi_dmma_share<Cols, Depth, B_along_k, Threads, products::sub_bytes> b;
        int64_t left; /* k of the next step to copy, and behind it */
        int step_count;

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile)
            : source(args, tile, tgi_find_first_k(args, tile.split))
        {
        }

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile,
                                          int64_t first)
            : a(tgi_find_a<double>(args, tile, first), args.problem.a.row, args.problem.a.col,
                args.problem.m - tile.row, args.a_vector_elems),
              b(tgi_find_b<double>(args, tile, first), args.problem.b.col, args.problem.b.row,
                args.problem.n - tile.col, args.b_vector_elems),
              left(tgi_count_k(args, first)),
              step_count(static_cast<int>((left + Depth - 1) / Depth))
        {
        }
    };

    int reads, fills; /* numbers of the stages that are read and filled */

    template <class Feed>
    __device__ __forceinline__ tgi_dmma_copied(const tgi_gemm_args &, Feed &feed)
        : products(feed.data), reads(0), fills(0)
    {
    }

    static __device__ __forceinline__ bool has_step(const source &copies, int step)
    {
        return step < copies.step_count;
    }

    __device__ __forceinline__ void load(source &copies, int)
    {
        if (copies.left > 0) {
            const uint32_t stage =
                tgi_shared_address(products::data) + fills * products::stage_bytes;
            copies.a.load(stage, copies.left);
            copies.b.load(stage + products::b_place, copies.left);
            copies.left -= Depth;
        }
        tgi_copy_async_commit();
        fills = fills + 1 == Stages ? 0 : fills + 1;
    }

    static __device__ __forceinline__ void wait(int)
    {
        tgi_wait_for_stage<tgi_dmma_copied>();
    }

    __device__ __forceinline__ void multiply(sums &sum, int)
    {
        products::add(sum, reads);
        reads = reads + 1 == Stages ? 0 : reads + 1;
    }
};

/* Names what multiplies stages that threads copy, and calls work(the order of the operands in
 * them): that of memory, or if copies are spread over the products, of two orders the one that
 * transposes fewer operands. */
template <bool Is_spread> struct tgi_dmma_copied_form {
    template <int... Shape> using form = tgi_dmma_copied<Shape...>;

    template <class Work>
    static __device__ __forceinline__ void with_order(const tgi_gemm_args &args, const Work &work)
    {
        tgi_with_order(args, work);
    }
};

template <> struct tgi_dmma_copied_form<true> {
    template <int... Shape> using form = tgi_dmma_spread<Shape...>;

    template <class Work>
    static __device__ __forceinline__ void with_order(const tgi_gemm_args &args, const Work &work)
    {
        if (args.a_along_k || !args.b_along_k)
            work(tgi_order<1, 0>{});
        else
            work(tgi_order<0, 1>{});
    }
};

/* Copies of threads feed tgi_dmma_fed. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads>
struct tgi_dmma_copied_feed {
    typedef tgi_dmma_copied_form<Warp_rows * Warp_cols * Threads / 32 == Rows * Cols &&
                                 Warp_rows * Warp_cols >= 1024>
        forms;
    template <int A_along_k, int B_along_k>
    using form = typename forms::template form<Rows, Cols, Depth, Warp_rows, Warp_cols, Stages,
                                               Threads, A_along_k, B_along_k>;

    template <class Work>
    static __device__ __forceinline__ void with_order(const tgi_gemm_args &args, const Work &work)
    {
        forms::with_order(args, work);
    }

    char *data;

    __device__ __forceinline__ void setup(const tgi_gemm_args &, char *shared)
    {
        data = shared;
    }

    static __device__ __forceinline__ const tgi_gemm_args &find_gemm(const tgi_gemm_args &args)
    {
        return args;
    }

    static __device__ __forceinline__ void release()
    {
    }
};

#endif
