/*
 * This body of family dot multiplies BF16, FP16 and FP8 by matrix instructions 16 x 8 x 16: 16
 * columns of D times 8 of its rows. The products cost next to nothing that way, even where D has
 * fewer rows: the missing rows are copies of the last.
 *
 * B goes from memory straight into the registers that the instructions take. A lane reads 16 bytes
 * of a line. It multiplies what it reads, because the order in which k is summed is free. Only the
 * end of a tile needs a barrier, and two stages are loaded ahead in each warp's registers. The
 * warps of a block share out k, and their sums are added in shared memory.
 */
#ifndef TGI_DOT_MMA_CUH
#define TGI_DOT_MMA_CUH

#include "kernels/copy/narrow_words.cuh"
#include "kernels/copy/shifted_unit.cuh"
#include "kernels/ptx/global_memory.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/skinny/skinny.cuh"

template <tg_type Type, int Rows, int Cols, int Depth, int Threads> struct tgi_dot_mma {
    static constexpr int is_fp8 = tgi_narrow_is_fp8(Type);
    typedef typename tgi_narrow<is_fp8>::elem elem;
    typedef float sum;
    typedef tgi_gemm_args arguments;
    typedef tgi_skinny_cursor<tgi_dot_mma> cursor;
    static constexpr int along_k = 1, rows = Rows, cols = Cols, depth = Depth, threads = Threads;
    static constexpr int warps = Threads / 32, sum_tiles = warps, warp_line_stride = 0,
                         has_fewer_cols = 0, sum_first = 0, sum_pitch = Cols;
    /* `width` is the elements of 16 bytes, `share` the elements of a line of a stage that a warp
     * has, and `reads` the reads of a lane along them. */
    static constexpr int width = 16 / sizeof(elem), share = Depth / warps,
                         reads = share / (4 * width);
    static_assert(reads * 4 * width * warps == Depth && Cols % 16 == 0 && Rows % 8 == 0,
                  "whole reads, whole instructions");

    /* A lane's 16 bytes of lines lane / 4, lane / 4 + 8, ... */
    struct stage {
        uint32_t b[reads][Cols / 8][4], a[reads][Rows / 8][4];
    };

    /* Sums [i][j] are of columns from 16 i on of the tile and rows from 8 j on. */
    struct sums {
        float value[Cols / 16][Rows / 8][4];
    };

    /* The shared memory of read_edges, for B or, if it needs more, for A. */
    struct edge_reads {
        alignas(16) elem room[warps][reads * (Cols > Rows ? Cols : Rows) / 8][32][2 * width];
    };

    struct shared_all {
        edge_reads edges;
        float sums[warps * Rows * Cols];
    };

    static constexpr int shared_bytes = sizeof(shared_all);

    /* A source describes lines of an operand: element (line, k) lies at data + line * line_stride +
     * k * elem_stride. last_line is the last line, and k_left the number of elements along k. */
    struct source {
        const elem *data;
        int64_t line_stride, elem_stride;
        int last_line, k_left;
        int is_aligned; /* 1: each line begins at a multiple of 16 bytes, and elem_stride is 1 */
    };

    /* Returns the address of this lane's line i. */
    static __device__ __forceinline__ const elem *find_line(const source &from, int i)
    {
        const int line = min(i * 8 + static_cast<int>(threadIdx.x) % 32 / 4, from.last_line);
        return from.data + line * from.line_stride;
    }

    static __device__ __forceinline__ int find_k(int s)
    {
        const int thread = threadIdx.x;
        return thread / 32 * share + thread % 4 * width + s * 4 * width;
    }

    static __device__ __forceinline__ int find_shift(const elem *data)
    {
        return static_cast<int>(reinterpret_cast<uintptr_t>(data) % 16);
    }

    static __device__ __forceinline__ void put(uint32_t (&value)[4], const uint4 &words)
    {
        value[0] = words.x;
        value[1] = words.y;
        value[2] = words.z;
        value[3] = words.w;
    }

    /* Reads a whole stage of contiguous lines, by aligned 16 bytes or by the two units that hold
     * the wanted bytes. The second unit belongs to the line too. */
    template <int IsAligned, int IsKept, int Lines>
    static __device__ __forceinline__ void read(uint32_t (&value)[reads][Lines][4],
                                                const source &from)
    {
#pragma unroll
        for (int i = 0; i < Lines; i++) {
            const elem *line = find_line(from, i);
#pragma unroll
            for (int s = 0; s < reads; s++) {
                const elem *data = line + find_k(s);
                if (IsAligned) {
                    put(value[s][i], IsKept ? tgi_read_cached_16(data) : tgi_read_once_16(data));
                } else {
                    const int shift = find_shift(data);
                    const char *start = reinterpret_cast<const char *>(data) - shift;
                    put(value[s][i], tgi_cut_unit(tgi_read_cached_16(start),
                                                  tgi_read_cached_16(start + 16), shift));
                }
            }
        }
    }

    /* Reads any stage through 32 bytes of shared memory for each read of a lane. A loop can run
     * over these, but not over registers. Nothing past the end of k is read; zeros stand there. */
    template <int Lines>
    static __device__ __forceinline__ void read_edges(uint32_t (&value)[reads][Lines][4],
                                                      const source &from, edge_reads &edges)
    {
        const bool is_line = from.elem_stride == 1;
#pragma unroll 1
        for (int n = 0; n < Lines * reads; n++) {
            const int at = find_k(n % reads), left = max(0, min(width, from.k_left - at));
            const elem *data = find_line(from, n / reads) + at * from.elem_stride;
            elem *target = edges.room[threadIdx.x / 32][n][threadIdx.x % 32];
            if (is_line) {
                const int shift = find_shift(data);
                const int bytes = left > 0 ? shift + left * static_cast<int>(sizeof(elem)) : 0;
                const char *start = reinterpret_cast<const char *>(data) - shift;
                tgi_copy_async<16>(tgi_shared_address(target), start, min(16, bytes));
                tgi_copy_async<16>(tgi_shared_address(target + width), start + 16,
                                   max(0, bytes - 16));
            } else {
#pragma unroll
                for (int i = 0; i < width; i++)
                    target[i] = i < left ? data[i * from.elem_stride] : elem(0);
            }
        }
        tgi_copy_async_commit();
        tgi_copy_async_wait<0>();
#pragma unroll
        for (int n = 0; n < Lines * reads; n++) {
            const elem *data = find_line(from, n / reads) + find_k(n % reads);
            const uint4 *words =
                reinterpret_cast<const uint4 *>(edges.room[threadIdx.x / 32][n][threadIdx.x % 32]);
            put(value[n % reads][n / reads],
                tgi_cut_unit(words[0], words[1], is_line ? find_shift(data) : 0));
        }
    }

    template <int IsKept, int Lines>
    static __device__ __forceinline__ void read_any(uint32_t (&value)[reads][Lines][4],
                                                    const source &from, edge_reads &edges)
    {
        if (from.is_aligned && from.k_left >= Depth)
            read<1, IsKept>(value, from);
        else if (from.elem_stride == 1 && from.k_left >= Depth + width)
            read<0, IsKept>(value, from);
        else
            read_edges(value, from, edges);
    }

    /* The position in the work, as far as registers have room for it: the address of the next
     * stage, and the number of stages to the end of this block's split of the tile. The rest is
     * found again at each tile. */
    struct position {
        int64_t unit; /* the first unit of this block's next tile */
        const elem *a, *b;
        int64_t k_left; /* k to the end of the problem's k */
        int last_col, stages_left;

        __device__ __forceinline__ void enter(const tgi_gemm_args &given)
        {
            cursor at = find_cursor(given, unit);
            stages_left = 0;
            if (at.k >= at.last)
                return;
            const tgi_gemm_args &args = at.find_problem(given);
            unit = at.unit;
            a = at.a;
            b = at.b;
            k_left = args.problem.k - at.k;
            last_col = tgi_clamp_count(args.problem.n - at.tile.col, Cols) - 1;
            stages_left = static_cast<int>((at.last - at.k + Depth - 1) / Depth);
        }

        __device__ __forceinline__ void advance(const tgi_gemm_args &given)
        {
            const tgi_gemm_args &args = find_problem(given);
            a += Depth * args.problem.a.col;
            b += Depth * args.problem.b.row;
            k_left -= Depth;
            if (--stages_left == 0)
                enter(given);
        }

        __device__ __forceinline__ const tgi_gemm_args &
        find_problem(const tgi_gemm_args &given) const
        {
            return cursor::schedule::problem_before(given, unit);
        }
    };

    /* Returns the tile of a unit; its k >= last if the block has no such unit. */
    static __device__ __forceinline__ cursor find_cursor(const tgi_gemm_args &given, int64_t unit)
    {
        /* Cols is opaque, because the compiler would otherwise keep values from tile to tile that
         * can be found again. */
        const typename cursor::schedule work(given, tgi_make_opaque(Cols));
        cursor at;
        at.unit = unit;
        at.end = work.end();
        at.k = at.last = 0;
        at.enter(given, work);
        return at;
    }

    static __device__ __forceinline__ void load(const tgi_gemm_args &args, const position &at,
                                                stage &next, edge_reads &edges)
    {
        const tgi_problem &p = args.problem;
        const int k_left = tgi_clamp_count(at.k_left, Depth + width);
        const source b = {at.b,        p.b.col, p.b.row,
                          at.last_col, k_left,  args.b_along_k && args.b_vector_elems > 1};
        const source a = {at.a,    p.a.row,
                          p.a.col, static_cast<int>(p.m) - 1,
                          k_left,  args.a_along_k && args.a_vector_elems > 1};
        read_any<0>(next.b, b, edges);
        read_any<1>(next.a, a, edges);
    }

    template <int IsE5m2>
    static __device__ __forceinline__ void
    add_widened(const uint32_t (&b)[Cols / 8][4], const uint32_t (&a)[Rows / 8][4 + 4 * is_fp8],
                sums &total)
    {
        const int words = 4 + 4 * is_fp8;
#pragma unroll
        for (int i = 0; i < Cols / 16; i++) {
            uint32_t low[words], high[words]; /* columns 0 to 7 of 16, and 8 to 15 */
            tgi_widen<is_fp8, IsE5m2>(low, b[2 * i]);
            tgi_widen<is_fp8, IsE5m2>(high, b[2 * i + 1]);
#pragma unroll
            for (int w = 0; w < words; w += 2) {
                const uint32_t wide[4] = {low[w], high[w], low[w + 1], high[w + 1]};
#pragma unroll
                for (int j = 0; j < Rows / 8; j++)
                    tgi_multiply_16x8x16<Type>(total.value[i][j], wide, a[j][w], a[j][w + 1]);
            }
        }
    }

    static __device__ __forceinline__ void multiply(const tgi_gemm_args &args, const stage &now,
                                                    sums &total)
    {
#pragma unroll
        for (int s = 0; s < reads; s++) {
            uint32_t a[Rows / 8][4 + 4 * is_fp8];
#pragma unroll
            for (int j = 0; j < Rows / 8; j++)
                if (args.problem.type == TG_TYPE_FP8_E5M2)
                    tgi_widen<is_fp8, 1>(a[j], now.a[s][j]);
                else
                    tgi_widen<is_fp8, 0>(a[j], now.a[s][j]);
            if (is_fp8 && args.problem.b_type == TG_TYPE_FP8_E5M2)
                add_widened<1>(now.b[s], a, total);
            else
                add_widened<0>(now.b[s], a, total);
        }
    }

    static __device__ __forceinline__ void gather(const sums &total, float *tile)
    {
        const int lane = threadIdx.x % 32;
        tile += threadIdx.x / 32 * Rows * Cols;
#pragma unroll
        for (int i = 0; i < Cols / 16; i++)
#pragma unroll
            for (int j = 0; j < Rows / 8; j++)
#pragma unroll
                for (int s = 0; s < 4; s++)
                    tile[(j * 8 + lane % 4 * 2 + s % 2) * Cols + i * 16 + lane / 4 + s / 2 * 8] =
                        total.value[i][j][s];
    }

    /* Stores the tile of the unit, and returns the unit of the next tile. */
    static __device__ __forceinline__ int64_t finish(const tgi_gemm_args &given, int64_t unit,
                                                     const sums &total, float *tiles)
    {
        const cursor at = find_cursor(given, unit);
        /* Without this barrier sums of the tile before would be overwritten before they are
         * stored. */
        __syncthreads();
        gather(total, tiles);
        /* Without this barrier elements would be stored before the other warps have put theirs. */
        __syncthreads();
        tgi_skinny_store<tgi_dot_mma>(given, at, tiles);
        return at.unit;
    }

    /* Loads the stage after `now`, if there is one, and adds the products of `now`. */
    static __device__ __forceinline__ void step(const tgi_gemm_args &given, position &filling,
                                                const stage &now, stage &next, sums &total,
                                                edge_reads &edges)
    {
        if (filling.stages_left > 0) {
            load(filling.find_problem(given), filling, next, edges);
            filling.advance(given);
        }
        multiply(given, now, total);
    }

    static __device__ __forceinline__ void form(const tgi_gemm_args &given, char *shared)
    {
        shared_all &all = *reinterpret_cast<shared_all *>(shared);
        stage even, odd;
        sums total = {};
        position filling;
        int64_t unit = typename cursor::schedule(given, Cols).begin();
        filling.unit = unit;
        filling.enter(given);
        int left = filling.stages_left; /* stages of the tile whose products are added */
        if (left == 0)
            return;
        load(filling.find_problem(given), filling, even, all.edges);
        filling.advance(given);
#pragma unroll 1
        for (int is_odd = 0; left > 0; is_odd ^= 1) {
            if (is_odd)
                step(given, filling, odd, even, total, all.edges);
            else
                step(given, filling, even, odd, total, all.edges);
            if (--left > 0)
                continue;
            unit = finish(given, unit, total, all.sums);
            total = sums();
            left = count_stages(given, unit);
        }
    }

    /* Returns the number of stages of the tile of the unit. */
    static __device__ __forceinline__ int count_stages(const tgi_gemm_args &given, int64_t unit)
    {
        const cursor at = find_cursor(given, unit);
        return static_cast<int>((at.last - at.k + Depth - 1) / Depth);
    }
};

#endif
