/*
 * Family mma: products on warp-level matrix instructions (mma.sync). A block forms a tile of D from
 * a ring of stages in shared memory, which cp.async fills in the background (mma_operand.cuh). Each
 * warp forms a part of the tile; it reads the next fragments of a stage while it multiplies those
 * before. D leaves through shared memory (mma_store.cuh), while the first stages of the
 * block's next tile are copied.
 */
#ifndef TGI_MMA_CUH
#define TGI_MMA_CUH

#include "kernels/mma/mma_math.cuh"
#include "kernels/mma/mma_operand.cuh"
#include "kernels/mma/mma_shape.h"
#include "kernels/mma/mma_store.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/schedule/grid_tiles.cuh"

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
    static constexpr int blocks_per_sm =
        TGI_MMA_BLOCKS_PER_SM(Warp_rows * Warp_cols / 32 * (1 + Math::is_promoted), Threads);
    static_assert(Rows / Warp_rows * (Cols / Warp_cols) * 32 == Threads, "warps tile D");
    static_assert(stage_bytes == TGI_MMA_STAGE_BYTES(Rows, Cols, Depth, sizeof(elem)),
                  "the row's stage");
    static_assert(!operand_a::is_mixed, "rows of D keep their places");
    static_assert(operand_a::bytes % 128 == 0, "operands begin at bank 0");
    static_assert(stage_bytes % 1024 == 0, "so do the boxes of line_store.cuh");
    static_assert(Stages >= 2 && k_fragments >= 2, "a stage is read while others are filled");

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

        /* Adds the products. Rows go down one column and up the next, so that the fragment of A at
         * each turn is used twice. */
        __device__ __forceinline__ void
        multiply(float (&sums)[row_fragments][8 * col_fragments]) const
        {
            uint32_t own_a[row_fragments][Math::words], own_b[col_fragments][Math::words];
#pragma unroll
            for (int i = 0; i < row_fragments; i++)
                Math::template take<1>(own_a[i], a[i]);
#pragma unroll
            for (int j = 0; j < col_fragments; j++)
                Math::template take<0>(own_b[j], b[j]);
#pragma unroll
            for (int j = 0; j < 2 * col_fragments; j++)
#pragma unroll
                for (int turn = 0; turn < row_fragments; turn++) {
                    const int i = j % 2 ? row_fragments - 1 - turn : turn;
                    float(&sum)[4] = *reinterpret_cast<float(*)[4]>(&sums[i][4 * j]);
                    Math::multiply(sum, own_a[i], own_b[j / 2], j % 2);
                }
        }
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

    /* Adds the sums of a stage to the tile's sums, and begins new ones. */
    static __device__ __forceinline__ void
    promote(float (&short_sums)[row_fragments][8 * col_fragments],
            float (&sums)[row_fragments][8 * col_fragments])
    {
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < 8 * col_fragments; j++) {
                sums[i][j] += short_sums[i][j];
                short_sums[i][j] = 0.0f;
            }
    }

    /* Forms the block's tiles one after another. The first stages of a tile are copied while the
     * sums of the previous tile leave through the last stage. */
    template <class Schedule = tgi_block_schedule<Rows, Cols>, class Args>
    static __device__ __forceinline__ void multiply(const Args &given, uint32_t shared)
    {
        const Schedule schedule(given);
        const int warp = static_cast<int>(threadIdx.x) / 32;
        const int row = warp / (Cols / Warp_cols) * Warp_rows;
        const int col = warp % (Cols / Warp_cols) * Warp_cols;
        float sums[row_fragments][8 * col_fragments];
        auto unit = schedule.begin(), before = unit;
#pragma unroll 1
        for (;; before = unit, unit = schedule.next(unit)) {
            const int has_unit = unit < schedule.end();
            const auto own = has_unit ? unit : before;
            stream<Schedule, Args, decltype(unit)> left(given, schedule, own, has_unit);
            /* A kernel that starts early finds its first tile while the kernel ahead still runs. */
            tgi_wait_for_stream();
#pragma unroll 1
            for (int i = 0; i < Stages - 1; i++) {
                left.begin(shared + i * stage_bytes, 0);
                left.advance();
            }
            if (unit != schedule.begin())
                tgi_mma_store<Math, operand_b::is_mixed>(schedule.problem(given, before),
                                                         schedule.tile(before), row, col, sums,
                                                         shared + (Stages - 1) * stage_bytes);
            if (!has_unit)
                break;
            add_tile(left, row, col, sums, shared);
        }
        tgi_copy_async_wait<0>();
    }

    /* Forms the sums of the tile of `left`, whose first stages are being copied. */
    template <class Stream>
    static __device__ __forceinline__ void add_tile(Stream &left, int row, int col,
                                                    float (&sums)[row_fragments][8 * col_fragments],
                                                    uint32_t shared)
    {
        fragments pair[2]; /* one in use, one being read */
        float stage_sums[row_fragments][8 * col_fragments];
        float(&short_sums)[row_fragments][8 * col_fragments] =
            Math::is_promoted ? stage_sums : sums;
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < 8 * col_fragments; j++)
                sums[i][j] = short_sums[i][j] = 0.0f;
        tgi_copy_async_wait<Stages - 2>();
        /* Without this barrier a warp would read what others have yet to copy, and copy to where
         * others still read the sums of the tile before. */
        __syncthreads();
        uint32_t a_place = shared + operand_a::find_fragment(row);
        uint32_t b_place = shared + operand_a::bytes + operand_b::find_fragment(col);
        const uint32_t last_stage = shared + (Stages - 1) * stage_bytes;
        uint32_t write = last_stage;
        pair[0].read(a_place, b_place, 0);
        pair[0].prepare();
#pragma unroll 1
        do {
            left.begin(write, is_issued_later);
#pragma unroll
            for (int j = 0; j < k_fragments; j++) {
                if (j == k_fragments - 1) {
                    left.advance();
                    tgi_copy_async_wait<Stages - 2>();
                    /* Without this barrier a warp would read parts of the next stage that others
                     * have yet to copy, and refill this stage while others still read it. */
                    __syncthreads();
                    write = write == last_stage ? shared : write + stage_bytes;
                    const int next =
                        write == last_stage ? stage_bytes - Stages * stage_bytes : stage_bytes;
                    a_place += next;
                    b_place += next;
                }
                pair[(j + 1) % 2].read(a_place, b_place, (j + 1) % k_fragments);
                if (is_issued_later && j < k_fragments - 1)
                    left.issue(write, j, k_fragments - 1);
                pair[j % 2].multiply(short_sums);
                pair[(j + 1) % 2].prepare();
            }
            if (Math::is_promoted)
                promote(short_sums, sums);
        } while (left.k_left > -(Stages - 1) * Depth);
        /* Without this barrier copies of the next tile would overwrite what slower warps still
         * read. */
        __syncthreads();
    }
};

/* One kernel serves all storage orders, because the whole grid runs the same body. The bodies share
 * the code of edges and of the epilogue. FP8 has A along k. */
template <class Math, int... Shape>
static __device__ __forceinline__ void tgi_mma_multiply(const tgi_gemm_args &args, uint32_t shared)
{
#define TGI_BODY(a_along_k, b_along_k)                                                             \
    tgi_mma<Math, Shape..., a_along_k, b_along_k>::multiply(args, shared)
    if constexpr (sizeof(typename Math::elem) > 1) {
        if (!args.a_along_k) {
            if (args.b_along_k)
                TGI_BODY(0, 1);
            else
                TGI_BODY(0, 0);
            return;
        }
    }
    if (args.b_along_k)
        TGI_BODY(1, 1);
    else
        TGI_BODY(1, 0);
#undef TGI_BODY
}

#endif
