/*
 * Stores a wide tile of family small, whose sums lie in shared memory, so that a warp stores
 * neighbouring columns.
 */
#ifndef TGI_SMALL_WIDE_STORE_CUH
#define TGI_SMALL_WIDE_STORE_CUH

#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/schedule/tile.cuh"

/* Rows x Cols is the block's tile. */
template <tg_type Type, int Rows, int Cols, int Threads> struct tgi_small_wide_store {
    typedef typename tgi_element_of<Type>::sum sum_type;
    static constexpr int is_narrow_type = sizeof(typename tgi_element_of<Type>::type) == 2;
    static constexpr int is_fma = Type == TG_TYPE_FP32;
    static constexpr int sum_pitch = Cols + (is_fma ? 4 : 8); /* from row to row of the sums */

    /* Returns the place of a column's sum in its row. Each four sums of FP32 are rotated by one. */
    static __device__ __forceinline__ int find_place(int col)
    {
        return is_fma ? col / 4 * 4 + (col + 1) % 4 : col;
    }

    /* Returns the sum, but +0 for -0: other rows of the order multiply more zeros behind k. */
    static __device__ __forceinline__ sum_type find_sum(sum_type value)
    {
        return is_narrow_type ? value : value + sum_type(0);
    }

    static __device__ __forceinline__ void write_sum(sum_type *to, sum_type value)
    {
        *to = find_sum(value);
    }

    static __device__ __forceinline__ void write_sum(uint16_t *to, float value)
    {
        *to = Type == TG_TYPE_BF16 ? tgi_encode_bf16(value) : tgi_encode_fp16(value);
    }

    /* Writes the thread's sums of a column, `move` elements apart. */
    template <typename T>
    static __device__ __forceinline__ void write(T *to, int64_t move, const sum_type *from,
                                                 int count)
    {
        constexpr int stride = Threads / Cols;
#pragma unroll 1
        for (int row = 0; row < count; row += 4 * stride) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (row + i * stride < count)
                    write_sum(to, from[i * stride * sum_pitch]);
                to += move;
            }
            from += 4 * stride * sum_pitch;
        }
    }

    /* Stores the tile by pairs of columns, with half as many reads and writes. */
    static __device__ __forceinline__ void
    write_pairs(const tgi_gemm_args &args, const tgi_block_tile &tile, const float *from)
    {
        constexpr int across = Cols / 2, stride = Threads / across;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % across * 2, first = tgi_thread() / across;
        const int rows = tgi_clamp_count(p.m - tile.row, Rows);
        if (col >= p.n - tile.col)
            return;
        uint16_t *to = static_cast<uint16_t *>(args.d) +
                       tgi_offset(p.d, tile.batch, tile.row + first, tile.col + col);
        from += first * sum_pitch + col;
#pragma unroll
        for (int row = 0; row < Rows; row += stride) {
            if (row + first < rows) {
                const float2 pair = *reinterpret_cast<const float2 *>(from + row * sum_pitch);
                *reinterpret_cast<uint32_t *>(to) = tgi_encode_pair(Type, pair.x, pair.y);
            }
            to += stride * p.d.row;
        }
    }

    /* Stores a tile of FP32 as sums alone, by 16 bytes. */
    static __device__ __forceinline__ void
    write_units(const tgi_gemm_args &args, const tgi_block_tile &tile, const float *from)
    {
        constexpr int across = Cols / 4, stride = Threads / across;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % across * 4, first = tgi_thread() / across;
        const int rows = tgi_clamp_count(p.m - tile.row, Rows);
        if (col >= p.n - tile.col)
            return;
        float *to = static_cast<float *>(args.d) +
                    tgi_offset(p.d, tile.batch, tile.row + first, tile.col + col);
        from += first * sum_pitch + col;
#pragma unroll
        for (int row = 0; row < Rows; row += stride) {
            const float4 four = *reinterpret_cast<const float4 *>(from + row * sum_pitch);
            if (row + first < rows)
                *reinterpret_cast<float4 *>(to) = make_float4(find_sum(four.y), find_sum(four.z),
                                                              find_sum(four.w), find_sum(four.x));
            to += stride * p.d.row;
        }
    }

    /* Stores the tile through the epilogue to a D of the operands' type, Width columns of a row at
     * once. */
    template <int Width>
    static __device__ __forceinline__ void
    finish_rows(const tgi_gemm_args &args, const tgi_block_tile &tile, const sum_type *from)
    {
        constexpr int across = Cols / Width, stride = Threads / across;
        /* A thread waits once for C of all rows at once. More than four units of C take longer, and
         * more than four rows of FP64 spill registers. */
        constexpr int own_rows = Rows / stride, has_units = Width > 1 || Type == TG_TYPE_FP64;
        constexpr int most = has_units ? 4 : is_fma ? 16 : 8;
        constexpr int at_once = own_rows < most ? own_rows : most;
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
            sum_type value[at_once][Width];
            epilogue.read_c(args, row, 0, rows - row, c);
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                const sum_type *place = from + (row + i * stride) * sum_pitch;
                if constexpr (is_fma) {
#pragma unroll
                    for (int j = 0; j < Width; j++)
                        value[i][j] = find_sum(place[find_place(col + j)]);
                } else {
                    const tgi_row_piece<sum_type, Width> piece =
                        *reinterpret_cast<const tgi_row_piece<sum_type, Width> *>(place + col);
#pragma unroll
                    for (int j = 0; j < Width; j++)
                        value[i][j] = find_sum(piece.element[j]);
                }
            }
            epilogue.finish(args, row, 0, rows - row, c, value);
        }
    }

    /* Stores the tile through the epilogue element by element, to a D of any type. */
    static __device__ __forceinline__ void
    finish_elements(const tgi_gemm_args &args, const tgi_block_tile &tile, const sum_type *from)
    {
        constexpr int stride = Threads / Cols, at_once = 4;
        const int col = tgi_thread() % Cols;
        const int rows = tgi_clamp_count(args.problem.m - tile.row, Rows);
        if (col >= args.problem.n - tile.col)
            return;
#pragma unroll 1
        for (int row = tgi_thread() / Cols; row < rows; row += at_once * stride) {
            const tgi_column_places places = {row, stride, rows};
            sum_type value[at_once];
#pragma unroll
            for (int i = 0; i < at_once; i++)
                value[i] = from[(row + i * stride) * sum_pitch + col];
            tgi_finish_elements(args, tile.batch, tile.row, tile.col + col, places, value);
        }
    }

    /* Stores the tile as sums alone, to D or to the workspace. */
    static __device__ __forceinline__ void
    store_sums(const tgi_gemm_args &args, const tgi_block_tile &tile, const sum_type *shared)
    {
        constexpr int stride = Threads / Cols;
        const tgi_problem &p = args.problem;
        const int col = tgi_thread() % Cols, first = tgi_thread() / Cols;
        const int rows = tgi_clamp_count(p.m - tile.row, Rows) - first;
        const sum_type *from = shared + first * sum_pitch + find_place(col);
        const int is_whole = args.split_count == 1;
        if constexpr (is_fma) {
            if (args.is_plain && is_whole && args.d_vector_elems > 1 && p.n % 4 == 0) {
                write_units(args, tile, shared);
                return;
            }
        }
        if (col >= p.n - tile.col)
            return;
        const int64_t offset = tgi_offset(p.d, tile.batch, tile.row + first, tile.col + col);
        const int64_t place =
            ((tile.batch * args.split_count + tile.split) * p.m + tile.row + first) * p.n +
            tile.col + col;
        if (!is_whole || args.is_plain)
            write(is_whole ? static_cast<sum_type *>(args.d) + offset
                           : static_cast<sum_type *>(args.workspace) + place,
                  stride * (is_whole ? p.d.row : p.n), from, rows);
        else
            write(static_cast<uint16_t *>(args.d) + offset, stride * p.d.row, from, rows);
    }

    static __device__ __forceinline__ void store(const tgi_gemm_args &args,
                                                 const tgi_block_tile &tile, const sum_type *shared)
    {
        const int is_own_type = !is_narrow_type || args.problem.d_type == Type;
        const int is_plain = args.split_count > 1 || args.is_plain;
        const int is_alone = is_plain || (args.is_sum_alone && is_own_type);
        constexpr int width = is_fma ? 4 : 2;
        const int has_pieces = tgi_row_epilogue<Type, width, 4, 8>::has_pieces(args);
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
        else if (has_pieces)
            finish_rows<width>(args, tile, shared);
        else
            finish_rows<1>(args, tile, shared);
    }
};

#endif
