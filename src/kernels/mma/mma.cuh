/*
 * Family mma multiplies by warp-level matrix instructions (mma.sync). Its body (kernels/body.cuh)
 * has
 *
 *     load()       fills stages by cp.async in the background (mma_operand.cuh)
 *     multiply()   adds the products of a warp's fragments at one place along k, while those at the
 *                  next place are read. Each warp forms a part of the tile.
 *     finish()     stores D through shared memory (mma_store.cuh), while the first stages of the
 *                  block's next tile are copied
 */
#ifndef TGI_MMA_CUH
#define TGI_MMA_CUH

#include "kernels/body.cuh"
#include "kernels/mma/mma_math.cuh"
#include "kernels/mma/mma_operand.cuh"
#include "kernels/mma/mma_shape.h"
#include "kernels/mma/mma_store.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* Rows x Cols is the block's tile, Warp_rows x Warp_cols a warp's. */
template <class Math, int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages,
          int Threads, int A_along_k, int B_along_k>
struct tgi_mma {
    typedef typename Math::elem elem;
    typedef tgi_mma_operand<elem, Rows, Depth, A_along_k, 1, Threads> operand_a;
    typedef tgi_mma_operand<elem, Cols, Depth, B_along_k, 0, Threads> operand_b;
    static constexpr int row_fragments = Warp_rows / 16, col_fragments = Warp_cols / 16;
    static constexpr int k_fragments = Depth / operand_a::fragment_elems;
    /* 1: copies are issued between the products of a stage. In a stage of two fragments along k
     * they would delay its barrier. */
    static constexpr int is_issued_later = k_fragments > 2;
    static constexpr int stage_bytes = operand_a::bytes + operand_b::bytes;
    static constexpr int stages = Stages, parts = k_fragments, switch_part = parts - 1;
    static constexpr int blocks_per_sm =
        TGI_MMA_BLOCKS_PER_SM(Warp_rows * Warp_cols / 32 * (1 + Math::is_promoted), Threads);
    static_assert(Rows / Warp_rows * (Cols / Warp_cols) * 32 == Threads, "warps tile D");
    static_assert(stage_bytes == TGI_MMA_STAGE_BYTES(Rows, Cols, Depth, sizeof(elem)),
                  "the row's stage");
    static_assert(!operand_a::is_mixed, "rows of D keep their places");
    static_assert(operand_a::bytes % 128 == 0, "operands begin at bank 0");
    static_assert(stage_bytes % 1024 == 0, "so do the boxes of line_store.cuh");
    static_assert(Stages >= 2 && k_fragments >= 2, "a stage is read while others are filled");
    typedef tgi_grid_schedule<Rows, Cols, TGI_UNITS_TILES> schedule;
    typedef float sums[row_fragments][8 * col_fragments];

    /* A warp's fragments at one place along k of a stage. */
    struct fragments {
        uint32_t a[row_fragments][4], b[col_fragments][4];

        __device__ __forceinline__ void read(uint32_t a_place, uint32_t b_place, int k_fragment)
        {
#pragma unroll
            for (int i = 0; i < row_fragments; i++)
                operand_a::read(a[i], a_place, i, k_fragment);
#pragma unroll
            for (int j = 0; j < col_fragments; j++)
                operand_b::read(b[j], b_place, j, k_fragment);
        }

        /* Prepares the words, beside the products of those before, which hide its time. */
        __device__ __forceinline__ void prepare(void)
        {
#pragma unroll
            for (int i = 0; i < row_fragments; i++)
                Math::prepare(a[i]);
#pragma unroll
            for (int j = 0; j < col_fragments; j++)
                Math::prepare(b[j]);
        }

        __device__ __forceinline__ void multiply(sums &sum) const
        {
            if constexpr (Math::turns == 1) {
                multiply_turn(sum, 0);
            } else {
#pragma unroll 1
                for (int turn = 0; turn < Math::turns; turn++)
                    multiply_turn(sum, turn);
            }
        }

        /* Adds the products of a turn. A fragment of B is multiplied by all of A, down and up. In
         * large tiles whose B lies across k one of A by all of B was measured to be faster. */
        __device__ __forceinline__ void multiply_turn(sums &sum, int turn) const
        {
            constexpr int cols = 2 * col_fragments;
            constexpr int is_a_kept = !B_along_k && Warp_rows * Warp_cols >= 64 * 64;
            uint32_t own_a[row_fragments][Math::words], own_b[col_fragments][Math::words];
#pragma unroll
            for (int i = 0; i < row_fragments; i++)
                Math::template take<1>(own_a[i], a[i], turn);
#pragma unroll
            for (int j = 0; j < col_fragments; j++)
                Math::template take<0>(own_b[j], b[j], turn);
#pragma unroll
            for (int product = 0; product < row_fragments * cols; product++) {
                const int count = is_a_kept ? cols : row_fragments;
                const int kept = product / count, at = product % count;
                const int other = kept % 2 ? count - 1 - at : at;
                const int i = is_a_kept ? kept : other, j = is_a_kept ? other : kept;
                float(&own)[4] = *reinterpret_cast<float(*)[4]>(&sum[i][4 * j]);
                Math::multiply(own, own_a[i], own_b[j / 2], j % 2);
            }
        }
    };

    struct factors {
        fragments pair[2]; /* one in use, one being read */
        sums stage_sums;   /* sums of the step, if they are promoted */
    };

    /* Describes an operand. Its vector_elems is above 1 if it is a copy by repack.cu, whose lines
     * are padded. */
    static __device__ __forceinline__ tgi_mma_source<elem>
    find_source_a(const tgi_gemm_args &args, const tgi_block_tile &tile, int64_t k)
    {
        const tgi_problem &p = args.problem;
        tgi_mma_source<elem> found;
        found.data = tgi_find_a<elem>(args, tile, k);
        found.line_stride = A_along_k ? p.a.row : p.a.col;
        found.elem_stride = A_along_k ? p.a.col : p.a.row;
        found.entry_count = tgi_clamp_count(p.m - tile.row, Rows);
        found.is_padded = args.a_vector_elems > 1;
        found.find_copy_bytes(args.a, p.a.batch, A_along_k ? p.m : p.k);
        return found;
    }

    static __device__ __forceinline__ tgi_mma_source<elem>
    find_source_b(const tgi_gemm_args &args, const tgi_block_tile &tile, int64_t k)
    {
        const tgi_problem &p = args.problem;
        tgi_mma_source<elem> found;
        found.data = tgi_find_b<elem>(args, tile, k);
        found.line_stride = B_along_k ? p.b.col : p.b.row;
        found.elem_stride = B_along_k ? p.b.row : p.b.col;
        found.entry_count = tgi_clamp_count(p.n - tile.col, Cols);
        found.is_padded = args.b_vector_elems > 1;
        found.find_copy_bytes(args.b, p.b.batch, B_along_k ? p.n : p.k);
        return found;
    }

    /* A stream has the copies of a unit's next stage. */
    template <class Schedule, class Args, typename Unit> struct stream {
        const Args &given;
        const Unit unit;
        typename operand_a::copies a;
        typename operand_b::copies b;
        int k_left, end; /* k from the next stage on; k_left at which the last whole stage begins */

        /* Takes is_on = 0 if there is nothing to copy. */
        __device__ __forceinline__ stream(const Args &all, const Schedule &schedule, Unit own,
                                          int is_on)
            : given(all), unit(own), a(find_a(all, schedule, own, 0)),
              b(find_b(all, schedule, own, 0))
        {
            const int has_whole_units = operand_a::has_whole_units(find_a(all, schedule, own, 0)) &&
                                        operand_b::has_whole_units(find_b(all, schedule, own, 0));
            k_left = is_on ? count_k(all, schedule, own) : 0;
            end = has_whole_units ? Depth : INT32_MAX;
        }

        static __device__ __forceinline__ int count_k(const Args &all, const Schedule &schedule,
                                                      Unit unit)
        {
            const tgi_gemm_args &args = schedule.problem(all, unit);
            return static_cast<int>(tgi_count_k(args, find_k(args, schedule.tile(unit))));
        }

        /* Returns the first k of the tile's split. */
        static __device__ __forceinline__ int64_t find_k(const tgi_gemm_args &args,
                                                         const tgi_block_tile &tile)
        {
            return tgi_find_first_k(args, static_cast<unsigned>(tile.split));
        }

        /* Return the operands from the unit's k number `k` on. */
        static __device__ __forceinline__ tgi_mma_source<elem>
        find_a(const Args &all, const Schedule &schedule, Unit unit, int k)
        {
            const tgi_gemm_args &args = schedule.problem(all, unit);
            const tgi_block_tile tile = schedule.tile(unit);
            return find_source_a(args, tile, find_k(args, tile) + k);
        }

        static __device__ __forceinline__ tgi_mma_source<elem>
        find_b(const Args &all, const Schedule &schedule, Unit unit, int k)
        {
            const tgi_gemm_args &args = schedule.problem(all, unit);
            const tgi_block_tile tile = schedule.tile(unit);
            return find_source_b(args, tile, find_k(args, tile) + k);
        }

        /* Begins the copies of the next stage. If the stage has edges, it is copied whole. If no
         * copies are issued later, all are issued here. Whole stages come first. */
        __device__ __forceinline__ void begin(uint32_t stage, int is_issued_later)
        {
            if (k_left >= end) {
                if (!is_issued_later)
                    issue(stage, 0, 1);
                return;
            }
            a.left = b.left = 0;
            if (k_left > 0)
                copy_edges(given, unit, stage, k_left);
        }

        /* Copies a stage with edges, which has k_left of k. It is out of line, and finds the
         * operands again, so that the loop that calls it keeps its registers. */
        static __device__ __noinline__ void copy_edges(const Args &all, Unit unit, uint32_t stage,
                                                       int k_left)
        {
            const Schedule schedule(all);
            const int k = count_k(all, schedule, unit) - k_left;
            operand_a::copy(stage, find_a(all, schedule, unit, k), k_left);
            operand_b::copy(stage + operand_a::bytes, find_b(all, schedule, unit, k), k_left);
        }

        /* Issues share `index` of `count` of the copies of a whole stage. */
        __device__ __forceinline__ void issue(uint32_t stage, int index, int count) const
        {
            const int a_count = operand_a::accesses, b_count = operand_b::accesses;
            a.issue(stage, index * a_count / count, (index + 1) * a_count / count);
            b.issue(stage + operand_a::bytes, index * b_count / count,
                    (index + 1) * b_count / count);
        }

        /* Ends the copies of the stage. */
        __device__ __forceinline__ void advance(void)
        {
            a.advance();
            b.advance();
            k_left -= Depth;
            tgi_copy_async_commit();
        }
    };

    uint32_t ring;             /* address of the first stage */
    int row, col;              /* the warp's first row and column in the tile */
    uint32_t a_place, b_place; /* its first fragments in the stage that is read */
    uint32_t filled;           /* the stage that is filled */

    template <class Args> __device__ __forceinline__ void setup(const Args &, uint32_t shared)
    {
        const int warp = static_cast<int>(threadIdx.x) / 32;
        ring = shared;
        row = warp / (Cols / Warp_cols) * Warp_rows;
        col = warp % (Cols / Warp_cols) * Warp_cols;
    }

    template <class Args, class Schedule, typename Unit>
    static __device__ __forceinline__ stream<Schedule, Args, Unit>
    open(const Args &given, const Schedule &schedule, Unit unit, int is_on)
    {
        const stream<Schedule, Args, Unit> copies(given, schedule, unit, is_on);
        /* A kernel that starts early finds its first tile while the kernel ahead still runs. */
        tgi_wait_for_stream();
        return copies;
    }

    __device__ __forceinline__ uint32_t find_last_stage(void) const
    {
        return ring + (Stages - 1) * stage_bytes;
    }

    static __device__ __forceinline__ void begin(sums &sum)
    {
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < 8 * col_fragments; j++)
                sum[i][j] = 0.0f;
    }

    template <class Stream>
    static __device__ __forceinline__ bool has_step(const Stream &copies, int step)
    {
        return step == 0 || copies.k_left > -(Stages - 1) * Depth;
    }

    template <class Stream> __device__ __forceinline__ void load(Stream &copies, int step) const
    {
        copies.begin(ring + step * stage_bytes, 0);
        copies.advance();
    }

    template <class Stream> __device__ __forceinline__ void load_edge(Stream &copies, int) const
    {
        copies.begin(filled, is_issued_later);
    }

    template <class Stream>
    __device__ __forceinline__ void load_part(const Stream &copies, int part) const
    {
        if (is_issued_later)
            copies.issue(filled, part, switch_part);
    }

    template <class Stream> static __device__ __forceinline__ void close(Stream &copies)
    {
        copies.advance();
    }

    template <class Stream> __device__ __forceinline__ void advance(Stream &)
    {
        const uint32_t last = find_last_stage();
        filled = filled == last ? ring : filled + stage_bytes;
        const int next = filled == last ? stage_bytes - Stages * stage_bytes : stage_bytes;
        a_place += next;
        b_place += next;
    }

    template <class Stream>
    __device__ __forceinline__ void read_first(const Stream &, factors &factor)
    {
        a_place = ring + operand_a::find_fragment(row);
        b_place = ring + operand_a::bytes + operand_b::find_fragment(col);
        filled = find_last_stage();
        factor.pair[0].read(a_place, b_place, 0);
        factor.pair[0].prepare();
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < 8 * col_fragments; j++)
                factor.stage_sums[i][j] = 0.0f;
    }

    template <class Stream>
    __device__ __forceinline__ void read_ahead(const Stream &, factors &factor, int part) const
    {
        factor.pair[(part + 1) % 2].read(a_place, b_place, (part + 1) % parts);
    }

    static __device__ __forceinline__ void multiply(sums &sum, factors &factor, int part)
    {
        factor.pair[part % 2].multiply(Math::is_promoted ? factor.stage_sums : sum);
        factor.pair[(part + 1) % 2].prepare();
        if (Math::is_promoted && part == parts - 1)
            promote(factor.stage_sums, sum);
    }

    /* Adds the sums of a stage to the tile's sums, and begins new ones. */
    static __device__ __forceinline__ void promote(sums &stage_sums, sums &sum)
    {
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < 8 * col_fragments; j++) {
                sum[i][j] += stage_sums[i][j];
                stage_sums[i][j] = 0.0f;
            }
    }

    template <class Stream> static __device__ __forceinline__ void leave(const Stream &, sums &)
    {
        /* Without this barrier copies of the next tile would overwrite what slower warps still
         * read. */
        __syncthreads();
    }

    template <class Args, class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const Args &given, const Schedule &schedule, Unit unit,
                                           const sums &sum) const
    {
        tgi_mma_store<Math, operand_b::is_mixed>(schedule.problem(given, unit), schedule.tile(unit),
                                                 row, col, sum, find_last_stage());
    }
};

template <class Body>
static __device__ __forceinline__ void tgi_mma_form(const tgi_gemm_args &args, uint32_t shared)
{
    tgi_form_tiles_ahead<Body>(typename Body::schedule(args), args, shared);
}

/* The bodies of all storage orders share the code of edges and of the epilogue. FP8 has A along
 * k. */
template <class Math, int... Shape>
static __device__ __forceinline__ void tgi_mma_multiply(const tgi_gemm_args &args, uint32_t shared)
{
    const auto form = [&](auto order) {
        tgi_mma_form<tgi_mma<Math, Shape..., order.a_along_k, order.b_along_k>>(args, shared);
    };
    if constexpr (sizeof(typename Math::elem) > 1)
        tgi_with_order(args, form);
    else if (args.b_along_k)
        form(tgi_order<1, 1>{});
    else
        form(tgi_order<1, 0>{});
}

#endif
