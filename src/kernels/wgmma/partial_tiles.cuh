/*
 * Sums in the workspace lie as the threads of a warpgroup hold them (epilogue/thread_sums.cuh).
 *
 * Split-K has partial tiles of 64 rows x TGI_FRAGMENT_COLS columns. The partial tile of rows number
 * r and columns number c, of split tile t and split s, has number
 *   ((t * splits + s) * row_count + r) * col_count + c.
 * wgmma_add.cu adds parts of 16 columns, and of 32 of slices. Their numbers follow in the same way,
 * because the parts of a partial tile lie one behind the other.
 *
 * Products of slices sum k in runs, with a place in the workspace for each block of the grid.
 */
#ifndef TGI_PARTIAL_TILES_CUH
#define TGI_PARTIAL_TILES_CUH

#include "kernels/epilogue/thread_sums.cuh"
#include "kernels/wgmma/mainloop.cuh"

/* The number of sums of a partial tile that a thread holds, if tiles have `cols` columns. */
#define TGI_PARTIAL_SUMS(cols) (TGI_FRAGMENT_COLS(cols) / 2)

/* Writes a warpgroup's sums, for the 64 rows number `row` of split `split` of split tile
 * `split_tile`. */
template <int Cols, int Count>
static __device__ __forceinline__ void
tgi_write_partial_tiles(const tgi_wgmma_args &args, int split_tile, int split, int row,
                        int row_count, const float (&sum)[Count])
{
    constexpr int sums = TGI_PARTIAL_SUMS(Cols);
    const int64_t first =
        ((static_cast<int64_t>(split_tile) * args.gemm.split_count + split) * row_count + row) *
        (Count / sums);
    tgi_write_sums(tgi_find_sums<sums>(args.gemm.workspace, first), sum);
}

/* Adds `count` splits of a partial tile in order. They are `stride` partial tiles apart. Up to
 * eight are read at once, as registers allow. */
template <int Count>
static __device__ __forceinline__ void tgi_add_partial_tiles(const tgi_wgmma_args &args,
                                                             int64_t first, int64_t stride,
                                                             int count, float (&sum)[Count])
{
    constexpr int at_once = Count <= 8 ? 8 : 64 / Count;
#pragma unroll at_once
    for (int split = 0; split < count; split++)
        tgi_add_sums(tgi_find_sums<Count>(args.gemm.workspace, first + split * stride), sum);
}

/* The runs of k for products of slices. The sums of a run are added to those of earlier runs, which
 * wait in the block's place of the workspace. */
template <class Shape> struct tgi_workspace_runs {
    int has_runs = 0;

    /* Begins another run before step `step` of the tile is added, if the current run is full. */
    __device__ __forceinline__ void begin_step(const tgi_consumer<Shape> &at,
                                               const tgi_cluster_tile &tile, int step,
                                               float (&sum)[Shape::blocks][Shape::cols / 2])
    {
        if (step % TGI_RUN_CHUNKS == 0 && step > tile.step) {
            if (has_runs)
                add(at, sum);
#pragma unroll
            for (int block = 0; block < Shape::blocks; block++) {
                tgi_write_sums(find_place(at, block), sum[block]);
#pragma unroll
                for (int i = 0; i < Shape::cols / 2; i++)
                    sum[block][i] = 0.0f;
            }
            has_runs = 1;
        }
    }

    __device__ __forceinline__ void end(const tgi_consumer<Shape> &at,
                                        float (&sum)[Shape::blocks][Shape::cols / 2])
    {
        if (has_runs)
            add(at, sum);
    }

    static __device__ __forceinline__ float4 *find_place(const tgi_consumer<Shape> &at, int block)
    {
        const int first =
            (static_cast<int>(blockIdx.x) * Shape::group_count + at.group) * Shape::blocks;
        return tgi_find_sums<Shape::cols / 2>(at.args.run_sums, first + block);
    }

    static __device__ __forceinline__ void add(const tgi_consumer<Shape> &at,
                                               float (&sum)[Shape::blocks][Shape::cols / 2])
    {
#pragma unroll
        for (int block = 0; block < Shape::blocks; block++)
            tgi_add_sums(find_place(at, block), sum[block]);
    }
};

#endif
