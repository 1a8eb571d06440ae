/*
 * This body of families dot and rank multiplies FP32 and FP64 by multiply-adds.
 *
 * dot:  each warp owns a part of the tile. Its lanes form a grid of columns by k, and the sums of
 *       lanes that share out k are added by shuffles at the end. If D has 16 rows, most of the
 *       traffic is A, so each element that is read serves many columns.
 * rank: each warp owns a part of the stage's k, and each lane 16 bytes of columns. The warps' sums
 *       are added in shared memory at the end.
 *
 * Four lanes of dot that share out k, and the four warps of rank, are teams: as in family simt,
 * each has 8 of every 32 elements of k, one after another, and their sums are added in order.
 */
#ifndef TGI_SKINNY_FMA_CUH
#define TGI_SKINNY_FMA_CUH

#include "kernels/skinny/skinny.cuh"

/* Rows x Cols is the block's tile, Lane_rows x Lane_cols a lane's sums; in rank a lane has all
 * rows. */
template <typename T, int Along_k, int Rows, int Cols, int Depth, int Lane_rows, int Lane_cols,
          int Stages, int Threads>
struct tgi_skinny_fma {
    typedef T elem;
    typedef T sum;
    typedef tgi_gemm_args arguments;
    typedef tgi_skinny_cursor<tgi_skinny_fma> cursor;
    static constexpr int along_k = Along_k, rows = Rows, cols = Cols, depth = Depth,
                         stages = Stages, threads = Threads;
    static constexpr int width = tgi_vector<T>::count, warps = Threads / 32;
    static constexpr int block_lines = Along_k ? Cols : Depth;
    static constexpr int line_elems = Along_k ? Depth : Cols;
    static constexpr int warp_lines = block_lines / warps, warp_line_stride = warp_lines,
                         has_fewer_cols = 0, sum_first = 0, sum_pitch = Cols;
    /* Warps of dot that have the same columns, and the columns of a warp. */
    static constexpr int warps_down = Rows / Lane_rows, warp_cols = Cols / (warps / warps_down);
    /* Lanes that share out a line, and those beside them. */
    static constexpr int line_lanes = Along_k ? 32 * Lane_cols / warp_cols : 32,
                         groups = 32 / line_lanes;
    static constexpr int is_team = Along_k && line_lanes == TGI_SKINNY_TEAMS;
    static constexpr int sum_tiles = is_team ? TGI_SKINNY_TEAMS : Along_k ? 1 : warps;
    /* Elements of k that a lane of dot, or a warp of rank, has one after another. */
    static constexpr int run = is_team || (!Along_k && warp_lines >= 8) ? 8 : width;
    static constexpr int sum_count = Lane_rows * Lane_cols, cols_apart = is_team ? groups : 1;
    /* Lines of teams are padded, so that eight that are read at once lie in different banks. */
    static constexpr int pitch = line_elems + (is_team ? width : 0);
    static_assert(Along_k || (warp_lines % width == 0 && line_elems == 32 * width),
                  "A is read by vectors along k, B by a vector a lane");
    static_assert(Depth % (Along_k ? line_lanes * run : 1) == 0, "lanes cover a line");

    struct shared_stage {
        alignas(16) T b[block_lines][pitch];
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
        tgi_copy_tile<T, warp_lines, line_elems, pitch, 0, 32, 1>(stage.b[first_line], lines,
                                                                  threadIdx.x % 32);
        const tgi_source<T> rows = {at.a,    p.a.row,
                                    p.a.col, static_cast<int>(p.m),
                                    k_left,  args.a_along_k ? args.a_vector_elems : 1};
        tgi_copy_tile<T, Rows, Depth, Depth, 0, Threads, 1>(stage.a[0], rows, threadIdx.x);
    }

    /* Return the first row and column of a lane, and its number among those that share out k.
     * These are neighbours, but those of teams are `groups` apart, as the lane's columns are. */
    static __device__ __forceinline__ int find_row()
    {
        return threadIdx.x / 32 % warps_down * Lane_rows;
    }

    static __device__ __forceinline__ int find_col()
    {
        const int group =
            is_team ? threadIdx.x % groups : threadIdx.x % 32 / line_lanes * Lane_cols;
        return threadIdx.x / 32 / warps_down * warp_cols + group;
    }

    static __device__ __forceinline__ int find_share()
    {
        return is_team ? threadIdx.x % 32 / groups : threadIdx.x % line_lanes;
    }

    /* Adds a run of a lane's share of the stage, the run that begins at `elem` of its lines, 16
     * bytes at a time. */
    static __device__ __forceinline__ void add_run(const shared_stage &stage, int elem, sums &total)
    {
        typedef tgi_vector<T> vector;
        const int first_row = find_row(), first = find_col();
#pragma unroll
        for (int step = 0; step < run; step += width, elem += width) {
            vector b[Lane_cols];
#pragma unroll
            for (int i = 0; i < Lane_cols; i++)
                b[i] = *reinterpret_cast<const vector *>(&stage.b[first + i * cols_apart][elem]);
#pragma unroll
            for (int row = 0; row < Lane_rows; row++) {
                const vector a = *reinterpret_cast<const vector *>(&stage.a[first_row + row][elem]);
#pragma unroll
                for (int j = 0; j < width; j++)
#pragma unroll
                    for (int i = 0; i < Lane_cols; i++)
                        total.value[row * Lane_cols + i] += a.element[j] * b[i].element[j];
            }
        }
    }

    /* Adds a lane's share of the stage. Teams leave out runs without any of the `left` values of k,
     * whose zeros could change the sign of a sum that is zero. */
    static __device__ __forceinline__ void add_dots(const shared_stage &stage, int left,
                                                    sums &total)
    {
        const int share = find_share() * run;
        if (is_team && left < Depth) {
#pragma unroll 1
            for (int k = 0; k < left; k += run * line_lanes)
                add_run(stage, k + share, total);
            return;
        }
#pragma unroll
        for (int k = 0; k < Depth; k += run * line_lanes)
            add_run(stage, k + share, total);
    }

    /* Adds a warp's share of the stage. Its lines are rows of B, each added to every row of D. Runs
     * are left out as above. */
    static __device__ __forceinline__ void add_rows(const shared_stage &stage, int left,
                                                    sums &total)
    {
        typedef tgi_vector<T> vector;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int first = 0; first < warp_lines; first += width) {
            const int line = first / run * run * warps + warp * run + first % run;
            if (first / run > 0 && first / run * run * warps >= left)
                break;
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

    static __device__ __forceinline__ void multiply(const tgi_gemm_args &args, const cursor &at,
                                                    const shared_stage &stage, sums &total)
    {
        const int left = tgi_clamp_count(at.last - at.k, Depth);
        if (!Along_k)
            add_rows(stage, left, total);
        else if (warps_down == 1 || find_row() < args.problem.m)
            add_dots(stage, left, total);
    }

    /* Writes the sums to shared memory: a tile for each team, or one tile for all warps of dot,
     * whose lanes' sums are added first. */
    static __device__ __forceinline__ void finish(const tgi_gemm_args &, const cursor &,
                                                  sums &total, T *tile)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (is_team) {
            tile += (find_share() * Rows + find_row()) * Cols + find_col();
#pragma unroll
            for (int i = 0; i < sum_count; i++)
                tile[i / Lane_cols * Cols + i % Lane_cols * cols_apart] = total.value[i];
        } else if (Along_k) {
            const int each = sum_count < line_lanes ? 1 : sum_count / line_lanes;
            const int lanes_per_sum = sum_count < line_lanes ? line_lanes / sum_count : 1;
            const int place = find_share() / lanes_per_sum * each, col = find_col();
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
