/*
 * This feed has FP32 operands as slices of 16 bits (kernels/copy/slice_args.h). A stage holds a
 * chunk of k of all slices of a tile's lines. Slices are multiplied in pairs, the least product
 * first. Sums that 16 bits might have spoiled are repaired (slice_repair.cuh).
 */
#ifndef TGI_FEED_SLICES_CUH
#define TGI_FEED_SLICES_CUH

#include "kernels/copy/slice_pairs.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/wgmma/feed_tma.cuh"
#include "kernels/wgmma/partial_tiles.cuh"
#include "kernels/wgmma/slice_repair.cuh"

/* Issues the products of a full stage from number First on, with B's lines from `line` on, to
 * replace `sum`. The loop is unrolled, because otherwise an instruction would wait for the sums of
 * the previous iteration. */
template <class Shape, int First>
static __device__ __forceinline__ void
tgi_multiply_products(uint32_t stage, int group, int line,
                      float (&sum)[Shape::blocks][Shape::mma_cols / 2])
{
    constexpr int a_units = Shape::rows * TGI_CHUNK_BYTES / 16; /* units of a slice */
    constexpr int b_units = Shape::cols * TGI_CHUNK_BYTES / 16;
    constexpr int block_units = 64 * TGI_CHUNK_BYTES / 16, mma_units = 2; /* 32 bytes of k */
    const uint64_t a = tgi_describe_64(stage + group * Shape::group_rows * TGI_CHUNK_BYTES);
    const uint64_t b = tgi_describe_64(stage + Shape::a_bytes + line * TGI_CHUNK_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int i = First; i < TGI_SLICE_PRODUCTS; i++)
#pragma unroll
        for (int j = 0; j < TGI_CHUNK_BYTES / 32; j++)
#pragma unroll
            for (int block = 0; block < Shape::blocks; block++) {
                const uint64_t a_lines =
                    a + tgi_find_pair(i).a * a_units + block * block_units + j * mma_units;
                const uint64_t b_lines = b + tgi_find_pair(i).b * b_units + j * mma_units;
                if (i > First || j > 0)
                    tgi_multiply_lines<Shape, 1>(sum[block], a_lines, b_lines);
                else
                    tgi_multiply_lines<Shape, 0>(sum[block], a_lines, b_lines);
            }
    tgi_wgmma_commit();
}

/* Room is the number of slices of each operand that a stage has room for, 2 or 3. */
template <int Room> struct tgi_feed_slices : tgi_feed_tma {
    static constexpr int a_line_bytes = Room * TGI_CHUNK_BYTES,
                         b_line_bytes = Room * TGI_CHUNK_BYTES;
    static constexpr int is_sliced = 1;
    typedef tgi_slice_repair repair;

    template <class Shape>
    static __device__ __forceinline__ int count_bytes(const arguments &given, tgi_tma_boxes a_boxes,
                                                      tgi_tma_boxes b_boxes)
    {
        const int line_bytes = given.slice_count * TGI_CHUNK_BYTES;
        return a_boxes.count * a_boxes.lines(given.a) * line_bytes +
               b_boxes.count * b_boxes.lines(given.b) * line_bytes;
    }

    template <class Shape>
    static __device__ __forceinline__ void
    load(const arguments &given, uint32_t stage, uint32_t full, const tgi_cluster_tile &tile,
         int step, tgi_tma_boxes a_boxes, tgi_tma_boxes b_boxes, tgi_tma_sharers column)
    {
        tgi_load_slices<Shape::rows>(given, given.a, a_boxes, stage, full, tile.row, step,
                                     tile.batch, {1, 0, 0});
        tgi_load_slices<Shape::cols>(given, given.b, b_boxes, stage + Shape::a_bytes, full,
                                     tile.col, step, tile.batch, column);
    }

    /* The products of slices that the precision needs. */
    template <class Shape> struct products : tgi_plain_products<Shape> {
        typedef typename tgi_plain_products<Shape>::a_rows a_rows;

        __device__ __forceinline__ void
        multiply(const tgi_consumer<Shape> &at, uint32_t stage, int line, const a_rows &,
                 float (&short_sums)[Shape::blocks][Shape::mma_cols / 2]) const
        {
            const int first = at.args.first_product;
            if (Room == 3 && first == 3)
                tgi_multiply_products<Shape, 3>(stage, at.group, line, short_sums);
            else if (Room == 3 && first == 0)
                tgi_multiply_products<Shape, 0>(stage, at.group, line, short_sums);
            else
                tgi_multiply_products<Shape, 6>(stage, at.group, line, short_sums);
        }
    };

    template <class Shape>
    static __device__ __forceinline__ void
    sum(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile, tgi_ring<Shape::stages> &ring,
        repair &, typename Shape::deferred &, float (&total)[Shape::blocks][Shape::cols / 2])
    {
        tgi_sum_promoted<Shape>(at, tile, ring, products<Shape>(), tgi_workspace_runs<Shape>(),
                                total);
    }

    template <int Count>
    static __device__ __forceinline__ void finish(const tgi_wgmma_args &args,
                                                  const tgi_cluster_tile &tile, repair &rows,
                                                  float (&sum)[Count])
    {
        if (tgi_is_stored_whole(args, tile))
            rows.find_rows(tile, args.work.tile_cols);
        tgi_scale_sums(args, tile, sum);
    }
};

#endif
