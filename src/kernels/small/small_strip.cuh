/*
 * Forms products of family small whose k is so short that D takes most of the time, as sums alone.
 * A warp has 32 rows of D and goes along them, 32 columns at a time. It keeps its lines of A in
 * registers, loads those of B from where they lie, and stores D from registers by 16 bytes, without
 * shared memory and barriers.
 *
 * Lane 4 g + c has columns 2 c and 2 c + 1 of a matrix instruction. The four instructions of 32
 * columns take columns of B in such an order that a lane has neighbours of D: instruction j has
 * column 8 c + 2 j + e of D as its column 2 c + e. A longer k is taken in an order in which a lane
 * has neighbours; up to 16 it is one instruction's own order, so that the bits are those of STEPS
 * (kernels.def).
 *
 * Where rows of D begin between units of 16 bytes, a lane stores the unit that begins up to eight
 * columns ahead of its own, whose first elements it gets from the lane to the left. A warp forms
 * the 32 columns to the left of its strip for that, but does not store them.
 *
 *     setup()      finds the warp's rows and columns, and loads its lines of A
 *     load()       loads a lane's words of 32 columns of B
 *     multiply()   forms the sums of 32 columns
 *     finish()     stores them
 */
#ifndef TGI_SMALL_STRIP_CUH
#define TGI_SMALL_STRIP_CUH

#include "kernels/body.cuh"
#include "kernels/copy/narrow_words.cuh"
#include "kernels/copy/shifted_unit.cuh"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/epilogue/row_columns.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/small/small_shape.h"

/* A lane has Units runs of Words words of each line, as neighbours along k. Type is FP8_E4M3 for
 * both types of FP8, whose words become two of FP16 each. */
template <tg_type Type, int Words, int Units> struct tgi_strip {
    static constexpr int is_fp8 = Type == TG_TYPE_FP8_E4M3, lines = 4;
    static constexpr int words = Words * Units, unit_elems = (is_fp8 ? 4 : 2) * Words;
    static constexpr int is_ahead = words <= 4; /* 1: columns are loaded ahead */
    typedef typename tgi_narrow<is_fp8>::elem elem;
    typedef uint32_t line_words[lines][words];
    typedef uint32_t pair_words[lines][is_fp8 ? 2 * words : words];
    typedef float sums[2][4][4];

    int row, quad;      /* the lane's first row, and its place c */
    int shift;          /* columns by which a lane stores ahead of those that it forms */
    int64_t row_stride; /* elements of D between the lane's rows, which are 8 apart */
    uint16_t *d;        /* column 0 of the lane's first row */
    pair_words a;
    uint4 last[lines]; /* the lane's columns of D ahead of those that it forms */

    /* Loads a lane's words of lines of which `count` elements exist, from aligned units. */
    static __device__ __forceinline__ void load_units(const elem *const (&line)[lines], int count,
                                                      line_words &word)
    {
#pragma unroll
        for (int i = 0; i < lines; i++)
#pragma unroll
            for (int u = 0; u < Units; u++) {
                const int k = (u * 4 + threadIdx.x % 4) * unit_elems;
                tgi_row_piece<uint32_t, Words> unit = {};
                if (k < count)
                    unit = *reinterpret_cast<const tgi_row_piece<uint32_t, Words> *>(line[i] + k);
#pragma unroll
                for (int j = 0; j < Words; j++)
                    word[i][u * Words + j] = unit.element[j];
            }
    }

    /* Joins the elements of the words, of 16 bits. */
    static __device__ __forceinline__ void pack(const uint16_t (&element)[lines][2 * words],
                                                line_words &word)
    {
#pragma unroll
        for (int i = 0; i < lines; i++)
#pragma unroll
            for (int j = 0; j < words; j++)
                word[i][j] = element[i][2 * j] | element[i][2 * j + 1] << 16;
    }

    /* Returns the k of element j of a lane's words. */
    static __device__ __forceinline__ int find_k(int j)
    {
        return (j / unit_elems * 4 + threadIdx.x % 4) * unit_elems + j % unit_elems;
    }

    /* Loads the words element by element, from lines along k. */
    static __device__ __forceinline__ void load_along(const elem *const (&line)[lines], int count,
                                                      line_words &word)
    {
        uint16_t element[lines][2 * words];
#pragma unroll
        for (int i = 0; i < lines; i++) {
            const elem *const from = line[i] + find_k(0);
#pragma unroll
            for (int j = 0; j < 2 * words; j++)
                element[i][j] = find_k(j) < count ? from[find_k(j) - find_k(0)] : 0;
        }
        pack(element, word);
    }

    /* Loads the words element by element, from lines across k, of which `limit` exist: every
     * Step-th from the lane's first one on. */
    template <int Step>
    static __device__ __forceinline__ void load_across(const elem *line, int64_t k_stride,
                                                       int count, int limit, line_words &word)
    {
        uint16_t element[lines][2 * words];
#pragma unroll
        for (int j = 0; j < 2 * words; j++) {
            const elem *const from = line + find_k(j) * k_stride;
#pragma unroll
            for (int i = 0; i < lines; i++)
                element[i][j] = find_k(j) < count && i * Step < limit ? from[i * Step] : 0;
        }
        pack(element, word);
    }

    static __device__ __forceinline__ void widen(const line_words &word, tg_type type,
                                                 pair_words &pair)
    {
#pragma unroll
        for (int i = 0; i < lines; i++)
            if (type == TG_TYPE_FP8_E5M2)
                tgi_widen<is_fp8, 1>(pair[i], word[i]);
            else
                tgi_widen<is_fp8, 0>(pair[i], word[i]);
    }

    __device__ __forceinline__ void setup(const tgi_strip_args &args)
    {
        const tgi_sums_args &p = args.sums;
        const int lane = threadIdx.x % 32;
        const elem *const from = static_cast<const elem *>(p.a) + blockIdx.z * p.a_batch;
        quad = lane % 4;
        row += lane / 4;
        const elem *line[lines];
        line_words word;
#pragma unroll
        for (int i = 0; i < lines; i++)
            line[i] = from + min(row + 8 * i, p.m - 1) * p.a_row;
        if (is_fp8 || args.a_order == TGI_STRIP_UNITS)
            load_units(line, p.k, word);
        else if (args.a_order == TGI_STRIP_ALONG)
            load_along(line, p.k, word);
        else
            load_across<8>(from + row, p.a_k, p.k, p.m - row, word);
        widen(word, args.a_type, a);
        d = static_cast<uint16_t *>(p.d) + blockIdx.z * p.d_batch + row * p.d_row;
        row_stride = 8 * p.d_row;
        /* Rows that are 8 apart lie alike between units of 16 bytes. The columns that a lane
         * stores begin 1 to 8 ahead of those that it forms. */
        const int ahead = static_cast<int>(reinterpret_cast<uintptr_t>(d) / 2 % 8);
        shift = args.is_moved ? ahead ? ahead : 8 : 0;
#pragma unroll
        for (int i = 0; i < lines; i++)
            last[i] = make_uint4(0, 0, 0, 0);
    }

    /* Loads words of columns `col` to col + 31 of B, which lies across k, by eight columns. */
    static __device__ __forceinline__ void load_pieces(const tgi_sums_args &p, const elem *b,
                                                       int col, line_words &word)
    {
        const int lane = threadIdx.x % 32;
        const uint32_t halves = lane / 4 % 2 ? 0x7632 : 0x5410;
        b += min(col + lane / 8 * 8, p.n - 8);
#pragma unroll
        for (int i = 0; i < words; i++) {
            const int k = find_k(2 * i);
            const uint4 *const from = reinterpret_cast<const uint4 *>(b + k * p.b_k);
            uint4 low = make_uint4(0, 0, 0, 0), high = low;
            if (k < p.k)
                low = *from;
            if (k + 1 < p.k)
                high = *reinterpret_cast<const uint4 *>(b + (k + 1) * p.b_k);
            word[0][i] = __byte_perm(low.x, high.x, halves);
            word[1][i] = __byte_perm(low.y, high.y, halves);
            word[2][i] = __byte_perm(low.z, high.z, halves);
            word[3][i] = __byte_perm(low.w, high.w, halves);
        }
    }

    static __device__ __forceinline__ void load(const tgi_strip_args &args, int col,
                                                line_words &word)
    {
        const tgi_sums_args &p = args.sums;
        const int group = threadIdx.x % 32 / 4, first = col + group / 2 * 8 + group % 2;
        const elem *const b = static_cast<const elem *>(p.b) + blockIdx.z * p.b_batch;
        if (!is_fp8 && args.b_order == TGI_STRIP_PIECES) {
            load_pieces(p, b, col, word);
            return;
        }
        if (!is_fp8 && args.b_order == TGI_STRIP_ACROSS) {
            load_across<2>(b + first, p.b_k, p.k, p.n - first, word);
            return;
        }
        const elem *line[lines];
#pragma unroll
        for (int j = 0; j < lines; j++)
            line[j] = b + min(first + 2 * j, p.n - 1) * p.b_col;
        if (is_fp8 || args.b_order == TGI_STRIP_UNITS)
            load_units(line, p.k, word);
        else
            load_along(line, p.k, word);
    }

    __device__ __forceinline__ void multiply(const line_words &word, tg_type type, sums &sum) const
    {
        constexpr tg_type multiplied = is_fp8 ? TG_TYPE_FP16 : Type;
        pair_words b;
        widen(word, type, b);
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sum[i][j][k] = 0;
#pragma unroll
                for (int k = 0; k < (is_fp8 ? 2 * words : words); k += 2) {
                    const uint32_t pair[4] = {a[2 * i][k], a[2 * i + 1][k], a[2 * i][k + 1],
                                              a[2 * i + 1][k + 1]};
                    tgi_multiply_16x8x16<multiplied>(sum[i][j], pair, b[j][k], b[j][k + 1]);
                }
            }
    }

    /* Returns the columns of D that begin `shift` ahead of the lane's. The first of them are of the
     * lane to the left, or of the 32 columns before. */
    __device__ __forceinline__ uint4 move(const uint4 &own, const uint4 &before) const
    {
        const int left = (quad + 3) % 4;
        const uint4 sent = quad == 3 ? before : own;
        const uint4 first =
            make_uint4(__shfl_sync(~0u, sent.x, left, 4), __shfl_sync(~0u, sent.y, left, 4),
                       __shfl_sync(~0u, sent.z, left, 4), __shfl_sync(~0u, sent.w, left, 4));
        return tgi_cut_unit(first, own, 2 * (8 - shift));
    }

    /* Stores the sums of columns `col` to col + 31, moved by `shift`, unless they are only the left
     * of the next ones. */
    __device__ __forceinline__ void finish(const tgi_strip_args &args, int col, int is_left,
                                           const sums &sum)
    {
        const tg_type type = is_fp8 ? static_cast<tg_type>(args.sums.d_type) : Type;
        uint16_t *to = d;
        col += 8 * quad;
#pragma unroll
        for (int i = 0; i < lines; i++) {
            float own[8];
#pragma unroll
            for (int j = 0; j < 8; j++)
                own[j] = sum[i / 2][j / 2][i % 2 * 2 + j % 2];
            const uint4 unit = tgi_encode_columns(type, own);
            const uint4 stored = args.is_moved ? move(unit, last[i]) : unit;
            if (!is_left && row + 8 * i < args.sums.m)
                tgi_store_columns(to, col - shift, args.sums.n, stored);
            last[i] = unit;
            to += row_stride;
        }
    }

    /* Forms the warp's strip. */
    static __device__ __forceinline__ void form(const tgi_strip_args &args)
    {
        tgi_check_body<tgi_strip>();
        tgi_check_sum<tgi_strip>();
        const int warp = threadIdx.x / 32, across = TGI_SMALL_STRIP_THREADS / 32 / args.warp_rows;
        const int strip = blockIdx.x * across + warp / args.warp_rows;
        tgi_strip body;
        body.row = (blockIdx.y * args.warp_rows + warp % args.warp_rows) * 32;
        const int begin = strip * args.strip_cols;
        /* The last strip stores the columns that its rows begin ahead, too. */
        const int is_last = begin + args.strip_cols >= args.sums.n;
        const int end = is_last ? args.sums.n + (args.is_moved ? 8 : 0) : begin + args.strip_cols;
        if (body.row >= args.sums.m || begin >= args.sums.n)
            return;
        tgi_wait_for_stream();
        body.setup(args);
        int col = begin - (args.is_moved && begin > 0 ? 32 : 0);
        line_words b;
        if (is_ahead)
            load(args, col, b);
#pragma unroll 1
        for (; col < end; col += 32) {
            sums sum;
            if (!is_ahead)
                load(args, col, b);
            body.multiply(b, args.b_type, sum);
            /* The next columns are loaded while these are stored, where registers allow it. */
            if (is_ahead)
                load(args, col + 32, b);
            body.finish(args, col, col < begin, sum);
        }
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
#define TGI_SMALL_STRIP(type)
#define TGI_SMALL_STRIP_FP8
#else
#define TGI_SMALL_STRIP(type)                                                                      \
    TGI_BODY_KERNEL(tgi_strip_16_##type, tgi_strip_args,                                           \
                    (TGI_SMALL_STRIP_THREADS, TGI_SMALL_STRIP_BLOCKS(16)),                         \
                    tgi_strip<TGI_TYPE_OF(type), 1, 2>)                                            \
    TGI_BODY_KERNEL(tgi_strip_64_##type, tgi_strip_args,                                           \
                    (TGI_SMALL_STRIP_THREADS, TGI_SMALL_STRIP_BLOCKS(64)),                         \
                    tgi_strip<TGI_TYPE_OF(type), 4, 2>)
#define TGI_SMALL_STRIP_FP8                                                                        \
    TGI_BODY_KERNEL(tgi_strip_64_fp8, tgi_strip_args,                                              \
                    (TGI_SMALL_STRIP_THREADS, TGI_SMALL_STRIP_BLOCKS(64)),                         \
                    tgi_strip<TG_TYPE_FP8_E4M3, 4, 1>)
#endif

#endif
