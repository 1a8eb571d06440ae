/*
 * Applies the epilogue to a warpgroup's whole tile, 64 rows, in registers. The code is unrolled as
 * far as registers would otherwise need computed indices. Terms in memory are requested before they
 * are needed, because loads wait long while TMA fills stages. Biases and scales are copied to
 * shared memory while the products are summed, and all pairs of C are read at once.
 * fragment_epilogue.cuh describes the places of the sums.
 */
#ifndef TGI_WARPGROUP_EPILOGUE_CUH
#define TGI_WARPGROUP_EPILOGUE_CUH

#include "kernels/epilogue/c_words.cuh"
#include "kernels/epilogue/fragment_epilogue.cuh"
#include "kernels/epilogue/fragment_output.h"
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/shared_memory.cuh"

/* Terms of lines (rows or columns) of D: `count` terms from line `first` on, side by side in shared
 * memory as they lie in global memory. Terms from line `end` on lie outside D and may have any
 * value. Threads copy words of 4 bytes. */
struct tgi_line_terms {
    const void *data;
    tg_type type;
    int first, count;
    int64_t end;

    /* Requests a copy of the terms in shared memory. */
    __device__ __forceinline__ void copy(uint32_t memory) const
    {
        const int shift = type == TG_TYPE_FP32 ? 2 : !tgi_is_fp8(type);
        const char *source =
            static_cast<const char *>(data) + (static_cast<int64_t>(first) << shift);
        const int bytes = static_cast<int>(min(end - first, static_cast<int64_t>(count))) << shift;
#pragma unroll 1
        for (int i = tgi_reread_thread() % 128 * 4; i < bytes; i += 512)
            tgi_copy_async<4>(memory + i, source + i, min(bytes - i, 4));
    }

    /* Reads the terms one by one, at any address, and writes them to shared memory. */
    __device__ __forceinline__ void read(uint32_t memory) const
    {
#pragma unroll 1
        for (int i = tgi_reread_thread() % 128; i < count && first + i < end; i += 128) {
            if (type == TG_TYPE_FP32)
                tgi_write_shared_4(memory + i * 4, static_cast<const float *>(data)[first + i]);
            else if (!tgi_is_fp8(type))
                tgi_write_shared_2(memory + i * 2, static_cast<const uint16_t *>(data)[first + i]);
            else
                tgi_write_shared_1(memory + i, static_cast<const uint8_t *>(data)[first + i]);
        }
    }
};

/* Reads two neighbours of FP32 or FP8 from shared memory. */
static __device__ __forceinline__ void tgi_read_pair(uint32_t shared, tg_type type,
                                                     float (&pair)[2])
{
    if (type == TG_TYPE_FP32) {
        tgi_read_shared_8(shared, pair);
    } else {
        const uint16_t bits = tgi_read_shared_2(shared);
        const uint32_t wide =
            type == TG_TYPE_FP8_E4M3 ? tgi_decode_e4m3_pair(bits) : __byte_perm(bits, 0, 0x1404);
        tgi_decode_pair<TG_TYPE_FP16>(wide, pair);
    }
}

/* Reads one term of `type` from shared memory. */
static __device__ __forceinline__ float tgi_read_term(uint32_t shared, tg_type type)
{
    const int bytes = tgi_count_bytes(type);
    const uint32_t bits = bytes == 4   ? __float_as_uint(tgi_read_shared_4(shared))
                          : bytes == 2 ? tgi_read_shared_2(shared)
                                       : tgi_read_shared_1(shared);
    return tgi_decode_element(bits, type);
}

/* Biases of 16 bits as they lie in memory. Word t has those of a thread's columns 8 t +
 * 2 (lane % 4) and the next one. */
template <int Cols> struct tgi_bias_words {
    uint32_t word[Cols / 8];

    /* Takes the biases whose copies this thread and the others of its warpgroup have requested.
     * `barrier` is the warpgroup's named barrier. */
    __device__ __forceinline__ void take(uint32_t memory, int barrier)
    {
        tgi_copy_async_wait<0>();
        /* Without this barrier threads would read biases that others have yet to copy. */
        tgi_named_barrier_sync(barrier, 128);
        memory += tgi_reread_thread() % 4 * 4;
#pragma unroll
        for (int t = 0; t < Cols / 8; t++)
            word[t] = tgi_read_shared_word(memory + t * 16);
        /* Without this barrier biases would be overwritten that others still read. */
        tgi_named_barrier_sync(barrier, 128);
    }

    template <tg_type Type> __device__ __forceinline__ void add(float (&sum)[Cols / 2]) const
    {
#pragma unroll
        for (int t = 0; t < Cols / 8; t++) {
            float bias[2];
            tgi_decode_pair<Type>(word[t], bias);
            /* An opaque value keeps the compiler from merging this code with another type's. */
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[4 * t + j] = tgi_make_opaque(tgi_add_bias_fp32(sum[4 * t + j], bias[j % 2]));
        }
    }
};

/* The terms of a warpgroup's tile of Cols columns. `memory` has TGI_TERM_BYTES. It holds the scales
 * of columns, then those of rows; or the bias, if there are no vectors of scales. */
template <int Cols> struct tgi_tile_terms {
    const tgi_gemm_args &gemm;
    const tgi_cluster_tile tile;
    uint32_t memory;
    int barrier; /* the named barrier of the warpgroup */

    static_assert(4 * Cols + (TGI_LEAST_D_BYTES == 1 ? 256 : 0) <= TGI_TERM_BYTES,
                  "the terms have room");

    __device__ __forceinline__ tgi_line_terms find_bias(void) const
    {
        const tgi_problem &p = gemm.problem;
        const int is_row = p.epilogue.bias == TG_BIAS_ROW;
        return {gemm.bias, tgi_find_d_type(p), is_row ? tile.row : tile.col, is_row ? 64 : Cols,
                is_row ? p.m : p.n};
    }

    __device__ __forceinline__ int has_row_scales(void) const
    {
        return TGI_LEAST_D_BYTES == 1 && gemm.problem.epilogue.a_scale == TG_SCALE_VECTOR;
    }

    __device__ __forceinline__ int has_col_scales(void) const
    {
        return TGI_LEAST_D_BYTES == 1 && gemm.problem.epilogue.b_scale == TG_SCALE_VECTOR;
    }

    __device__ __forceinline__ int has_vectors(void) const
    {
        return has_row_scales() || has_col_scales();
    }

    __device__ __forceinline__ int has_bias(void) const
    {
        return gemm.problem.epilogue.bias != TG_BIAS_NONE;
    }

    /* Returns 1 if there are biases of columns, of 16 bits. */
    __device__ __forceinline__ int has_bias_words(void) const
    {
        return gemm.problem.epilogue.bias == TG_BIAS_COL &&
               tgi_count_bytes(tgi_find_d_type(gemm.problem)) == 2;
    }

    /* Requests the terms, and prefetches C to L2 unless it is brought before. No thread still reads
     * the terms' memory. */
    __device__ __forceinline__ void copy(int is_c_brought) const
    {
        const tgi_problem &p = gemm.problem;
        if (!is_c_brought)
            tgi_fetch_c(gemm, tile, Cols);
        if (has_col_scales())
            tgi_line_terms{gemm.b_scale, TG_TYPE_FP32, tile.col, Cols, p.n}.copy(memory);
        if (has_row_scales())
            tgi_line_terms{gemm.a_scale, TG_TYPE_FP32, tile.row, 64, p.m}.copy(memory + 4 * Cols);
        if (has_bias() && !has_vectors()) {
            if (reinterpret_cast<uintptr_t>(gemm.bias) % 4 == 0)
                find_bias().copy(memory);
            else
                find_bias().read(memory);
        }
        tgi_copy_async_commit();
    }

    /* Return the first of this thread's rows and columns in the tile. */
    static __device__ __forceinline__ int find_own_row(void)
    {
        const int thread = tgi_reread_thread() % 128;
        return thread / 32 * 16 + thread % 32 / 4;
    }

    static __device__ __forceinline__ int find_own_col(void)
    {
        return tgi_reread_thread() % 4 * 2;
    }

    /* Multiplies the sums by alpha and the scales of A and B. */
    __device__ __forceinline__ void scale(float (&sum)[Cols / 2]) const
    {
        const float alpha = static_cast<float>(gemm.problem.epilogue.alpha);
        if (TGI_LEAST_D_BYTES == 1 && (gemm.a_scale || gemm.b_scale)) {
            const int are_copied = has_vectors();
            if (are_copied)
                tgi_copy_async_wait<0>();
            /* Without this barrier threads would read scales that others have yet to copy. */
            if (are_copied)
                tgi_named_barrier_sync(barrier, 128);
            const uint32_t rows = memory + 4 * (Cols + find_own_row());
            const uint32_t cols = memory + 4 * find_own_col();
            const float a = gemm.a_scale && !has_row_scales() ? *gemm.a_scale : 1.0f;
            const float b = gemm.b_scale && !has_col_scales() ? *gemm.b_scale : 1.0f;
            const float row_scale[2] = {has_row_scales() ? tgi_read_shared_4(rows) : a,
                                        has_row_scales() ? tgi_read_shared_4(rows + 32) : a};
#pragma unroll
            for (int i = 0; i < Cols / 2; i += 4) {
                float col_scale[2] = {b, b};
                if (has_col_scales())
                    tgi_read_shared_8(cols + 8 * i, col_scale);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i + j] = TGI_MULTIPLY_FP32(
                        tgi_scale_alpha_fp32(alpha, row_scale[j / 2], col_scale[j % 2]),
                        sum[i + j]);
            }
            /* Without this barrier scales would be overwritten that others still read. */
            if (are_copied)
                tgi_named_barrier_sync(barrier, 128);
        } else if (alpha != 1.0f) {
#pragma unroll
            for (int i = 0; i < Cols / 2; i++)
                sum[i] = TGI_MULTIPLY_FP32(alpha, sum[i]);
        }
    }

    /* Adds the biases of rows, or those of columns of FP32 or FP8. */
    __device__ __forceinline__ void add_bias_terms(float (&sum)[Cols / 2]) const
    {
        const tg_type type = tgi_find_d_type(gemm.problem);
        const int bytes = static_cast<int>(tgi_count_bytes(type));
        tgi_copy_async_wait<0>();
        /* Without this barrier threads would read biases that others have yet to write. */
        tgi_named_barrier_sync(barrier, 128);
        if (gemm.problem.epilogue.bias == TG_BIAS_ROW) {
            const uint32_t rows = memory + find_own_row() * bytes;
            const float bias[2] = {tgi_read_term(rows, type),
                                   tgi_read_term(rows + 8 * bytes, type)};
#pragma unroll
            for (int i = 0; i < Cols / 2; i++)
                sum[i] = tgi_add_bias_fp32(sum[i], bias[i / 2 % 2]);
        } else if (type == TG_TYPE_FP32 || TGI_LEAST_D_BYTES == 1) {
            const uint32_t cols = memory + find_own_col() * bytes;
#pragma unroll
            for (int i = 0; i < Cols / 2; i += 4) {
                float bias[2];
                tgi_read_pair(cols + 2 * i * bytes, type, bias);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i + j] = tgi_make_opaque(tgi_add_bias_fp32(sum[i + j], bias[j % 2]));
            }
        }
        /* Without this barrier biases would be overwritten that others still read. */
        tgi_named_barrier_sync(barrier, 128);
    }

    __device__ __forceinline__ void add_bias(float (&sum)[Cols / 2]) const
    {
        if (!has_bias())
            return;
        if (has_vectors())
            find_bias().read(memory);
        if (!has_bias_words()) {
            add_bias_terms(sum);
            return;
        }
        tgi_bias_words<Cols> words;
        words.take(memory, barrier);
        if (tgi_find_d_type(gemm.problem) == TG_TYPE_BF16)
            words.template add<TG_TYPE_BF16>(sum);
        else
            words.template add<TG_TYPE_FP16>(sum);
    }
};

/* Adds beta times C of FP32 by pairs of neighbours of a row, and reads as many at once as fit in
 * `Words` registers. */
template <int Words, int Count>
static __device__ __forceinline__ void
tgi_add_c_pairs(const tgi_gemm_args &gemm, const tgi_fragment_place &own, float (&sum)[Count])
{
    constexpr int turns = (Count + Words - 1) / Words, at_once = Count / 2 / turns;
    static_assert(Count % (4 * turns) == 0, "turns have as many columns");
    const float beta = static_cast<float>(gemm.problem.epilogue.beta);
    const tgi_layout &layout = gemm.problem.c;
    const float2 *first =
        static_cast<const float2 *>(gemm.c) + tgi_offset(layout, own.batch, own.row, own.col) / 2;
    const float2 *row[2] = {first, first + own.find_row(2) * layout.row / 2};
    int left = own.last_col;
#pragma unroll(Words < 64 ? 1 : turns)
    for (int done = 0; done < Count / 2; done += at_once, left -= at_once * 4) {
        float2 pair[at_once];
#pragma unroll
        for (int i = 0; i < at_once; i++)
            pair[i] = i / 2 * 8 < left ? row[i % 2][i / 2 * 4] : float2();
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            /* Opaque, so that the compiler reads no further pairs before these sums. */
            sum[2 * i] = tgi_make_opaque(TGI_FMA_FP32(beta, pair[i].x, sum[2 * i]));
            sum[2 * i + 1] = tgi_make_opaque(TGI_FMA_FP32(beta, pair[i].y, sum[2 * i + 1]));
        }
        row[0] += at_once * 2;
        row[1] += at_once * 2;
        if (turns > 1)
            tgi_rotate<2 * at_once>(sum);
    }
}

/* Adds beta times C, which takes up to `Words` registers. HasWords is 0 if rows of 16 bits never
 * come here. */
template <int Words, int HasWords, int Count>
static __device__ __forceinline__ void
tgi_add_tile_c(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile, float (&sum)[Count])
{
    const float beta = static_cast<float>(gemm.problem.epilogue.beta);
    const tg_type type = tgi_find_d_type(gemm.problem);
    if (beta == 0.0f)
        return;
    tgi_fragment_place own(gemm.problem, tile);
    if (type == TG_TYPE_FP32 && tgi_has_c_pairs(gemm, type)) {
        tgi_add_c_pairs<Words>(gemm, own, sum);
    } else if (HasWords && tgi_count_bytes(type) == 2 && gemm.problem.c.col == 1) {
        tgi_add_c_words<Words>(gemm, tile, sum);
    } else {
#pragma unroll 1
        for (int i = 0; i < Count; i += 8) {
            float c[8];
            tgi_read_elements(gemm.c, tgi_offset(gemm.problem.c, own.batch, own.row, own.col),
                              gemm.problem.c, tgi_fragment_elements{own}, type, c);
#pragma unroll
            for (int j = 0; j < 8; j++)
                sum[j] = TGI_FMA_FP32(beta, c[j], sum[j]);
            tgi_rotate<8>(sum);
            own.move(gemm.problem, 16);
        }
    }
}

/* Applies the activation. */
template <int Count>
static __device__ __forceinline__ void tgi_activate_tile(const tgi_gemm_args &gemm,
                                                         float (&sum)[Count])
{
    if (gemm.problem.epilogue.activation == TG_ACTIVATION_RELU) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_limit_below_fp32(sum[i], 0.0f);
    } else {
        tgi_activate(gemm.problem, sum);
    }
}

/* Adds the bias, and applies what comes between it and the activation. */
template <int Cols>
static __device__ __forceinline__ void tgi_add_terms(const tgi_tile_terms<Cols> &terms,
                                                     float (&sum)[Cols / 2])
{
    terms.add_bias(sum);
    if (tgi_has_further_operands) {
        const tgi_fragment_place own(terms.gemm.problem, terms.tile);
#pragma unroll
        for (int i = 0; i < Cols / 2; i++)
            sum[i] = tgi_apply_operands(terms.gemm, own.batch, own.row + own.find_row(i),
                                        own.col + own.find_col(i), sum[i]);
    }
}

#endif
