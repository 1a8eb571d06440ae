/*
 * Stores tiles of sums from shared memory to D, or to the workspace of split-K.
 */
#ifndef TGI_TILE_STORE_CUH
#define TGI_TILE_STORE_CUH

#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/schedule/tile.cuh"

/* Adds each of Count sums over the lanes whose numbers differ in the bits Distance, Distance / 2 ..
 * Last. Each time a lane passes half of its sums to the lane across, and adds that lane's part
 * of the other half, so that the lanes share the work. With Distance = 16 and Count >= 16 / Last *
 * 2, lane l ends with sums l / Last * Count * Last / 32 and on, in its first places. */
template <typename T, int Count, int Distance, int Last>
static __device__ __forceinline__ void tgi_add_lanes(T *sums)
{
    const unsigned all = 0xffffffffu;
    if constexpr (Distance >= Last) {
        if constexpr (Count > 1) {
            const bool is_upper = threadIdx.x & Distance;
#pragma unroll
            for (int i = 0; i < Count / 2; i++) {
                const T other = is_upper ? sums[i] : sums[i + Count / 2];
                const T own = is_upper ? sums[i + Count / 2] : sums[i];
                sums[i] = own + __shfl_xor_sync(all, other, Distance);
            }
            tgi_add_lanes<T, Count / 2, Distance / 2, Last>(sums);
        } else {
            sums[0] += __shfl_xor_sync(all, sums[0], Distance);
            tgi_add_lanes<T, 1, Distance / 2, Last>(sums);
        }
    }
}

/* Stores a tile of Rows x Cols, of which the first col_count columns lie in D, to D or, if k is
 * split, to the workspace. The tile is the sum, in order, of Tiles tiles in shared memory, each
 * with rows Pitch elements apart and Rows * Pitch elements in all. */
template <typename T, int Rows, int Cols, int Pitch, int Tiles, int Threads>
static __device__ __forceinline__ void tgi_store_tile(const tgi_gemm_args &args,
                                                      const tgi_block_tile &tile, const T *sums,
                                                      int col_count = Cols)
{
    static_assert(Cols % Threads == 0 || Threads >= Cols, "a thread keeps to its columns");
    const tgi_problem &problem = args.problem;
    const int rows = tgi_clamp_count(problem.m - tile.row, Rows);
    const int cols = tgi_clamp_count(problem.n - tile.col, col_count);
    const int is_whole = args.split_count == 1;
    const int64_t row_stride = is_whole ? problem.d.row : problem.n;
    const int64_t col_stride = is_whole ? problem.d.col : 1;
    T *target = is_whole ? static_cast<T *>(args.d) + tile.batch * problem.d.batch
                         : static_cast<T *>(args.workspace) +
                               (tile.batch * args.split_count + tile.split) * problem.m * problem.n;
    target += tile.row * row_stride + tile.col * col_stride;
    const int is_direct = !is_whole || args.is_plain;
    constexpr int rows_apart = Threads > Cols ? Threads / Cols : 1;
    for (int col = threadIdx.x % Cols; col < cols; col += Threads) {
        int first = threadIdx.x / Cols % rows_apart;
        if (Threads > Cols && Threads % Cols != 0 && threadIdx.x >= rows_apart * Cols)
            break;
        const T *source = sums + first * Pitch + col;
        T *element = target + first * row_stride + col * col_stride;
        if (is_direct) {
#pragma unroll 4
            for (int row = first; row < rows; row += rows_apart) {
                T sum = source[0];
#pragma unroll
                for (int from = 1; from < Tiles; from++)
                    sum += source[from * Rows * Pitch];
                *element = sum;
                source += rows_apart * Pitch;
                element += rows_apart * row_stride;
            }
            continue;
        }
        /* Handling more elements at once hides more of the latency of C and the bias, but takes
         * registers. */
        constexpr int run = Rows / rows_apart, most = sizeof(T) == 4 ? 8 : 4;
        constexpr int at_once = run >= 32 / most * 4 ? most : run >= 8 && sizeof(T) == 4 ? 4 : 1;
#pragma unroll 1
        for (; first < rows; first += at_once * rows_apart) {
            const tgi_column_places places = {first, rows_apart, rows};
            T sum[at_once];
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                sum[i] = T(0);
#pragma unroll
                for (int from = 0; from < Tiles; from++)
                    if (places.is_inside(i)) {
                        const T more = source[(from * Rows + i * rows_apart) * Pitch];
                        sum[i] = from == 0 ? more : sum[i] + more;
                    }
            }
            source += at_once * rows_apart * Pitch;
            tgi_finish_elements(args, tile.batch, tile.row, tile.col + col, places, sum);
        }
    }
}

#endif
