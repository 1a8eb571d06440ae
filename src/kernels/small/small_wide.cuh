/*
 * Family small in tiles that are large beside k: by matrix instructions of 16-bit types, or by
 * multiply-adds of FP32. The threads of a block copy lines of A and B to shared memory element by
 * element, in runs along k or across it, as the lines lie, so that no operand needs to be aligned
 * or repacked. D goes through shared memory, so that a warp stores neighbouring columns. Blocks
 * that share a multiprocessor hide each other's waits.
 */
#ifndef TGI_SMALL_WIDE_CUH
#define TGI_SMALL_WIDE_CUH

#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/row_epilogue.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/grid_tiles.cuh"
#include "kernels/small/small_shape.h"

/* Lines of A or B in global memory, of which the first line_count exist. */
template <typename T> struct tgi_small_lines {
    const T *data;
    int64_t line_stride, k_stride;
    int line_count, along_k;
};

/* Side: rows and columns of the block's tile. Depth: k of a stage. */
template <tg_type Type, int Side, int Depth, int Threads> struct tgi_small_wide {
    typedef typename tgi_element_of<Type>::type elem;
    /* A line is padded by 16 bytes, so that neighbouring lines lie in other banks. */
    static constexpr int pitch = Depth + 16 / static_cast<int>(sizeof(elem));
    static constexpr int sum_pitch = Side + 8;
    static constexpr int warp_cols = Side / 32;
    static_assert(Threads / 32 == Side / 16 * warp_cols, "a warp forms 16 x 32, a thread 16 sums");

    /* A thread's elements of a stage of A or B: every `step`-th line of one k, or k of one line, of
     * which those before `end` exist. The others are zeros. */
    struct share {
        const elem *from;
        elem *to;
        int64_t move;
        int shared_move, place, step, end;

        /* The stage has k_count of k, and zeros up to 1 << k_bits. */
        __device__ __forceinline__ share(elem *shared, const tgi_small_lines<elem> &lines,
                                         int k_count, int k_bits)
        {
            const int thread = tgi_thread(), is_along = lines.along_k;
            const int k = is_along ? thread & ((1 << k_bits) - 1) : thread / Side;
            const int line = is_along ? thread >> k_bits : thread % Side;
            const int is_inside = is_along ? k < k_count : line < lines.line_count;
            step = is_along ? Threads >> k_bits : Threads / Side;
            end = is_inside ? is_along ? lines.line_count : k_count : 0;
            place = is_along ? line : k;
            move = step * (is_along ? lines.line_stride : lines.k_stride);
            shared_move = is_along ? step * pitch : step;
            from = lines.data + line * lines.line_stride + k * lines.k_stride;
            to = shared + line * pitch + k;
        }

        template <int Count> __device__ __forceinline__ void load(elem (&element)[Count])
        {
#pragma unroll
            for (int i = 0; i < Count; i++) {
                element[i] = place < end ? *from : elem(0);
                place += step;
                from += move;
            }
        }

        template <int Count> __device__ __forceinline__ void keep(const elem (&element)[Count])
        {
#pragma unroll
            for (int i = 0; i < Count; i++) {
                *to = element[i];
                to += shared_move;
            }
        }
    };

    /* Copies Count elements of each thread, all of which are under way at once. */
    template <int Count> static __device__ __forceinline__ void copy(share &a, share &b)
    {
        elem a_element[Count], b_element[Count];
        a.load(a_element);
        b.load(b_element);
        a.keep(a_element);
        b.keep(b_element);
    }

    /* Adds the products of `count` of k, and of zeros up to a multiple of 16, to the warp's
     * sums. */
    static __device__ __forceinline__ void multiply_warp(const elem *a, const elem *b, int count,
                                                         float (&sums)[4][4])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        const int row = warp / warp_cols * 16 + lane % 16;
        const int col = warp % warp_cols * 32 + lane % 8 + lane / 16 * 8;
        uint32_t a_place = tgi_shared_address(a + row * pitch + lane / 16 * 8);
        uint32_t b_place = tgi_shared_address(b + col * pitch + lane / 8 % 2 * 8);
#pragma unroll 1
        for (int k = 0; k < count; k += 16) {
            uint32_t part[4], low[4], high[4];
            tgi_read_matrices(part, a_place);
            tgi_read_matrices(low, b_place);
            tgi_read_matrices(high, b_place + 16 * pitch * 2);
            tgi_multiply_16x8x16<Type>(sums[0], part, low[0], low[1]);
            tgi_multiply_16x8x16<Type>(sums[1], part, low[2], low[3]);
            tgi_multiply_16x8x16<Type>(sums[2], part, high[0], high[1]);
            tgi_multiply_16x8x16<Type>(sums[3], part, high[2], high[3]);
            a_place += 32;
            b_place += 32;
        }
    }

    /* Adds the same products by multiply-adds: a thread has every 16th row and column. */
    static __device__ __forceinline__ void multiply_thread(const elem *a, const elem *b, int count,
                                                           float (&sums)[4][4])
    {
        a += tgi_thread() / 16 * pitch;
        b += tgi_thread() % 16 * pitch;
#pragma unroll 1
        for (int k = 0; k < count; k += 4) {
            float4 rows[4], cols[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                rows[i] = *reinterpret_cast<const float4 *>(a + 16 * i * pitch + k);
                cols[i] = *reinterpret_cast<const float4 *>(b + 16 * i * pitch + k);
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    sums[i][j] = fmaf(rows[i].x, cols[j].x, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].y, cols[j].y, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].z, cols[j].z, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].w, cols[j].w, sums[i][j]);
                }
        }
    }

    /* Puts the thread's sums where store() finds them. */
    static __device__ __forceinline__ void keep_sums(float *shared, const float (&sums)[4][4])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        float *own = shared + (warp / warp_cols * 16 + lane / 4) * sum_pitch +
                     warp % warp_cols * 32 + lane % 4 * 2;
        if constexpr (Type == TG_TYPE_FP32)
            own = shared + tgi_thread() / 16 * sum_pitch + tgi_thread() % 16;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                if constexpr (Type == TG_TYPE_FP32)
                    own[16 * i * sum_pitch + 16 * j] = sums[i][j];
                else
                    own[j / 2 * 8 * sum_pitch + 8 * i + j % 2] = sums[i][j];
    }

    /* Adds the tile's part of k to the warp's sums. */
    static __device__ __forceinline__ void add_stages(const tgi_gemm_args &args,
                                                      const tgi_block_tile &tile, elem *shared,
                                                      float (&sums)[4][4])
    {
        const tgi_problem &p = args.problem;
        const int64_t first = tgi_find_first_k(args, tile.k_part);
        tgi_small_lines<elem> a = {tgi_find_a<elem>(args, tile, first), p.a.row, p.a.col,
                                   tgi_clamp_count(p.m - tile.row, Side), args.a_along_k};
        tgi_small_lines<elem> b = {tgi_find_b<elem>(args, tile, first), p.b.col, p.b.row,
                                   tgi_clamp_count(p.n - tile.col, Side), args.b_along_k};
        elem *b_shared = shared + Side * pitch;
#pragma unroll 1
        for (int64_t left = tgi_count_k(args, first); left > 0; left -= Depth) {
            const int count = tgi_clamp_count(left, Depth);
            const int k_bits = count > 32 ? 6 : count > 16 ? 5 : 4;
            share a_share(shared, a, count, k_bits), b_share(b_shared, b, count, k_bits);
            if (k_bits == 4)
                copy<Side * 16 / Threads>(a_share, b_share);
            else
#pragma unroll 1
                for (int i = 0; i < 1 << k_bits; i += TGI_SMALL_WIDE_COPY)
                    copy<Side * TGI_SMALL_WIDE_COPY / Threads>(a_share, b_share);
            /* Without this barrier lines would be multiplied that others have not copied yet. */
            __syncthreads();
            if constexpr (Type == TG_TYPE_FP32)
                multiply_thread(shared, b_shared, count, sums);
            else
                multiply_warp(shared, b_shared, count, sums);
            /* Without this barrier lines would be overwritten that others have yet to multiply. */
            __syncthreads();
            a.data += Depth * a.k_stride;
            b.data += Depth * b.k_stride;
        }
    }

    static __device__ __forceinline__ void write_sum(float *to, float sum)
    {
        *to = sum;
    }

    static __device__ __forceinline__ void write_sum(uint16_t *to, float sum)
    {
        *to = Type == TG_TYPE_BF16 ? tgi_encode_bf16(sum) : tgi_encode_fp16(sum);
    }

    /* Writes the thread's sums of a column, `move` elements apart. */
    template <typename T>
    static __device__ __forceinline__ void write(T *to, int64_t move, const float *sums, int count)
    {
        constexpr int step = Threads / Side;
#pragma unroll 1
        for (int row = 0; row < count; row += 4 * step) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (row + i * step < count)
                    write_sum(to, sums[i * step * sum_pitch]);
                to += move;
            }
            sums += 4 * step * sum_pitch;
        }
    }

    /* Writes the tile by pairs of columns: half as many reads and writes. */
    static __device__ __forceinline__ void
    write_pairs(const tgi_gemm_args &args, const tgi_block_tile &tile, const float *sums)
    {
        constexpr int across = Side / 2, step = Threads / across;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % across * 2, first = tgi_thread() / across;
        const int rows = tgi_clamp_count(p.m - tile.row, Side);
        if (col >= p.n - tile.col)
            return;
        uint16_t *to = static_cast<uint16_t *>(args.d) +
                       tgi_offset(p.d, tile.batch, tile.row + first, tile.col + col);
        sums += first * sum_pitch + col;
#pragma unroll
        for (int row = 0; row < Side; row += step) {
            if (row + first < rows) {
                const float2 pair = *reinterpret_cast<const float2 *>(sums + row * sum_pitch);
                *reinterpret_cast<uint32_t *>(to) = tgi_encode_pair(Type, pair.x, pair.y);
            }
            to += step * p.d.row;
        }
    }

    /* Stores the tile through the epilogue to a D of the operands' type, Width columns of a row at
     * once. */
    template <int Width>
    static __device__ __forceinline__ void finish(const tgi_gemm_args &args,
                                                  const tgi_block_tile &tile, const float *sums)
    {
        constexpr int across = Side / Width, step = Threads / across, at_once = 4;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % across * Width;
        const int rows = tgi_clamp_count(p.m - tile.row, Side);
        if (col >= p.n - tile.col)
            return;
        typedef tgi_row_epilogue<Type, Width, at_once, step> row_epilogue;
        const row_epilogue epilogue(args, tile.batch, tile.row, tile.col + col);
#pragma unroll 1
        for (int row = tgi_thread() / across; row < rows; row += at_once * step) {
            typename row_epilogue::piece c[at_once] = {};
            float sum[at_once][Width];
            epilogue.read_c(args, row, 0, rows - row, c);
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                const tgi_row_piece<float, Width> piece =
                    *reinterpret_cast<const tgi_row_piece<float, Width> *>(
                        sums + (row + i * step) * sum_pitch + col);
#pragma unroll
                for (int j = 0; j < Width; j++)
                    sum[i][j] = piece.element[j];
            }
            epilogue.finish(args, row, 0, rows - row, c, sum);
        }
    }

    /* Stores the tile through the epilogue element by element, to a D of any type. */
    static __device__ __forceinline__ void
    finish_elements(const tgi_gemm_args &args, const tgi_block_tile &tile, const float *sums)
    {
        constexpr int step = Threads / Side, at_once = 4;
        const int col = tgi_thread() % Side;
        const int rows = tgi_clamp_count(args.problem.m - tile.row, Side);
        if (col >= args.problem.n - tile.col)
            return;
#pragma unroll 1
        for (int row = tgi_thread() / Side; row < rows; row += at_once * step) {
            const tgi_column_places places = {row, step, rows};
            float sum[at_once];
#pragma unroll
            for (int i = 0; i < at_once; i++)
                sum[i] = sums[(row + i * step) * sum_pitch + col];
            tgi_finish_elements(args, tile.batch, tile.row, tile.col + col, places, sum);
        }
    }

    /* Stores the tile as sums alone, to D or to the workspace. */
    static __device__ __forceinline__ void
    store_sums(const tgi_gemm_args &args, const tgi_block_tile &tile, const float *shared)
    {
        constexpr int step = Threads / Side;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % Side, first = tgi_thread() / Side;
        const int rows = tgi_clamp_count(p.m - tile.row, Side) - first;
        const float *sums = shared + first * sum_pitch + col;
        const int is_whole = args.k_part_count == 1;
        if (col >= p.n - tile.col)
            return;
        const int64_t offset = tgi_offset(p.d, tile.batch, tile.row + first, tile.col + col);
        const int64_t place =
            ((tile.batch * args.k_part_count + tile.k_part) * p.m + tile.row + first) * p.n +
            tile.col + col;
        if (!is_whole || args.is_plain)
            write(is_whole ? static_cast<float *>(args.d) + offset
                           : static_cast<float *>(args.workspace) + place,
                  step * (is_whole ? p.d.row : p.n), sums, rows);
        else
            write(static_cast<uint16_t *>(args.d) + offset, step * p.d.row, sums, rows);
    }

    static __device__ __forceinline__ void store(const tgi_gemm_args &args,
                                                 const tgi_block_tile &tile, const float *shared)
    {
        const int is_own_type = Type == TG_TYPE_FP32 || args.problem.d_type == Type;
        const int is_alone =
            args.k_part_count > 1 || args.is_plain || (args.is_sum_alone && is_own_type);
        const int has_pieces = tgi_row_epilogue<Type, 2, 4, 8>::has_pieces(args);
        if (is_alone && Type != TG_TYPE_FP32 && args.k_part_count == 1 && !args.is_plain &&
            has_pieces)
            write_pairs(args, tile, shared);
        else if (is_alone)
            store_sums(args, tile, shared);
        else if (!is_own_type)
            finish_elements(args, tile, shared);
        else if (has_pieces)
            finish<2>(args, tile, shared);
        else
            finish<1>(args, tile, shared);
    }

    static __device__ __forceinline__ void multiply_all(const tgi_gemm_args &given, char *shared)
    {
        const tgi_part_schedule<Side, Side> schedule(given);
        const unsigned end = schedule.end();
#pragma unroll 1
        for (unsigned unit = schedule.begin(); unit < end; unit = schedule.next(unit)) {
            const tgi_gemm_args &args = schedule.problem(given, unit);
            const tgi_block_tile tile = schedule.tile(unit);
            float sums[4][4] = {};
            add_stages(args, tile, reinterpret_cast<elem *>(shared), sums);
            keep_sums(reinterpret_cast<float *>(shared), sums);
            /* Without this barrier elements would be stored before the other warps have put
             * their sums. */
            __syncthreads();
            store(args, tile, reinterpret_cast<const float *>(shared));
            /* Without this barrier the next unit's lines would overwrite sums not yet stored. */
            __syncthreads();
        }
    }
};

#endif
