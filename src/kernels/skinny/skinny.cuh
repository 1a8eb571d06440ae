/*
 * Families `dot` and `rank`: D has at most 16 rows, so that time is that of reading B once. A block
 * streams B through shared memory in stages of lines of 256 bytes or more, so many that the memory
 * system is never idle; A's slice of each stage comes along and is shared by the block's warps.
 *
 * dot:  a line runs along k. Each warp owns a part of the tile's columns. Its lanes form a grid of
 *       columns by k, and the sums of those that share out k are added by shuffles at the end.
 *       Where D has 16 rows A's slices weigh: many columns for each.
 * rank: a line runs along n. Each warp owns a part of the stage's k, a lane 16 bytes of columns,
 *       and the warps' sums are added in shared memory at the end.
 */
#ifndef TGI_SKINNY_CUH
#define TGI_SKINNY_CUH

#include "kernels/tile_io.cuh"

/* Tile Rows x Cols of a block, all rows x Lane_cols of a lane. */
template <typename T, int Along_k, int Rows, int Cols, int Depth, int Lane_cols, int Stages,
          int Threads>
struct tgi_skinny {
    static constexpr int width = tgi_vector<T>::count, warps = Threads / 32;
    static constexpr int block_lines = Along_k ? Cols : Depth;
    static constexpr int line_elems = Along_k ? Depth : Cols;
    static constexpr int warp_lines = block_lines / warps;
    /* Lanes that share out a line. */
    static constexpr int line_lanes = Along_k ? 32 * Lane_cols / warp_lines : 32;
    static constexpr int sum_count = Rows * Lane_cols;

    struct shared_stage {
        alignas(16) T b[block_lines][line_elems];
        alignas(16) T a[Rows][Depth];
    };

    /* How the grid shares out the work. A tile of D takes unit_count units of k_part_elems of k,
     * and each block a range of consecutive units, of one tile after another. A tile that
     * several blocks share has a part of k from each. */
    struct schedule {
        int64_t col_blocks, tile_units, unit_count;

        __device__ __forceinline__ schedule(const tgi_gemm_args &args)
        {
            col_blocks = (args.problem.n + Cols - 1) / Cols;
            tile_units = (args.problem.k + args.k_part_elems - 1) / args.k_part_elems;
            unit_count = col_blocks * args.problem.batch_count * tile_units;
        }

        __device__ __forceinline__ int64_t first_unit(int64_t block) const
        {
            return block * unit_count / gridDim.x;
        }

        /* The block that has the unit. */
        __device__ __forceinline__ int64_t owner(int64_t unit) const
        {
            return ((unit + 1) * gridDim.x - 1) / unit_count;
        }
    };

    /* Where a block is in its work: a tile, and steps of `depth` along k within it. */
    struct cursor {
        int64_t unit, end; /* the tile's first unit that is this block's; the block's end */
        tgi_tile_place place;
        int64_t k, last; /* next step's first k, and the end of this block's in the tile */
        const T *a, *b;  /* at k: of row 0, and of the warp's first line */

        __device__ __forceinline__ void enter(const tgi_gemm_args &args, const schedule &work)
        {
            if (unit >= end)
                return;
            const tgi_problem &p = args.problem;
            const int64_t tile = unit / work.tile_units, tile_unit = tile * work.tile_units;
            place.row = 0;
            place.col = tile % work.col_blocks * Cols;
            place.batch = tile / work.col_blocks;
            place.k_part = args.k_part_count == 1 ? 0 : blockIdx.x - work.owner(tile_unit);
            k = (unit - tile_unit) * args.k_part_elems;
            unit = min(end, tile_unit + work.tile_units);
            last = min(p.k, (unit - tile_unit) * args.k_part_elems);
            const int first_line = threadIdx.x / 32 * warp_lines;
            a = static_cast<const T *>(args.a) + place.batch * p.a.batch + k * p.a.col;
            b = static_cast<const T *>(args.b) + place.batch * p.b.batch + k * p.b.row +
                place.col * p.b.col + first_line * (Along_k ? p.b.col : p.b.row);
        }

        /* Goes on by a step; 1 where that was the last in the tile. */
        __device__ __forceinline__ int advance(const tgi_gemm_args &args)
        {
            k += Depth;
            a += Depth * args.problem.a.col;
            b += Depth * args.problem.b.row;
            return k >= last;
        }
    };

    /* Starts the copies of the stage at the cursor. */
    static __device__ __forceinline__ void load(const tgi_gemm_args &args, const cursor &at,
                                                shared_stage &stage)
    {
        const tgi_problem &p = args.problem;
        const int first_line = threadIdx.x / 32 * warp_lines;
        const int k_left = tgi_clamp_count(at.last - at.k, Depth);
        const int cols_left = tgi_clamp_count(p.n - at.place.col, Cols);
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

    /* A lane's share of the stage: of each of its lines, 16 bytes of k at a time. */
    static __device__ __forceinline__ void add_dots(const shared_stage &stage, T (&sums)[sum_count])
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
                        sums[row * Lane_cols + i] += a.element[j] * b[i].element[j];
            }
        }
    }

    /* A warp's share of the stage: its lines are rows of B, each added to every row of D. */
    static __device__ __forceinline__ void add_rows(const shared_stage &stage, T (&sums)[sum_count])
    {
        typedef tgi_vector<T> vector;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int step = 0; step < warp_lines; step += width) {
            const int line = warp * warp_lines + step;
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
                        sums[row * width + j] += a.element[i] * b[i].element[j];
            }
        }
    }

    /* The lanes' sums, added where lanes share out k, to shared memory: a tile for each warp of
     * rank, one for all of dot. */
    static __device__ __forceinline__ void gather(T (&sums)[sum_count], T *tile)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (Along_k) {
            const int each = sum_count < line_lanes ? 1 : sum_count / line_lanes;
            const int lanes_per_sum = sum_count < line_lanes ? line_lanes / sum_count : 1;
            const int place = lane % line_lanes / lanes_per_sum * each;
            const int col = warp * warp_lines + lane / line_lanes * Lane_cols;
            tgi_add_lanes<T, sum_count, line_lanes / 2, 1>(sums);
            if (lane % lanes_per_sum == 0)
#pragma unroll
                for (int i = 0; i < each; i++)
                    tile[(place + i) / Lane_cols * Cols + col + (place + i) % Lane_cols] = sums[i];
        } else {
#pragma unroll
            for (int row = 0; row < Rows; row++)
#pragma unroll
                for (int j = 0; j < width; j++)
                    tile[(warp * Rows + row) * Cols + lane * width + j] = sums[row * width + j];
        }
    }

    struct shared_all {
        shared_stage stages[Stages];
        T sums[(Along_k ? 1 : warps) * Rows * Cols];
    };

    /* Stores the sums of a tile. Parts of k that the tile does not have are zero, so that all tiles
     * have k_part_count of them. */
    static __device__ __forceinline__ void store(const tgi_gemm_args &args, const schedule &work,
                                                 const cursor &at, const T *sums)
    {
        tgi_tile_place place = at.place;
        tgi_store_tile<T, Rows, Cols, Cols, Along_k ? 1 : warps, Threads>(args, place, sums);
        if (args.k_part_count == 1 || at.last < args.problem.k)
            return;
        while (++place.k_part < args.k_part_count) {
            T *target =
                static_cast<T *>(args.workspace) +
                (place.batch * args.k_part_count + place.k_part) * args.problem.m * args.problem.n;
            for (int i = threadIdx.x; i < Rows * Cols; i += Threads)
                if (i / Cols < args.problem.m && place.col + i % Cols < args.problem.n)
                    target[i / Cols * args.problem.n + place.col + i % Cols] = T(0);
        }
    }

    /* B is read without a pause, also while the sums of a tile are stored. */
    static __device__ __forceinline__ void multiply(const tgi_gemm_args &args, void *shared)
    {
        static_assert(Stages >= 2, "a stage is read while others are filled");
        static_assert(Along_k || (warp_lines % width == 0 && line_elems == 32 * width),
                      "A is read by vectors along k, B by a vector a lane");
        static_assert(Depth % (Along_k ? line_lanes * width : 1) == 0, "lanes cover a line");
        shared_all &all = *static_cast<shared_all *>(shared);
        const schedule work(args);
        cursor filling, adding;
        filling.unit = work.first_unit(blockIdx.x);
        filling.end = work.first_unit(blockIdx.x + 1);
        filling.k = filling.last = 0;
        filling.enter(args, work);
        adding = filling;
        T sums[sum_count] = {};
        int read = 0, write = 0;
#pragma unroll 1
        for (int step = 1 - Stages; adding.k < adding.last; step++) {
            if (step >= 0) {
                tgi_copy_async_wait<Stages - 2>();
                /* Without it a warp would read A, or lines of its own that other lanes copied,
                 * before they are there, refill the stage that others still read, and put sums
                 * where those of the tile before have not been stored. */
                __syncthreads();
            }
            if (filling.k < filling.last) {
                load(args, filling, all.stages[write]);
                if (filling.advance(args))
                    filling.enter(args, work);
            }
            tgi_copy_async_commit();
            write = write + 1 == Stages ? 0 : write + 1;
            if (step < 0)
                continue;
            if (Along_k)
                add_dots(all.stages[read], sums);
            else
                add_rows(all.stages[read], sums);
            read = read + 1 == Stages ? 0 : read + 1;
            if (adding.advance(args)) {
                gather(sums, all.sums);
                /* Without it elements would be stored before the other warps have put theirs. */
                __syncthreads();
                store(args, work, adding, all.sums);
#pragma unroll
                for (int i = 0; i < sum_count; i++)
                    sums[i] = T(0);
                adding.enter(args, work);
            }
        }
    }
};

#endif
