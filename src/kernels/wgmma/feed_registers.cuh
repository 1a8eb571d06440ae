/*
 * This feed keeps FP32 rows of A as FP32 in shared memory, for products with slices of B. The
 * threads that multiply slice the rows to BF16 in registers, from which the products read A. A
 * large A of a product with few columns is thus read once, and no pass writes its slices.
 *
 * A thread releases a stage after its own products. Their fence waits for the whole warpgroup, so
 * all warps have then read their rows.
 */
#ifndef TGI_FEED_REGISTERS_CUH
#define TGI_FEED_REGISTERS_CUH

#include "kernels/wgmma/feed_slices.cuh"

/* A thread's part of 64 rows: [slice][16 values of k][register of the instruction]. */
typedef uint32_t tgi_sliced_rows[3][2][4];

/* Reads elements k and k + 1, for even k, of row `row` of a chunk of rows at `shared`, in lines of
 * 128 bytes under the 128-byte swizzle. Along k a line is a row. Across k a box of 32 rows has a
 * line for each k. The lanes of a warp, 8 rows by 4 pairs, read different banks. */
template <int Across>
static __device__ __forceinline__ void tgi_read_row_pair(float (&value)[2], uint32_t shared,
                                                         int row, int k)
{
    if (!Across) {
        tgi_read_shared_8(tgi_find_unit(shared, row, k / 4) + k % 4 * 4, value);
        return;
    }
    const uint32_t box = shared + row / TGI_CHUNK_ELEMS * (TGI_CHUNK_ELEMS * TGI_SWIZZLE_BYTES);
#pragma unroll
    for (int i = 0; i < 2; i++)
        value[i] =
            tgi_read_shared_4(tgi_find_unit(box, k + i, row % TGI_CHUNK_ELEMS / 4) + row % 4 * 4);
}

/* Slices a chunk of 64 rows at `shared`, of which row_count exist, and extends `range` to them.
 * `least` of the range is stored less one. */
template <int Across>
static __device__ __forceinline__ void tgi_slice_rows(uint32_t shared, int row_count,
                                                      tgi_range &range, tgi_sliced_rows &rows)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int row = warp * 16 + lane / 4 + i % 2 * 8;
        const uint32_t mask = row < row_count ? 0x7fffffffu : 0;
        float value[2];
        uint32_t word[3];
        tgi_read_row_pair<Across>(value, shared, row, i / 2 * 8 + lane % 4 * 2);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint32_t bits = __float_as_uint(value[j]) & mask;
            range.largest = max(range.largest, bits);
            range.least = min(range.least, bits - 1u); /* 0 becomes UINT32_MAX */
        }
        tgi_take_slices(value, word);
#pragma unroll
        for (int slice = 0; slice < 3; slice++)
            rows[slice][i / 4][i % 4] = word[slice];
    }
}

/* Returns the range of the warp's rows over a tile's k, from the ranges of its lanes. The
 * range of a split tile is also written for the kernel that adds its splits. */
static __device__ __forceinline__ tgi_range tgi_reduce_range(const tgi_wgmma_args &args,
                                                             const tgi_cluster_tile &tile,
                                                             tgi_range range)
{
    const int row = tile.row + static_cast<int>(threadIdx.x) / 32 % 4 * TGI_REGISTER_ROWS;
    range.largest = __reduce_max_sync(~0u, range.largest);
    range.least = __reduce_min_sync(~0u, range.least);
    range.least += range.least != UINT32_MAX;
    if (tile.split_tile >= 0 && row < args.a.line_count && threadIdx.x % 32 == 0) {
        const tgi_slice_ranges &slices = args.a_slices;
        const int64_t block =
            static_cast<int64_t>(args.a.has_batch ? tile.batch : 0) * slices.block_count +
            row / TGI_REGISTER_ROWS;
        slices.ranges[block * slices.segment_count + tile.split] = range;
    }
    range.least = min(range.least, TGI_BITS_LARGEST);
    return range;
}

#define TGI_FEW_COLS 16 /* if B has no more columns, tiles of 64 columns multiply only these */

struct tgi_feed_registers : tgi_feed_slices<3> {
    static constexpr int a_line_bytes = TGI_WGMMA_STEP_BYTES;
    static constexpr int has_a_in_registers = 1;

    template <class Shape>
    static __device__ __forceinline__ int count_bytes(const arguments &given, tgi_tma_boxes a_boxes,
                                                      tgi_tma_boxes b_boxes)
    {
        const int line_bytes = given.slice_count * TGI_CHUNK_BYTES;
        return a_boxes.count * a_boxes.lines(given.a) * a_line_bytes +
               b_boxes.count * b_boxes.lines(given.b) * line_bytes;
    }

    template <class Shape>
    static __device__ __forceinline__ void
    load(const arguments &given, uint32_t stage, uint32_t full, const tgi_cluster_tile &tile,
         int step, tgi_tma_boxes a_boxes, tgi_tma_boxes b_boxes, tgi_tma_sharers column)
    {
        tgi_load_tile<Shape::across_a, Shape::rows, TGI_CHUNK_ELEMS>(
            given.a, a_boxes, stage, full, tile.row, step, tile.batch, {1, 0, 0});
        tgi_load_slices<Shape::cols>(given, given.b, b_boxes, stage + Shape::a_bytes, full,
                                     tile.col, step, tile.batch, column);
    }

    /* Forms the six products of bf16x6 with as many columns of B as `sum` has. */
    template <class Shape, int Count>
    static __device__ __forceinline__ void form(uint64_t b, const tgi_sliced_rows &rows,
                                                float (&sum)[Count])
    {
        constexpr int b_units = Shape::cols * TGI_CHUNK_BYTES / 16; /* units of a slice */
        tgi_wgmma_fence();
#pragma unroll
        for (int i = 3; i < TGI_SLICE_PRODUCTS; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const uint64_t b_lines = b + tgi_find_pair(i).b * b_units + j * 2;
                if (i > 3 || j > 0)
                    tgi_multiply_registers<Shape, 1>(sum, rows[tgi_find_pair(i).a][j], b_lines);
                else
                    tgi_multiply_registers<Shape, 0>(sum, rows[tgi_find_pair(i).a][j], b_lines);
            }
        tgi_wgmma_commit();
        /* Without this wait products would be under way where two paths of the code meet, and the
         * compiler would serialize them. */
        tgi_wgmma_wait<0>();
    }

    template <class Shape> struct products {
        typedef tgi_sliced_rows a_rows;
        tgi_range &range;

        __device__ __forceinline__ explicit products(tgi_range &widened) : range(widened)
        {
        }

        __device__ __forceinline__ void read_a(const tgi_consumer<Shape> &at,
                                               const tgi_cluster_tile &tile, uint32_t stage,
                                               a_rows &rows) const
        {
            static_assert(Shape::blocks == 1, "a warpgroup has 64 rows");
            const int first = at.group * TGI_BLOCK_LINES;
            tgi_slice_rows<Shape::across_a>(stage + first * TGI_WGMMA_STEP_BYTES,
                                            at.args.a.line_count - tile.row - first, range, rows);
        }

        __device__ __forceinline__ void
        multiply(const tgi_consumer<Shape> &at, uint32_t stage, int line, const a_rows &rows,
                 float (&short_sums)[Shape::blocks][Shape::mma_cols / 2]) const
        {
            const uint64_t b = tgi_describe_64(stage + Shape::a_bytes + line * TGI_CHUNK_BYTES);
            if (Shape::cols == 64 && at.args.b.line_count <= TGI_FEW_COLS) {
                float few[TGI_FEW_COLS / 2];
                form<Shape>(b, rows, few);
#pragma unroll
                for (int i = 0; i < Shape::mma_cols / 2; i++)
                    short_sums[0][i] = i < TGI_FEW_COLS / 2 ? few[i % (TGI_FEW_COLS / 2)] : 0.0f;
            } else {
                form<Shape>(b, rows, short_sums[0]);
            }
        }
    };

    template <class Shape>
    static __device__ __forceinline__ void
    sum(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile, tgi_ring<Shape::stages> &ring,
        repair &rows, typename Shape::deferred &, float (&total)[Shape::blocks][Shape::cols / 2])
    {
        tgi_sum_promoted<Shape>(at, tile, ring, products<Shape>(rows.a_range),
                                tgi_workspace_runs<Shape>(), total);
    }

    template <int Count>
    static __device__ __forceinline__ void
    finish(const tgi_wgmma_args &args, const tgi_cluster_tile &tile, repair &rows, float (&)[Count])
    {
        rows.a_range = tgi_reduce_range(args, tile, rows.a_range);
        if (tgi_is_stored_whole(args, tile))
            rows.find_columns(tile, args.work.tile_cols);
    }
};

#endif
