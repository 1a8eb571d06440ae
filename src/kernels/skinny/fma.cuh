/*
 * This body of families dot and rank multiplies FP32 and FP64 by multiply-adds.
 *
 * dot:  each warp owns a part of the tile's columns. Its lanes form a grid of columns by k, and the
 *       sums of lanes that share out k are added by shuffles at the end. If D has 16 rows, most of
 *       the traffic is A, so each element that is read serves many columns.
 * rank: each warp owns a part of the stage's k, and each lane 16 bytes of columns. The warps' sums
 *       are added in shared memory at the end.
 */
#ifndef TGI_SKINNY_FMA_CUH
#define TGI_SKINNY_FMA_CUH

#include "kernels/skinny/skinny.cuh"

/* Rows x Cols is the block's tile; a lane has all rows x Lane_cols. */
template <typename T, int Along_k, int Rows, int Cols, int Depth, int Lane_cols, int Stages,
          int Threads>
struct tgi_skinny_fma {
    typedef T elem;
    typedef T sum;
    typedef tgi_gemm_args arguments;
    typedef tgi_skinny_cursor<tgi_skinny_fma> cursor;
    static constexpr int along_k = Along_k, rows = Rows, cols = Cols, depth = Depth,
                         stages = Stages, threads = Threads;
    static constexpr int width = tgi_vector<T>::count, warps = Threads / 32;
    static constexpr int sum_tiles = Along_k ? 1 : warps;
    static constexpr int block_lines = Along_k ? Cols : Depth;
    static constexpr int line_elems = Along_k ? Depth : Cols;
    static constexpr int warp_lines = block_lines / warps, warp_line_stride = warp_lines,
                         has_fewer_cols = 0, sum_first = 0, sum_pitch = Cols;
    /* Lanes that share out a line. */
    static constexpr int line_lanes = Along_k ? 32 * Lane_cols / warp_lines : 32;
    static constexpr int sum_count = Rows * Lane_cols;
    static_assert(Along_k || (warp_lines % width == 0 && line_elems == 32 * width),
                  "A is read by vectors along k, B by a vector a lane");
    static_assert(Depth % (Along_k ? line_lanes * width : 1) == 0, "lanes cover a line");

    struct shared_stage {
        alignas(16) T b[block_lines][line_elems];
        alignas(16) T a[Rows][Depth];
    };

    struct sums {
        T value[sum_count];
    };

    static __device__ __forceinline__ void setup(const tgi_gemm_args &, shared_stage *)
    {
    }

    static __device__ __forceinline__ void wait(const tgi_gemm_args &, shared_stage &, uint32_t)
    {
    }

    /* Issues the copies of the stage at the cursor. */
    static __device__ __forceinline__ void load(const tgi_gemm_args &args, const cursor &at,
                                                shared_stage &stage)
    {
        const tgi_problem &p = args.problem;
        const int first_line = threadIdx.x / 32 * warp_lines;
        const int k_left = tgi_clamp_count(at.last - at.k, Depth);
        const int cols_left = tgi_clamp_count(p.n - at.tile.col, Cols);
        tgi_source<T> lines;
        lines.data = at.b;
        lines.line_stride = Along_k ? p.b.col : p.b.row;
        lines.elem_stride = Along_k ? p.b.row : p.b.col;
        lines.line_count = (Along_k ? cols_left : k_left) - first_line;
        lines.elem_count = Along_k ? k_left : cols_left;
        lines.vector_elems = args.b_along_k == Along_k ? args.b_vector_elems : 1;
        tgi_copy_tile<T, warp_lines, line_elems, line_elems, 0, 32, 1>(stage.b[first_line], lines,
                                                                       threadIdx.x % 32);
        const tgi_source<T> rows = {at.a,    p.a.row,
                                    p.a.col, static_cast<int>(p.m),
                                    k_left,  args.a_along_k ? args.a_vector_elems : 1};
        tgi_copy_tile<T, Rows, Depth, Depth, 0, Threads, 1>(stage.a[0], rows, threadIdx.x);
    }

    /* Adds a lane's share of the stage, 16 bytes of k at a time of each of its lines. */
    static __device__ __forceinline__ void add_dots(const shared_stage &stage, sums &total)
    {
        typedef tgi_vector<T> vector;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int first = warp * warp_lines + lane / line_lanes * Lane_cols;
#pragma unroll
        for (int k = 0; k < Depth; k += line_lanes * width) {
            const int elem = k + lane % line_lanes * width;
            vector b[Lane_cols];
#pragma unroll
            for (int i = 0; i < Lane_cols; i++)
                b[i] = *reinterpret_cast<const vector *>(&stage.b[first + i][elem]);
#pragma unroll
            for (int row = 0; row < Rows; row++) {
                const vector a = *reinterpret_cast<const vector *>(&stage.a[row][elem]);
#pragma unroll
                for (int j = 0; j < width; j++)
#pragma unroll
                    for (int i = 0; i < Lane_cols; i++)
                        total.value[row * Lane_cols + i] += a.element[j] * b[i].element[j];
            }
        }
    }

    /* Adds a warp's share of the stage. Its lines are rows of B, each added to every row of D. */
    static __device__ __forceinline__ void add_rows(const shared_stage &stage, sums &total)
    {
        typedef tgi_vector<T> vector;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int first = 0; first < warp_lines; first += width) {
            const int line = warp * warp_lines + first;
            vector b[width];
#pragma unroll
            for (int i = 0; i < width; i++)
                b[i] = *reinterpret_cast<const vector *>(&stage.b[line + i][lane * width]);
#pragma unroll
            for (int row = 0; row < Rows; row++) {
                const vector a = *reinterpret_cast<const vector *>(&stage.a[row][line]);
#pragma unroll
                for (int i = 0; i < width; i++)
#pragma unroll
                    for (int j = 0; j < width; j++)
                        total.value[row * width + j] += a.element[i] * b[i].element[j];
            }
        }
    }

    static __device__ __forceinline__ void multiply(const tgi_gemm_args &,
                                                    const shared_stage &stage, sums &total)
    {
        if (Along_k)
            add_dots(stage, total);
        else
            add_rows(stage, total);
    }

    /* Adds the sums of lanes that share out k, and writes them to shared memory: a tile for each
     * warp of rank, one tile for all warps of dot. */
    static __device__ __forceinline__ void finish(const tgi_gemm_args &, const cursor &,
                                                  sums &total, T *tile)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (Along_k) {
            const int each = sum_count < line_lanes ? 1 : sum_count / line_lanes;
            const int lanes_per_sum = sum_count < line_lanes ? line_lanes / sum_count : 1;
            const int place = lane % line_lanes / lanes_per_sum * each;
            const int col = warp * warp_lines + lane / line_lanes * Lane_cols;
            tgi_add_lanes<T, sum_count, line_lanes / 2, 1>(total.value);
            if (lane % lanes_per_sum == 0)
#pragma unroll
                for (int i = 0; i < each; i++)
                    tile[(place + i) / Lane_cols * Cols + col + (place + i) % Lane_cols] =
                        total.value[i];
        } else {
#pragma unroll
            for (int row = 0; row < Rows; row++)
#pragma unroll
                for (int j = 0; j < width; j++)
                    tile[(warp * Rows + row) * Cols + lane * width + j] =
                        total.value[row * width + j];
        }
    }
};

#endif
