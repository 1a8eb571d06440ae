/*
 * Family dmma multiplies FP64 by the FP64 matrix instructions of tensor cores. Each warp forms a
 * part of the block's tile by products of a wide operand, 16 x 4, and a narrow one, 4 x 8. The body
 * (kernels/body.cuh) has a form for each storage order, tgi_dmma, with load() and multiply(). They
 * leave the sums in shared memory, from where finish() stores them with the same code.
 *
 * A or B may be the wide operand, since D^T = B^T A^T. If one lies across k, it is the wide one,
 * because a 16-byte read then yields two neighbouring registers of the instruction.
 */
#ifndef TGI_DMMA_CUH
#define TGI_DMMA_CUH

#include "kernels/body.cuh"
#include "kernels/dmma/dmma_operand.cuh"
#include "kernels/dmma/dmma_terms.cuh"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* Rows x Cols is the block's tile, Warp_rows x Warp_cols a warp's. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads,
          int A_along_k, int B_along_k>
struct tgi_dmma {
    typedef tgi_dmma_operand<Rows, Depth, A_along_k, Threads> operand_a;
    typedef tgi_dmma_operand<Cols, Depth, B_along_k, Threads> operand_b;
    static constexpr int is_b_wide = !B_along_k;
    static constexpr int mma_k = 4,
                         mma_count = Depth / mma_k; /* k of an instruction; groups of k */
    static constexpr int wide_count = (is_b_wide ? Warp_cols : Warp_rows) / 16;
    static constexpr int narrow_count = (is_b_wide ? Warp_rows : Warp_cols) / 8;
    static constexpr int access_count = operand_a::access_count + operand_b::access_count;
    static constexpr int pitch = TGI_DMMA_TILE_PITCH(Cols);
    /* A part is the products of one wide operand and 4 of k. */
    static constexpr int stages = Stages, parts = mma_count * wide_count;
    static constexpr int switch_part = parts - wide_count;
    static_assert(Rows / Warp_rows * (Cols / Warp_cols) * 32 == Threads, "warps tile D");

    struct shared_stage {
        operand_a a;
        operand_b b;
    };

    struct lane_place {
        int row, col, g, c; /* the warp's first row and column in the tile; lane 4 g + c */
    };

    /* A lane's fragments of 4 of k. */
    struct fragment {
        double wide[wide_count][2], narrow[narrow_count];

        __device__ __forceinline__ void read(const shared_stage &stage, const lane_place &lane,
                                             int mma_index)
        {
            const int k = mma_index * mma_k + lane.c;
#pragma unroll
            for (int i = 0; i < wide_count; i++)
                if constexpr (is_b_wide)
                    stage.b.read_wide(lane.col + i * 16, k, lane.g, wide[i]);
                else
                    stage.a.read_wide(lane.row + i * 16, k, lane.g, wide[i]);
#pragma unroll
            for (int j = 0; j < narrow_count; j++)
                narrow[j] = is_b_wide ? *stage.a.at(lane.row + j * 8 + lane.g, k)
                                      : *stage.b.at(lane.col + j * 8 + lane.g, k);
        }
    };

    typedef double sums[wide_count][narrow_count][4];
    typedef fragment factors[2]; /* one in use, one being read */

    /* The first k of the tile's split, and how many k it has. */
    static __device__ __forceinline__ int64_t find_first(const tgi_gemm_args &args,
                                                         const tgi_block_tile &tile)
    {
        return tgi_find_first_k(args, tile.split);
    }

    static __device__ __forceinline__ int64_t count_k(const tgi_gemm_args &args,
                                                      const tgi_block_tile &tile)
    {
        return tgi_count_k(args, find_first(args, tile));
    }

    /* Holds where this thread's next copies of a tile come from, and their limits. */
    struct source {
        const tgi_gemm_args &args;
        const tgi_block_tile &tile;
        const double *a, *b; /* addresses of this thread's next reads */
        typename operand_a::reach a_inside;
        typename operand_b::reach b_inside;
        int whole_count, count; /* steps that have all of their k; all steps */

        __device__ __forceinline__ source(const tgi_gemm_args &given, const tgi_block_tile &own)
            : args(given), tile(own), a_inside(args.problem.m - tile.row, args.a_vector_elems),
              b_inside(args.problem.n - tile.col, args.b_vector_elems)
        {
            const int64_t first = find_first(args, tile);
            count = static_cast<int>((count_k(args, tile) + Depth - 1) / Depth);
            whole_count = static_cast<int>(count_k(args, tile) / Depth);
            a = tgi_find_a<double>(args, tile, first) +
                operand_a::first_line() * a_line_stride(args) +
                operand_a::first_elem() * a_elem_stride(args);
            b = tgi_find_b<double>(args, tile, first) +
                operand_b::first_line() * b_line_stride(args) +
                operand_b::first_elem() * b_elem_stride(args);
        }

        static __device__ __forceinline__ int64_t a_elem_stride(const tgi_gemm_args &args)
        {
            return A_along_k ? args.problem.a.col : args.problem.a.row;
        }

        static __device__ __forceinline__ int64_t b_elem_stride(const tgi_gemm_args &args)
        {
            return B_along_k ? args.problem.b.row : args.problem.b.col;
        }

        static __device__ __forceinline__ int64_t a_line_stride(const tgi_gemm_args &args)
        {
            return A_along_k ? args.problem.a.row : args.problem.a.col;
        }

        static __device__ __forceinline__ int64_t b_line_stride(const tgi_gemm_args &args)
        {
            return B_along_k ? args.problem.b.col : args.problem.b.row;
        }

        /* Issues this thread's accesses first .. end - 1 of a stage, A's before B's, in order. */
        __device__ __forceinline__ void copy_whole(shared_stage &stage, int first, int end)
        {
            const int64_t a_stride = a_line_stride(args), b_stride = b_line_stride(args);
#pragma unroll
            for (int i = first; i < end; i++) {
                if (i < operand_a::access_count) {
                    stage.a.copy_access(i, a, a_elem_stride(args), a_inside);
                    a += operand_a::lines_apart * a_stride;
                    if (i == operand_a::access_count - 1)
                        a += Depth * args.problem.a.col - operand_a::lines * a_stride;
                } else {
                    stage.b.copy_access(i - operand_a::access_count, b, b_elem_stride(args),
                                        b_inside);
                    b += operand_b::lines_apart * b_stride;
                    if (i == access_count - 1)
                        b += Depth * args.problem.b.row - operand_b::lines * b_stride;
                }
            }
        }

        /* Ends the copies at a step behind those that have all of their k. If it is the first such
         * step, its stage gets the remaining k. */
        __device__ __forceinline__ void end(int step, shared_stage &stage)
        {
            const int k_left = static_cast<int>(count_k(args, tile) - int64_t{Depth} * whole_count);
            if (step == whole_count && k_left > 0) {
#pragma unroll 1
                for (int i = 0; i < operand_a::access_count; i++)
                    stage.a.copy_last(i, a + i * operand_a::lines_apart * a_line_stride(args),
                                      a_elem_stride(args), a_inside, k_left);
#pragma unroll 1
                for (int i = 0; i < operand_b::access_count; i++)
                    stage.b.copy_last(i, b + i * operand_b::lines_apart * b_line_stride(args),
                                      b_elem_stride(args), b_inside, k_left);
            }
            a_inside.end();
            b_inside.end();
        }
    };

    shared_stage *ring;
    int reads, fills; /* numbers of the stages that are read and filled */
    lane_place lane;

    __device__ __forceinline__ void setup(const tgi_gemm_args &, void *shared)
    {
        const int warp = threadIdx.x / 32;
        ring = static_cast<shared_stage *>(shared);
        lane = {warp / (Cols / Warp_cols) * Warp_rows, warp % (Cols / Warp_cols) * Warp_cols,
                static_cast<int>(threadIdx.x) % 32 / 4, static_cast<int>(threadIdx.x) % 4};
    }

    __device__ __forceinline__ void begin(sums &sum)
    {
        reads = 0;
        fills = Stages - 1;
#pragma unroll
        for (int i = 0; i < wide_count; i++)
#pragma unroll
            for (int j = 0; j < narrow_count; j++)
#pragma unroll
                for (int s = 0; s < 4; s++)
                    sum[i][j][s] = 0.0;
    }

    static __device__ __forceinline__ bool has_step(const source &copies, int step)
    {
        return step == 0 || step < copies.count;
    }

    __device__ __forceinline__ void load(source &copies, int step)
    {
        if (step < copies.whole_count)
            copies.copy_whole(ring[step], 0, access_count);
        else
            copies.end(step, ring[step]);
        close(copies);
    }

    __device__ __forceinline__ void load_edge(source &copies, int step)
    {
        if (step >= copies.whole_count)
            copies.end(step, ring[fills]);
    }

    __device__ __forceinline__ void load_part(source &copies, int part)
    {
        copies.copy_whole(ring[fills], part * access_count / switch_part,
                          (part + 1) * access_count / switch_part);
    }

    static __device__ __forceinline__ void close(source &)
    {
        tgi_copy_async_commit();
    }

    __device__ __forceinline__ void advance(source &)
    {
        fills = reads;
        reads = reads + 1 == Stages ? 0 : reads + 1;
    }

    __device__ __forceinline__ void read_first(const source &, factors &pair) const
    {
        pair[0].read(ring[reads], lane, 0);
    }

    __device__ __forceinline__ void read_ahead(const source &, factors &pair, int part) const
    {
        const int next = part / wide_count + 1;
        if (part % wide_count == 0)
            pair[next % 2].read(ring[reads], lane, next % mma_count);
    }

    static __device__ __forceinline__ void multiply(sums &sum, const factors &pair, int part)
    {
        const fragment &own = pair[part / wide_count % 2];
#pragma unroll
        for (int j = 0; j < narrow_count; j++)
            tgi_multiply_fp64_16x8x4(sum[part % wide_count][j], own.wide[part % wide_count],
                                     own.narrow[j]);
    }

    /* Leaves the sums in shared memory, with rows `pitch` apart. Zeros behind the end of k turn -0
     * into 0. Tiles differ in their number, so that the addition does it always. */
    __device__ __forceinline__ void gather(const sums &sum, double *tile) const
    {
        /* Without this barrier the sums would overwrite what slower warps still read. */
        __syncthreads();
#pragma unroll
        for (int i = 0; i < wide_count; i++)
#pragma unroll
            for (int j = 0; j < narrow_count; j++)
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    const int narrow = j * 8 + 2 * lane.c + s % 2;
                    const int row =
                        is_b_wide ? narrow : i * 16 + operand_a::wide_place(lane.g, s / 2);
                    const int col =
                        is_b_wide ? i * 16 + operand_b::wide_place(lane.g, s / 2) : narrow;
                    tile[(lane.row + row) * pitch + lane.col + col] = sum[i][j][s] + 0.0;
                }
    }
};

/* This body serves all four storage orders. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads>
struct tgi_dmma_body {
    static constexpr int pitch = TGI_DMMA_TILE_PITCH(Cols);
    typedef tgi_fp64_terms<Rows, Cols, pitch, 1, Threads> sums;
    static constexpr int has_one_tile = 0;
    double *memory;

    __device__ __forceinline__ void setup(const tgi_gemm_args &, void *shared)
    {
        memory = static_cast<double *>(shared);
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const tgi_gemm_args &given, const Schedule &schedule,
                                        Unit unit, sums &terms) const
    {
        const tgi_gemm_args &args = schedule.problem(given, unit);
        const tgi_block_tile tile = schedule.tile(unit);
        terms.begin(args, tile);
        tgi_with_order(args, [&](auto order) {
            typedef tgi_dmma<Rows, Cols, Depth, Warp_rows, Warp_cols, Stages, Threads,
                             order.a_along_k, order.b_along_k>
                form;
            form own;
            own.setup(args, memory);
            typename form::source copies(args, tile);
            tgi_fill_ring(own, copies);
            typename form::sums sum;
            tgi_multiply_steps(own, copies, sum);
            own.gather(sum, memory);
        });
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const tgi_gemm_args &given, const Schedule &schedule,
                                           Unit unit, sums &terms) const
    {
        const tgi_gemm_args &args = schedule.problem(given, unit);
        const tgi_block_tile tile = schedule.tile(unit);
        /* Without this barrier elements would be stored before the other warps have put theirs. */
        __syncthreads();
        if (terms.has_terms(args)) {
            terms.store(args, tile, memory);
        } else {
            tgi_gemm_args plain = args;
            plain.is_plain = 1;
            tgi_store_tile<double, Rows, Cols, pitch, 1, Threads>(plain, tile, memory);
        }
        /* Without this barrier the next batch entry's stages would overwrite sums not yet
         * stored. */
        __syncthreads();
    }
};

template <int Rows, int Cols, int... Shape>
static __device__ __forceinline__ void tgi_dmma_multiply(const tgi_gemm_args &args, void *shared)
{
    tgi_form_tiles<tgi_dmma_body<Rows, Cols, Shape...>>(
        tgi_grid_schedule<Rows, Cols, TGI_UNITS_ENTRIES>(args), args, shared);
}

#endif
