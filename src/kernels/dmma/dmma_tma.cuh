/*
 * Family dmma_tma multiplies FP64 by the matrix instructions of Hopper's tensor cores. TMA brings
 * the operands. A block forms a tile of D from a ring of stages in shared memory, each warp a part
 * of the tile. The warps take turns to request stages as they are released: a warp that did nothing
 * else would take registers from the others, and one that requested all would hold them up.
 *
 *     setup()      prepares mbarriers of the stages and tensor maps
 *     load()       the stage's warp waits until it is empty and requests a step by TMA
 *     multiply()   adds a team's products of a stage, which it then releases
 */
#ifndef TGI_DMMA_TMA_CUH
#define TGI_DMMA_TMA_CUH

#include "kernels/copy/stage_ring.cuh"
#include "kernels/copy/tma_tile.cuh"
#include "kernels/dmma/dmma_fed.cuh"
#include "kernels/ptx/barrier.cuh"

/* Addresses in shared memory. */
template <int Rows, int Cols, int Depth, int Stages, int Teams> struct tgi_dmma_tma_memory {
    uint32_t stages, full, empty;

    tgi_dmma_tma_memory() = default;

    __device__ __forceinline__ explicit tgi_dmma_tma_memory(char *shared)
        : stages(tgi_shared_address(shared)),
          full(stages + TGI_DMMA_TMA_DATA_BYTES(Rows, Cols, Depth, Stages, Teams)),
          empty(full + 8 * Stages)
    {
    }
};

/* The products of stages that TMA fills. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads,
          int A_along_k, int B_along_k>
struct tgi_dmma_tma
    : tgi_dmma_products<Rows, Cols, Depth, Warp_rows, Warp_cols, Threads, A_along_k, B_along_k> {
    typedef tgi_dmma_products<Rows, Cols, Depth, Warp_rows, Warp_cols, Threads, A_along_k,
                              B_along_k>
        products;
    typedef tgi_dmma_tma_memory<Rows, Cols, Depth, Stages, products::teams> memory;
    typedef typename products::sums sums;
    static constexpr int sub_bytes = products::sub_bytes, sub_count = products::sub_count;
    static constexpr int stage_bytes = products::stage_bytes, b_place = products::b_place;
    static_assert(Stages <= Threads / 32, "each stage has a warp");

    /* A source requests the stages of a tile. */
    struct source {
        int row, col, batch, first, step_count, byte_count;
        tgi_tma_boxes a, b;

        __device__ __forceinline__ source(const tgi_dmma_tma_args &args, const tgi_block_tile &tile)
            : row(static_cast<int>(tile.row)), col(static_cast<int>(tile.col)),
              batch(static_cast<int>(tile.batch)),
              first(static_cast<int>(tgi_find_first_k(args.gemm, tile.split) / TGI_DMMA_TMA_ELEMS)),
              a(tgi_find_boxes<!A_along_k, Rows, TGI_DMMA_TMA_ELEMS>(args.a, row, 1)),
              b(tgi_find_boxes<!B_along_k, Cols, TGI_DMMA_TMA_ELEMS>(args.b, col, 1))
        {
            const int64_t k_count = tgi_count_k(args.gemm, tgi_find_first_k(args.gemm, tile.split));
            step_count = static_cast<int>((k_count + Depth - 1) / Depth);
            byte_count = sub_count * TGI_SWIZZLE_BYTES *
                         (a.count * a.lines(args.a) + b.count * b.lines(args.b));
        }

        /* Waits until the ring's stage is empty and requests step `step` for it, by a warp. */
        __device__ __forceinline__ void fill(const tgi_dmma_tma_args &args, const memory &at,
                                             int step, const tgi_ring<Stages> &ring) const
        {
            const uint32_t full = at.full + 8 * ring.stage;
            tgi_barrier_wait(at.empty + 8 * ring.stage, ring.parity ^ 1);
            if (!tgi_elect())
                return;
            tgi_barrier_expect(full, byte_count);
#pragma unroll
            for (int i = 0; i < sub_count; i++) {
                const uint32_t to = at.stages + ring.stage * stage_bytes + i * sub_bytes;
                const int k = first + step * sub_count + i;
                tgi_load_tile<!A_along_k, Rows, TGI_DMMA_TMA_ELEMS>(args.a, a, to, full, row, k,
                                                                    batch, {1, 0, 0});
                tgi_load_tile<!B_along_k, Cols, TGI_DMMA_TMA_ELEMS>(args.b, b, to + b_place, full,
                                                                    col, k, batch, {1, 0, 0});
            }
        }
    };

    static constexpr int stages = Stages, parts = 1, loads_first = 1;

    const tgi_dmma_tma_args &args;
    const memory &at;
    const int warp;
    tgi_ring<Stages> &reads;
    tgi_ring<Stages> fills;

    template <class Feed>
    __device__ __forceinline__ tgi_dmma_tma(const tgi_dmma_tma_args &given, Feed &feed)
        : products(feed.data), args(given), at(feed.at), warp(tgi_make_uniform(tgi_thread() / 32)),
          reads(feed.ring), fills(feed.ring)
    {
    }

    static __device__ __forceinline__ bool has_step(const source &copies, int step)
    {
        return step < copies.step_count;
    }

    /* The first warp requests the steps that fill the ring, so that they come in order, and all
     * steps of a tile that has few. Warp s requests the others for stage s. */
    __device__ __forceinline__ void load(const source &copies, int step)
    {
        const int is_first = step < Stages - 1 || copies.step_count <= 2 * Stages;
        if (warp == (is_first ? 0 : fills.stage) && step < copies.step_count)
            copies.fill(args, at, step, fills);
        fills.advance();
    }

    __device__ __forceinline__ void wait(int) const
    {
        tgi_barrier_wait(at.full + 8 * reads.stage, reads.parity);
    }

    __device__ __forceinline__ void multiply(sums &sum, int) const
    {
        products::add(sum, reads.stage);
        /* Without this fence and barrier TMA could refill the stage while lanes still read it. */
        tgi_fence_async_proxy();
        __syncwarp();
        if (tgi_thread() % 32 == 0)
            tgi_barrier_arrive(at.empty + 8 * reads.stage);
        reads.advance();
    }
};

/* TMA feeds tgi_dmma_fed. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads>
struct tgi_dmma_tma_feed {
    static constexpr int teams = Threads / 32 * Warp_rows * Warp_cols / (Rows * Cols);
    typedef tgi_dmma_tma_memory<Rows, Cols, Depth, Stages, teams> memory;
    template <int A_along_k, int B_along_k>
    using form = tgi_dmma_tma<Rows, Cols, Depth, Warp_rows, Warp_cols, Stages, Threads, A_along_k,
                              B_along_k>;

    memory at;
    char *data;
    tgi_ring<Stages> ring;

    __device__ __forceinline__ void setup(const tgi_dmma_tma_args &args, char *shared)
    {
        at = memory(shared);
        data = shared;
        if (tgi_thread() == 0) {
            for (int i = 0; i < Stages; i++) {
                tgi_barrier_init(at.full + 8 * i, 1);
                tgi_barrier_init(at.empty + 8 * i, Threads / 32);
            }
            tgi_fence_barrier_init();
            tgi_prefetch_map(&args.a.map);
            tgi_prefetch_map(&args.b.map);
        }
        /* Without this barrier a thread would use a barrier that is not initialized. */
        __syncthreads();
    }

    /* Calls work(the order of the operands in stages): TMA leaves it as it is. */
    template <class Work>
    static __device__ __forceinline__ void with_order(const tgi_gemm_args &args, const Work &work)
    {
        tgi_with_order(args, work);
    }

    static __device__ __forceinline__ const tgi_gemm_args &find_gemm(const tgi_dmma_tma_args &args)
    {
        return args.gemm;
    }

    /* Without this fence TMA could fill stages before the sums that lie there are stored. */
    static __device__ __forceinline__ void release()
    {
        tgi_fence_async_proxy();
    }
};

#endif
