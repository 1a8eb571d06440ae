/*
 * Family dmma_tma multiplies FP64 by the matrix instructions of Hopper's tensor cores. TMA brings
 * the operands. A block forms a tile of D from a ring of stages in shared memory, each warp a part
 * of the tile. The warps take turns to request stages as they are released: a warp that did nothing
 * else would take registers from the others, and one that requested all would hold them up.
 *
 * A stage has lines of 16 elements under the 128-byte swizzle: for every 16 values of k the tile's
 * rows of A and then its columns of B. They are read without bank conflicts.
 *
 *     setup()      prepares mbarriers of the stages and tensor maps; waits for the kernel before
 *     load()       the stage's warp waits until it is empty and requests a step by TMA
 *     multiply()   adds a team's products of a stage, which it then releases
 *     finish()     adds the teams' sums, which lie in shared memory, and stores the tile
 */
#ifndef TGI_DMMA_TMA_CUH
#define TGI_DMMA_TMA_CUH

#include "kernels/body.cuh"
#include "kernels/copy/stage_ring.cuh"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/copy/tma_tile.cuh"
#include "kernels/dmma/dmma_terms.cuh"
#include "kernels/dmma/dmma_tma_args.h"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma_fp64.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* tgi_dmma_lines finds what a lane reads of an operand: 16 entries, rows of A or columns of B, by 8
 * values of k, of which lane 4 g + c reads numbers 2 c and 2 c + 1. Entries have an order of their
 * own, in which lanes that read at once read different banks. */
template <int Along_k> struct tgi_dmma_lines {
    int offset[2]; /* bytes to the lane's unit, along k for either 8 of k, across for either k */

    /* Returns entry g of half h of 16. */
    static __device__ __forceinline__ int place(int g, int h)
    {
        return Along_k ? (g & 1) * 4 + g / 2 + 8 * h : 2 * g + h;
    }

    /* `first` is the first entry. The first read takes half `half` of 16 values of k. */
    __device__ __forceinline__ tgi_dmma_lines(int first, int half, int g, int c)
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
            offset[i] = first * TGI_SWIZZLE_BYTES +
                        (Along_k ? tgi_find_unit(0, place(g, 0), 4 * (i ^ half) + c)
                                 : tgi_find_unit(0, 8 * half + 2 * c + i, g));
    }

    /* Reads value[h][k] of 16 entries, `block` times 16 behind the first one. k_half is 0 for the
     * half of k that is read first, 1 for the other one. */
    __device__ __forceinline__ void read(const char *lines, int block, int k_half,
                                         double (&value)[2][2]) const
    {
        const char *from = lines + block * 16 * TGI_SWIZZLE_BYTES;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int far = (Along_k ? i : k_half) * 8 * TGI_SWIZZLE_BYTES;
            const double2 pair =
                *reinterpret_cast<const double2 *>(from + offset[Along_k ? k_half : i] + far);
            value[Along_k ? i : 0][Along_k ? 0 : i] = pair.x;
            value[Along_k ? i : 1][Along_k ? 1 : i] = pair.y;
        }
    }
};

/* Addresses in shared memory. */
template <int Rows, int Cols, int Depth, int Stages, int Teams> struct tgi_dmma_tma_memory {
    static constexpr int sub_bytes = TGI_SWIZZLE_BYTES * (Rows + Cols); /* 16 of k */
    static constexpr int sub_count = Depth / TGI_DMMA_TMA_ELEMS;
    static constexpr int stage_bytes = TGI_DMMA_TMA_STAGE_BYTES(Rows, Cols, Depth);
    static_assert(sub_bytes * sub_count == stage_bytes, "the host counts what lies here");

    char *data;
    uint32_t stages, full, empty;

    tgi_dmma_tma_memory() = default;

    __device__ __forceinline__ explicit tgi_dmma_tma_memory(char *shared)
        : data(shared), stages(tgi_shared_address(shared)),
          full(stages + TGI_DMMA_TMA_DATA_BYTES(Rows, Cols, Depth, Stages, Teams)),
          empty(full + 8 * Stages)
    {
    }
};

/* Rows x Cols is the block's tile, Warp_rows x Warp_cols a warp's. A or B may be the wide operand
 * of the instruction, since D^T = B^T A^T. If one lies across k, it is the wide one, because a read
 * then yields two neighbouring registers of the instruction. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads,
          int A_along_k, int B_along_k>
struct tgi_dmma_tma {
    static constexpr int tile_warps = Rows / Warp_rows * (Cols / Warp_cols);
    static constexpr int teams = Threads / 32 / tile_warps;
    typedef tgi_dmma_tma_memory<Rows, Cols, Depth, Stages, teams> memory;
    static constexpr int is_b_wide = !B_along_k;
    typedef tgi_dmma_lines<is_b_wide ? B_along_k : A_along_k> wide_lines;
    typedef tgi_dmma_lines<is_b_wide ? A_along_k : B_along_k> narrow_lines;
    static constexpr int wide_count = (is_b_wide ? Warp_cols : Warp_rows) / 16;
    static constexpr int narrow_count = (is_b_wide ? Warp_rows : Warp_cols) / 16;
    static constexpr int b_place = Rows * TGI_SWIZZLE_BYTES;
    static constexpr int wide_place = is_b_wide ? b_place : 0;
    static constexpr int narrow_place = is_b_wide ? 0 : b_place;
    static constexpr int pitch = TGI_DMMA_TMA_TILE_PITCH(Cols);
    static_assert(teams * tile_warps * 32 == Threads && Depth % (8 * teams) == 0 &&
                      (teams == 1 || teams % 2 == 0) && Stages <= Threads / 32,
                  "teams share out k, and each stage has a warp");

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
            byte_count = memory::sub_count * TGI_SWIZZLE_BYTES *
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
            for (int i = 0; i < memory::sub_count; i++) {
                const uint32_t to =
                    at.stages + ring.stage * memory::stage_bytes + i * memory::sub_bytes;
                const int k = first + step * memory::sub_count + i;
                tgi_load_tile<!A_along_k, Rows, TGI_DMMA_TMA_ELEMS>(args.a, a, to, full, row, k,
                                                                    batch, {1, 0, 0});
                tgi_load_tile<!B_along_k, Cols, TGI_DMMA_TMA_ELEMS>(args.b, b, to + b_place, full,
                                                                    col, k, batch, {1, 0, 0});
            }
        }
    };

    /* A fragment has a lane's elements of 8 values of k. */
    struct fragment {
        double wide[wide_count][2][2], narrow[narrow_count][2][2];

        __device__ __forceinline__ void read(const char *stage, const wide_lines &wide_at,
                                             const narrow_lines &narrow_at, int index)
        {
            const char *part = stage;
#pragma unroll
            for (int j = 0; j < narrow_count; j++)
                narrow_at.read(part + narrow_place, j, index, narrow[j]);
#pragma unroll
            for (int i = 0; i < wide_count; i++)
                wide_at.read(part + wide_place, i, index, wide[i]);
        }

        __device__ __forceinline__ void
        multiply(double (&sums)[wide_count][2 * narrow_count][4]) const
        {
#pragma unroll
            for (int i = 0; i < wide_count; i++)
#pragma unroll
                for (int j = 0; j < 2 * narrow_count; j++)
                    tgi_multiply_fp64_16x8x8(sums[i][j], wide[i], narrow[j / 2][j % 2]);
        }
    };

    typedef double sums[wide_count][2 * narrow_count][4];
    static constexpr int stages = Stages, parts = 1, loads_first = 1;

    const tgi_dmma_tma_args &args;
    const memory &at;
    const int warp, team, row, col, g, c; /* the warp's first row and column; lane 4 g + c */
    const wide_lines wide_at;
    const narrow_lines narrow_at;
    tgi_ring<Stages> &reads;
    tgi_ring<Stages> fills;

    __device__ __forceinline__ tgi_dmma_tma(const tgi_dmma_tma_args &given, const memory &shared,
                                            tgi_ring<Stages> &ring)
        : args(given), at(shared), warp(tgi_make_uniform(tgi_thread() / 32)),
          team(tgi_thread() / 32 / tile_warps),
          row(tgi_thread() / 32 % tile_warps / (Cols / Warp_cols) * Warp_rows),
          col(tgi_thread() / 32 % tile_warps % (Cols / Warp_cols) * Warp_cols),
          g(tgi_thread() % 32 / 4), c(tgi_thread() % 32 % 4),
          wide_at(is_b_wide ? col : row, team % 2, g, c),
          narrow_at(is_b_wide ? row : col, team % 2, g, c), reads(ring), fills(ring)
    {
    }

    static __device__ __forceinline__ void begin(sums &sum)
    {
#pragma unroll
        for (int i = 0; i < wide_count; i++)
#pragma unroll
            for (int j = 0; j < 2 * narrow_count; j++)
#pragma unroll
                for (int s = 0; s < 4; s++)
                    sum[i][j][s] = 0.0;
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

    /* A team takes every fragment of 8 of k whose number is its own, modulo `teams`. */
    __device__ __forceinline__ void multiply(sums &sum, int) const
    {
        const char *stage =
            at.data + reads.stage * memory::stage_bytes + team / 2 * memory::sub_bytes;
#pragma unroll 1
        for (int i = 0; i < (teams == 1 ? Depth / 16 : Depth / 8 / teams); i++) {
#pragma unroll
            for (int half = 0; half < (teams == 1 ? 2 : 1); half++) {
                fragment part;
                part.read(stage, wide_at, narrow_at, half);
                part.multiply(sum);
            }
            stage += (teams == 1 ? 1 : teams / 2) * memory::sub_bytes;
        }
        /* Without this fence and barrier TMA could refill the stage while lanes still read it. */
        tgi_fence_async_proxy();
        __syncwarp();
        if (tgi_thread() % 32 == 0)
            tgi_barrier_arrive(at.empty + 8 * reads.stage);
        reads.advance();
    }

    /* Leaves the sums in shared memory, with rows `pitch` apart. */
    __device__ __forceinline__ void gather(const sums &sum) const
    {
        double *tile = reinterpret_cast<double *>(at.data) + team * Rows * pitch;
        /* Without this barrier the sums would overwrite what slower warps still read. */
        __syncthreads();
#pragma unroll
        for (int i = 0; i < wide_count; i++)
#pragma unroll
            for (int j = 0; j < 2 * narrow_count; j++)
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    const int wide = i * 16 + wide_lines::place(g, s / 2);
                    const int narrow = j / 2 * 16 + narrow_lines::place(2 * c + s % 2, j % 2);
                    tile[(row + (is_b_wide ? narrow : wide)) * pitch + col +
                         (is_b_wide ? wide : narrow)] = sum[i][j][s];
                }
    }
};

/* Stores the tile whose sums, of each team, are in shared memory. */
template <int Rows, int Cols, int Teams, int Threads>
static __device__ __forceinline__ void tgi_store_dmma_tma(const tgi_gemm_args &args,
                                                          const tgi_block_tile &tile, double *sums)
{
    constexpr int pitch = TGI_DMMA_TMA_TILE_PITCH(Cols);
    if (args.split_count != 1 || args.is_plain) {
        tgi_gemm_args plain = args;
        plain.is_plain = 1;
        tgi_store_tile<double, Rows, Cols, pitch, Teams, Threads>(plain, tile, sums);
        return;
    }
    for (int i = tgi_thread(); Teams > 1 && i < Rows * pitch; i += Threads)
#pragma unroll
        for (int team = 1; team < Teams; team++)
            sums[i] += sums[i + team * Rows * pitch];
    /* Without this barrier threads would finish sums that others have yet to add. */
    if (Teams > 1)
        __syncthreads();
    tgi_store_terms<Rows, Cols, pitch, Threads>(args, tile, sums);
}

/* This body serves all four storage orders. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads>
struct tgi_dmma_tma_body {
    struct sums {
    };
    static constexpr int has_one_tile = 0;
    static constexpr int teams = Threads / 32 * Warp_rows * Warp_cols / (Rows * Cols);

    tgi_dmma_tma_memory<Rows, Cols, Depth, Stages, teams> at;
    tgi_ring<Stages> ring;

    __device__ __forceinline__ void setup(const tgi_dmma_tma_args &args, char *shared)
    {
        at = tgi_dmma_tma_memory<Rows, Cols, Depth, Stages, teams>(shared);
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
        tgi_wait_for_stream();
    }

    /* Forms the tile's sums and leaves them in shared memory. */
    template <class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const tgi_dmma_tma_args &given, const Schedule &schedule,
                                        Unit unit, sums &)
    {
        const tgi_dmma_tma_args &args = schedule.problem(given, unit);
        const tgi_block_tile tile = schedule.tile(unit);
        tgi_with_order(args.gemm, [&](auto order) {
            typedef tgi_dmma_tma<Rows, Cols, Depth, Warp_rows, Warp_cols, Stages, Threads,
                                 order.a_along_k, order.b_along_k>
                form;
            form own(args, at, ring);
            const typename form::source copies(args, tile);
            typename form::sums sum;
            tgi_fill_ring(own, copies);
            tgi_multiply_steps(own, copies, sum);
            own.gather(sum);
        });
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const tgi_dmma_tma_args &given, const Schedule &schedule,
                                           Unit unit, sums &) const
    {
        /* Without this barrier elements would be stored before the other warps have put theirs. */
        __syncthreads();
        tgi_store_dmma_tma<Rows, Cols, teams, Threads>(schedule.problem(given, unit).gemm,
                                                       schedule.tile(unit),
                                                       reinterpret_cast<double *>(at.data));
        if (schedule.next(unit) < schedule.end()) {
            /* Without this fence and barrier the next batch entry's stages would overwrite sums not
             * yet stored. */
            tgi_fence_async_proxy();
            __syncthreads();
        }
    }
};

#endif
