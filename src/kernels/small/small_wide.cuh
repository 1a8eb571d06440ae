/*
 * Family small in tiles that are large beside k, by matrix instructions of FP64 and of 16-bit
 * types, or by multiply-adds of FP32. The threads of a block copy lines of A and B to shared memory
 * element by element, in runs along k or across it, as the lines lie, so that no operand needs to
 * be aligned or repacked. A thread requests its elements of a stage before the products of the
 * previous one. D goes through shared memory, so that a warp stores neighbouring columns. Blocks
 * that share a multiprocessor hide each other's waits.
 */
#ifndef TGI_SMALL_WIDE_CUH
#define TGI_SMALL_WIDE_CUH

#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/small/small_shape.h"

/* Lines of A or B in global memory, of which the first line_count exist. */
template <typename T> struct tgi_small_lines {
    const T *data;
    int64_t line_stride, k_stride;
    int line_count, along_k;
};

/* Rows x Cols is the block's tile, Depth the k of a stage, and Row_sums x Col_sums a thread's sums
 * of FP32, which it multiplies; those of matrix instructions are 4 x 4. */
template <tg_type Type, int Rows, int Cols, int Depth, int Row_sums, int Col_sums, int Threads>
struct tgi_small_wide {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum;
    /* A line is padded, so that neighbouring lines lie in different banks. */
    static constexpr int pitch =
        Depth + TGI_SMALL_WIDE_PAD_BYTES(sizeof(elem)) / static_cast<int>(sizeof(elem));
    static constexpr int sum_pitch = Cols + 8;
    static constexpr int is_fma = Type == TG_TYPE_FP32, is_narrow_type = sizeof(elem) == 2;
    static constexpr int warp_cols = is_fma ? 1 : Cols / 32;
    static constexpr int sum_rows = is_fma ? Row_sums : 4, sum_cols = is_fma ? Col_sums : 4;
    static constexpr int rows_apart = Rows / Row_sums, cols_apart = Cols / Col_sums;
    static_assert(is_fma ? Threads == rows_apart * cols_apart
                         : Threads / 32 == Rows / 16 * warp_cols,
                  "a warp forms 16 x 32 on matrix instructions");

    /* A thread's elements of each stage of A or B with Lines lines: every `stride`-th line of one
     * k, or k of one line. */
    template <int Lines> struct share {
        static constexpr int count = Lines * Depth / Threads;
        const elem *from;
        int64_t move, next;
        int place, shared_move, stride, along_k, k, end;
        elem element[count];

        __device__ __forceinline__ share(const tgi_small_lines<elem> &lines)
        {
            const int thread = tgi_thread();
            along_k = lines.along_k;
            k = along_k ? thread % Depth : thread / Lines;
            const int line = along_k ? thread / Depth : thread % Lines;
            stride = along_k ? Threads / Depth : Threads / Lines;
            end = lines.line_count - line;
            move = stride * (along_k ? lines.line_stride : lines.k_stride);
            next = Depth * lines.k_stride;
            shared_move = along_k ? stride * pitch : stride;
            from = lines.data + line * lines.line_stride + k * lines.k_stride;
            place = line * pitch + k;
        }

        /* Requests the elements of the next stage, which has `left` of k. Elements outside are
         * zeros. */
        __device__ __forceinline__ void load(int64_t left)
        {
            const int k_end = tgi_clamp_count(left, Depth) - k;
            const int limit = along_k ? k_end > 0 ? end : 0 : end > 0 ? k_end : 0;
            const elem *place_from = from;
#pragma unroll
            for (int i = 0; i < count; i++) {
                element[i] = i * stride < limit ? *place_from : elem(0);
                place_from += move;
            }
            from += next;
        }

        __device__ __forceinline__ void keep(elem *shared) const
        {
            elem *to = shared + place;
#pragma unroll
            for (int i = 0; i < count; i++) {
                *to = element[i];
                to += shared_move;
            }
        }
    };

    /* Adds the products of `count` of k, and of zeros up to a multiple of 16, to the warp's
     * sums. */
    static __device__ __forceinline__ void multiply_warp(const uint16_t *a, const uint16_t *b,
                                                         int count, float (&sums)[4][4])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        const int row = warp / warp_cols * 16 + lane % 16;
        const int col = warp % warp_cols * 32 + lane % 8 + lane / 16 * 8;
        uint32_t a_place = tgi_shared_address(a + row * pitch + lane / 16 * 8);
        uint32_t b_place = tgi_shared_address(b + col * pitch + lane / 8 % 2 * 8);
#pragma unroll 1
        for (int k = 0; k < count; k += 16) {
            uint32_t a_words[4], low[4], high[4];
            tgi_read_matrices(a_words, a_place);
            tgi_read_matrices(low, b_place);
            tgi_read_matrices(high, b_place + 16 * pitch * 2);
            tgi_multiply_16x8x16<Type>(sums[0], a_words, low[0], low[1]);
            tgi_multiply_16x8x16<Type>(sums[1], a_words, low[2], low[3]);
            tgi_multiply_16x8x16<Type>(sums[2], a_words, high[0], high[1]);
            tgi_multiply_16x8x16<Type>(sums[3], a_words, high[2], high[3]);
            a_place += 32;
            b_place += 32;
        }
    }

    /* Adds the same products of FP64, with zeros up to a multiple of 4. */
    static __device__ __forceinline__ void multiply_warp(const double *a, const double *b,
                                                         int count, double (&sums)[4][4])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        a += (warp / warp_cols * 16 + lane / 4) * pitch + lane % 4;
        b += (warp % warp_cols * 32 + lane / 4) * pitch + lane % 4;
#pragma unroll 2
        for (int k = 0; k < count; k += 4) {
            const double a_pair[2] = {a[k], a[8 * pitch + k]};
#pragma unroll
            for (int i = 0; i < 4; i++)
                tgi_multiply_fp64_16x8x4(sums[i], a_pair, b[8 * i * pitch + k]);
        }
    }

    /* Adds the same products by multiply-adds. A thread has rows rows_apart and columns cols_apart
     * apart. */
    static __device__ __forceinline__ void
    multiply_thread(const float *a, const float *b, int count, float (&sums)[Row_sums][Col_sums])
    {
        a += tgi_thread() / cols_apart * pitch;
        b += tgi_thread() % cols_apart * pitch;
#pragma unroll 1
        for (int k = 0; k < count; k += 4) {
            float4 rows[Row_sums], cols[Col_sums];
#pragma unroll
            for (int i = 0; i < Row_sums; i++)
                rows[i] = *reinterpret_cast<const float4 *>(a + rows_apart * i * pitch + k);
#pragma unroll
            for (int j = 0; j < Col_sums; j++)
                cols[j] = *reinterpret_cast<const float4 *>(b + cols_apart * j * pitch + k);
#pragma unroll
            for (int i = 0; i < Row_sums; i++)
#pragma unroll
                for (int j = 0; j < Col_sums; j++) {
                    sums[i][j] = fmaf(rows[i].x, cols[j].x, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].y, cols[j].y, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].z, cols[j].z, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].w, cols[j].w, sums[i][j]);
                }
        }
    }

    /* Writes the thread's sums to shared memory, from which store() reads them. */
    static __device__ __forceinline__ void keep_sums(sum *shared,
                                                     const sum (&sums)[sum_rows][sum_cols])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        sum *own = is_fma
                       ? shared + tgi_thread() / cols_apart * sum_pitch + tgi_thread() % cols_apart
                       : shared + (warp / warp_cols * 16 + lane / 4) * sum_pitch +
                             warp % warp_cols * 32 + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < sum_rows; i++)
#pragma unroll
            for (int j = 0; j < sum_cols; j++)
                own[is_fma ? rows_apart * i * sum_pitch + cols_apart * j
                           : j / 2 * 8 * sum_pitch + 8 * i + j % 2] = sums[i][j];
    }

    /* Adds the tile's split to the warp's sums. */
    static __device__ __forceinline__ void add_stages(const tgi_gemm_args &args,
                                                      const tgi_block_tile &tile, elem *shared,
                                                      sum (&sums)[sum_rows][sum_cols])
    {
        const tgi_problem &p = args.problem;
        const int64_t first = tgi_find_first_k(args, tile.split);
        tgi_small_lines<elem> a = {tgi_find_a<elem>(args, tile, first), p.a.row, p.a.col,
                                   tgi_clamp_count(p.m - tile.row, Rows), args.a_along_k};
        tgi_small_lines<elem> b = {tgi_find_b<elem>(args, tile, first), p.b.col, p.b.row,
                                   tgi_clamp_count(p.n - tile.col, Cols), args.b_along_k};
        constexpr int stage_elems = (Rows + Cols) * pitch;
        share<Rows> a_share(a);
        share<Cols> b_share(b);
        int64_t left = tgi_count_k(args, first);
        elem *stage = shared;
        a_share.load(left);
        b_share.load(left);
#pragma unroll 1
        for (; left > 0; left -= Depth) {
            a_share.keep(stage);
            b_share.keep(stage + Rows * pitch);
            /* Without this barrier lines would be multiplied that others have not put yet. Those of
             * the stage before the last one are no longer read. */
            __syncthreads();
            if (left > Depth) {
                a_share.load(left - Depth);
                b_share.load(left - Depth);
            }
            if constexpr (is_fma)
                multiply_thread(stage, stage + Rows * pitch, tgi_clamp_count(left, Depth), sums);
            else
                multiply_warp(stage, stage + Rows * pitch, tgi_clamp_count(left, Depth), sums);
            stage = stage == shared ? shared + stage_elems : shared;
        }
        /* Without this barrier sums would overwrite lines that others have yet to multiply. */
        __syncthreads();
    }

    static __device__ __forceinline__ void write_sum(sum *to, sum value)
    {
        *to = value;
    }

    static __device__ __forceinline__ void write_sum(uint16_t *to, float value)
    {
        *to = Type == TG_TYPE_BF16 ? tgi_encode_bf16(value) : tgi_encode_fp16(value);
    }

    /* Writes the thread's sums of a column, `move` elements apart. */
    template <typename T>
    static __device__ __forceinline__ void write(T *to, int64_t move, const sum *sums, int count)
    {
        constexpr int stride = Threads / Cols;
#pragma unroll 1
        for (int row = 0; row < count; row += 4 * stride) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (row + i * stride < count)
                    write_sum(to, sums[i * stride * sum_pitch]);
                to += move;
            }
            sums += 4 * stride * sum_pitch;
        }
    }

    /* Stores the tile by pairs of columns, with half as many reads and writes. */
    static __device__ __forceinline__ void
    write_pairs(const tgi_gemm_args &args, const tgi_block_tile &tile, const float *sums)
    {
        constexpr int across = Cols / 2, stride = Threads / across;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % across * 2, first = tgi_thread() / across;
        const int rows = tgi_clamp_count(p.m - tile.row, Rows);
        if (col >= p.n - tile.col)
            return;
        uint16_t *to = static_cast<uint16_t *>(args.d) +
                       tgi_offset(p.d, tile.batch, tile.row + first, tile.col + col);
        sums += first * sum_pitch + col;
#pragma unroll
        for (int row = 0; row < Rows; row += stride) {
            if (row + first < rows) {
                const float2 pair = *reinterpret_cast<const float2 *>(sums + row * sum_pitch);
                *reinterpret_cast<uint32_t *>(to) = tgi_encode_pair(Type, pair.x, pair.y);
            }
            to += stride * p.d.row;
        }
    }

    /* Stores the tile through the epilogue to a D of the operands' type, Width columns of a row at
     * once. */
    template <int Width>
    static __device__ __forceinline__ void finish(const tgi_gemm_args &args,
                                                  const tgi_block_tile &tile, const sum *sums)
    {
        constexpr int across = Cols / Width, stride = Threads / across, at_once = 4;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % across * Width;
        const int rows = tgi_clamp_count(p.m - tile.row, Rows);
        if (col >= p.n - tile.col)
            return;
        typedef tgi_row_epilogue<Type, Width, at_once, stride> row_epilogue;
        const row_epilogue epilogue(args, tile.batch, tile.row, tile.col + col);
#pragma unroll 1
        for (int row = tgi_thread() / across; row < rows; row += at_once * stride) {
            typename row_epilogue::piece c[at_once] = {};
            sum value[at_once][Width];
            epilogue.read_c(args, row, 0, rows - row, c);
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                const tgi_row_piece<sum, Width> piece =
                    *reinterpret_cast<const tgi_row_piece<sum, Width> *>(
                        sums + (row + i * stride) * sum_pitch + col);
#pragma unroll
                for (int j = 0; j < Width; j++)
                    value[i][j] = piece.element[j];
            }
            epilogue.finish(args, row, 0, rows - row, c, value);
        }
    }

    /* Stores the tile through the epilogue element by element, to a D of any type. */
    static __device__ __forceinline__ void
    finish_elements(const tgi_gemm_args &args, const tgi_block_tile &tile, const sum *sums)
    {
        constexpr int stride = Threads / Cols, at_once = 4;
        const int col = tgi_thread() % Cols;
        const int rows = tgi_clamp_count(args.problem.m - tile.row, Rows);
        if (col >= args.problem.n - tile.col)
            return;
#pragma unroll 1
        for (int row = tgi_thread() / Cols; row < rows; row += at_once * stride) {
            const tgi_column_places places = {row, stride, rows};
            sum value[at_once];
#pragma unroll
            for (int i = 0; i < at_once; i++)
                value[i] = sums[(row + i * stride) * sum_pitch + col];
            tgi_finish_elements(args, tile.batch, tile.row, tile.col + col, places, value);
        }
    }

    /* Stores the tile as sums alone, to D or to the workspace. */
    static __device__ __forceinline__ void store_sums(const tgi_gemm_args &args,
                                                      const tgi_block_tile &tile, const sum *shared)
    {
        constexpr int stride = Threads / Cols;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % Cols, first = tgi_thread() / Cols;
        const int rows = tgi_clamp_count(p.m - tile.row, Rows) - first;
        const sum *sums = shared + first * sum_pitch + col;
        const int is_whole = args.split_count == 1;
        if (col >= p.n - tile.col)
            return;
        const int64_t offset = tgi_offset(p.d, tile.batch, tile.row + first, tile.col + col);
        const int64_t place =
            ((tile.batch * args.split_count + tile.split) * p.m + tile.row + first) * p.n +
            tile.col + col;
        if (!is_whole || args.is_plain)
            write(is_whole ? static_cast<sum *>(args.d) + offset
                           : static_cast<sum *>(args.workspace) + place,
                  stride * (is_whole ? p.d.row : p.n), sums, rows);
        else
            write(static_cast<uint16_t *>(args.d) + offset, stride * p.d.row, sums, rows);
    }

    static __device__ __forceinline__ void store(const tgi_gemm_args &args,
                                                 const tgi_block_tile &tile, const sum *shared)
    {
        const int is_own_type = !is_narrow_type || args.problem.d_type == Type;
        const int is_plain = args.split_count > 1 || args.is_plain;
        const int is_alone = is_plain || (args.is_sum_alone && is_own_type);
        const int has_pieces = tgi_row_epilogue<Type, 2, 4, 8>::has_pieces(args);
        if constexpr (is_narrow_type) {
            if (!is_plain && is_alone && has_pieces) {
                write_pairs(args, tile, shared);
                return;
            }
            if (!is_own_type && !is_alone) {
                finish_elements(args, tile, shared);
                return;
            }
        }
        if (is_alone)
            store_sums(args, tile, shared);
        else if (Rows == Cols && has_pieces)
            finish<2>(args, tile, shared);
        else
            finish<1>(args, tile, shared);
    }

    static __device__ __forceinline__ void multiply_all(const tgi_gemm_args &given, char *shared)
    {
        const tgi_grid_schedule<Rows, Cols, TGI_TURN_SPLITS> schedule(given);
        const unsigned end = schedule.end();
#pragma unroll 1
        for (unsigned unit = schedule.begin(); unit < end; unit = schedule.next(unit)) {
            const tgi_gemm_args &args = schedule.problem(given, unit);
            const tgi_block_tile tile = schedule.tile(unit);
            sum sums[sum_rows][sum_cols] = {};
            add_stages(args, tile, reinterpret_cast<elem *>(shared), sums);
            keep_sums(reinterpret_cast<sum *>(shared), sums);
            /* Without this barrier elements would be stored before the other warps have put
             * their sums. */
            __syncthreads();
            store(args, tile, reinterpret_cast<const sum *>(shared));
            /* Without this barrier the next unit's lines would overwrite sums not yet stored. */
            __syncthreads();
        }
    }
};

#endif
