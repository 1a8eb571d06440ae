/*
 * The epilogue of a warpgroup, 64 rows of D, that reads ahead: biases and scales while the products
 * are summed, and C of a fragment while the one before is finished. fragment_epilogue.cuh has the
 * epilogue that reads its terms when they are due, and says how fragments lie.
 */
#ifndef TGI_WARPGROUP_EPILOGUE_CUH
#define TGI_WARPGROUP_EPILOGUE_CUH

#include "kernels/epilogue/fragment_epilogue.cuh"
#include "kernels/epilogue/fragment_staging.cuh"
#include "kernels/epilogue/warpgroup_terms.h"
#include "kernels/ptx/barrier.cuh"

/* Returns 1 if C counts. */
static __device__ __forceinline__ int tgi_uses_c(const tgi_gemm_args &gemm)
{
    return static_cast<float>(gemm.problem.epilogue.beta) != 0.0f;
}

/* Returns the FP8 numbers in the lower two bytes as FP16. */
static __device__ __forceinline__ uint32_t tgi_decode_fp8_pair(tg_type type, uint32_t pair)
{
    /* E5M2 is the upper half of FP16. */
    return type == TG_TYPE_FP8_E4M3 ? tgi_decode_e4m3_pair(pair)
                                    : (pair & 0xff) << 8 | (pair & 0xff00) << 16;
}

/* Biases and scales by lines of D for 64 rows of a tile: of a thread's two rows, and of two columns
 * for each thread of the warpgroup. They are read when the tile begins, so that its products hide
 * their latency, which is long while TMA copies. Columns' terms go through shared memory to the
 * threads that need them. */
struct tgi_fragment_terms {
    float bias[2], row_scale[2], col_scale[2];

    __device__ __forceinline__ void read(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile)
    {
        const tgi_problem &p = gemm.problem;
        const tgi_epilogue &e = p.epilogue;
        const int thread = tgi_reread_thread() % 128;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t row =
                min(static_cast<int64_t>(tile.row + thread / 32 * 16 + thread % 32 / 4 + 8 * i),
                    p.m - 1);
            const int64_t col = min(static_cast<int64_t>(tile.col + 2 * thread + i), p.n - 1);
            bias[i] = e.bias == TG_BIAS_NONE
                          ? 0.0f
                          : tgi_read_element(gemm.bias, e.bias == TG_BIAS_ROW ? row : col,
                                             tgi_find_d_type(p));
            row_scale[i] = find_scale(gemm.a_scale, e.a_scale, row);
            col_scale[i] = find_scale(gemm.b_scale, e.b_scale, col);
        }
    }

    static __device__ __forceinline__ float find_scale(const float *scale, tg_scale kind,
                                                       int64_t line)
    {
        return TGI_LEAST_D_BYTES == 1 && scale ? scale[kind == TG_SCALE_VECTOR ? line : 0] : 1.0f;
    }

    /* Writes the terms of Cols columns, from column `first` of the tile on, to `memory`,
     * TGI_TERM_BYTES: the biases, then the scales. */
    template <int Cols> __device__ __forceinline__ void share(uint32_t memory, int first) const
    {
        const int place = tgi_reread_thread() % 128 - first / 2;
        if (place < 0 || place >= Cols / 2)
            return;
        tgi_write_shared_8(memory + place * 8, bias[0], bias[1]);
        if (TGI_LEAST_D_BYTES == 1)
            tgi_write_shared_8(memory + TGI_TERM_BYTES / 2 + place * 8, col_scale[0], col_scale[1]);
    }
};

/* Returns 1 if terms of columns count. */
static __device__ __forceinline__ int tgi_has_col_terms(const tgi_gemm_args &gemm)
{
    return gemm.problem.epilogue.bias == TG_BIAS_COL ||
           (TGI_LEAST_D_BYTES == 1 && (gemm.a_scale || gemm.b_scale));
}

/* Gives the terms of Cols columns, from column `first` of the tile on, to the threads of the
 * warpgroup by way of `memory`, which nobody reads any more. `barrier`: its named barrier. */
template <int Cols>
static __device__ __forceinline__ void tgi_share_terms(const tgi_gemm_args &gemm,
                                                       const tgi_fragment_terms &terms, int first,
                                                       uint32_t memory, int barrier)
{
    if (!tgi_has_col_terms(gemm))
        return;
    terms.share<Cols>(memory, first);
    /* Without the barrier threads would read terms that others have yet to write. */
    tgi_named_barrier_sync(barrier, 128);
}

/* C of 64 rows and 2 Count columns, of which a thread has Count elements: pairs of neighbours of a
 * row. What Words registers hold is read ahead, so that its latency passes while other sums are
 * finished: a pair of elements of 2 bytes or fewer in each, or an element of 4 bytes. The rest is
 * read when these have been added. */
template <int Count, int Words> struct tgi_fragment_c {
    uint32_t word[Words];

    /* Reads what is read ahead of C of the 64 rows from tile.row on. */
    __device__ __forceinline__ void read(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile)
    {
        const int bytes = tgi_count_bytes(tgi_find_d_type(gemm.problem));
        if (bytes == 4)
            read_pairs<uint2, uint32_t>(gemm, tile);
        else if (bytes == 2)
            read_pairs<uint32_t, uint16_t>(gemm, tile);
        else
            read_pairs<uint16_t, uint8_t>(gemm, tile);
    }

    /* Adds beta times C, which lies at the tile's place, to the sums. */
    __device__ __forceinline__ void add(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile,
                                        float (&sum)[Count])
    {
        const tg_type type = tgi_find_d_type(gemm.problem);
        if (type == TG_TYPE_FP32)
            add_all<TG_TYPE_FP32, uint2, uint32_t>(gemm, tile, sum);
        else if (type == TG_TYPE_BF16)
            add_all<TG_TYPE_BF16, uint32_t, uint16_t>(gemm, tile, sum);
        else if (type == TG_TYPE_FP16)
            add_all<TG_TYPE_FP16, uint32_t, uint16_t>(gemm, tile, sum);
        else if (type == TG_TYPE_FP8_E4M3)
            add_all<TG_TYPE_FP8_E4M3, uint16_t, uint8_t>(gemm, tile, sum);
        else
            add_all<TG_TYPE_FP8_E5M2, uint16_t, uint8_t>(gemm, tile, sum);
    }

    /* Pairs that the words hold. */
    template <class Element> static __host__ __device__ constexpr int count_pairs(void)
    {
        return sizeof(Element) == 4 ? Words / 2 : Words;
    }

    template <tg_type Type, class Pair, class Element>
    __device__ __forceinline__ void add_all(const tgi_gemm_args &gemm, tgi_cluster_tile tile,
                                            float (&sum)[Count])
    {
        constexpr int pairs = count_pairs<Element>();
        const float beta = static_cast<float>(gemm.problem.epilogue.beta);
#pragma unroll
        for (int first = 0; first < Count; first += 2 * pairs, tile.col += 4 * pairs) {
            if (first > 0)
                read_pairs<Pair, Element>(gemm, tile);
#pragma unroll
            for (int i = 0; i < pairs; i++) {
                float low, high;
                decode<Type>(i, low, high);
                sum[first + 2 * i] = TGI_FMA_FP32(beta, low, sum[first + 2 * i]);
                sum[first + 2 * i + 1] = TGI_FMA_FP32(beta, high, sum[first + 2 * i + 1]);
            }
        }
    }

    template <tg_type Type>
    __device__ __forceinline__ void decode(int i, float &low, float &high) const
    {
        if (Type == TG_TYPE_FP32) {
            low = __uint_as_float(word[2 * i]);
            high = __uint_as_float(word[2 * i + 1]);
        } else if (Type == TG_TYPE_BF16) {
            low = __uint_as_float(word[i] << 16);
            high = __uint_as_float(word[i] & 0xffff0000u);
        } else {
            const uint32_t pair = tgi_is_fp8(Type) ? tgi_decode_fp8_pair(Type, word[i]) : word[i];
            low = tgi_decode_fp16(static_cast<uint16_t>(pair));
            high = tgi_decode_fp16(static_cast<uint16_t>(pair >> 16));
        }
    }

    /* Fills the words from the tile's place on. Elements outside D are not read. */
    template <class Pair, class Element>
    __device__ __forceinline__ void read_pairs(const tgi_gemm_args &gemm,
                                               const tgi_cluster_tile &tile)
    {
        constexpr int bytes = sizeof(Element), pairs = count_pairs<Element>();
        const tgi_problem &p = gemm.problem;
        const int lane = tgi_reread_thread() % 32;
        const int first_row = tile.row + tgi_reread_thread() / 32 % 4 * 16 + lane / 4;
        const int first_col = tile.col + lane % 4 * 2;
        const int last_col = static_cast<int>(p.n) - 1 - first_col;
        const char *source[2];
#pragma unroll
        for (int h = 0; h < 2; h++)
            source[h] =
                static_cast<const char *>(gemm.c) +
                tgi_offset(p.c, tile.batch, min(static_cast<int64_t>(first_row + 8 * h), p.m - 1),
                           first_col) *
                    bytes;
        const int are_pairs = p.c.col == 1 && p.c.row % 2 == 0 && p.c.batch % 2 == 0 &&
                              p.n % 2 == 0 &&
                              reinterpret_cast<uintptr_t>(gemm.c) % (2 * bytes) == 0;
        if (are_pairs) {
#pragma unroll
            for (int i = 0; i < pairs; i++)
                if (i / 2 * 8 <= last_col)
                    set(i, reinterpret_cast<const Pair *>(source[i % 2])[i / 2 * 4]);
        } else {
            read_elements<Element>(source, p.c.col, last_col);
        }
    }

    template <class Element>
    __device__ __forceinline__ void read_elements(const char *const (&source)[2], int64_t stride,
                                                  int last_col)
    {
        constexpr int pairs = count_pairs<Element>();
        Element low[pairs], high[pairs];
#pragma unroll
        for (int i = 0; i < pairs; i++) {
            const Element *first =
                reinterpret_cast<const Element *>(source[i % 2]) + i / 2 * 8 * stride;
            low[i] = i / 2 * 8 <= last_col ? first[0] : 0;
            high[i] = i / 2 * 8 + 1 <= last_col ? first[stride] : 0;
        }
#pragma unroll
        for (int i = 0; i < pairs; i++) {
            if (sizeof(Element) == 4)
                set(i, make_uint2(low[i], high[i]));
            else
                set(i, low[i] | static_cast<uint32_t>(high[i]) << 8 * sizeof(Element) % 32);
        }
    }

    __device__ __forceinline__ void set(int i, uint2 pair)
    {
        word[2 * i] = pair.x;
        word[2 * i + 1] = pair.y;
    }

    __device__ __forceinline__ void set(int i, uint32_t pair)
    {
        word[i] = pair;
    }
};

/* Multiplies sums by alpha and by the scales of A and B; col_scales: those of the thread's columns
 * in shared memory. */
template <int Count>
static __device__ __forceinline__ void tgi_scale_fragment(const tgi_gemm_args &gemm,
                                                          const tgi_fragment_terms &terms,
                                                          uint32_t col_scales, float (&sum)[Count])
{
    const float alpha = static_cast<float>(gemm.problem.epilogue.alpha);
    if (TGI_LEAST_D_BYTES == 1 && (gemm.a_scale || gemm.b_scale)) {
#pragma unroll
        for (int i = 0; i < Count; i++) {
            const float b_scale = tgi_read_shared_4(col_scales + i / 4 * 32 + i % 2 * 4);
            sum[i] = TGI_MULTIPLY_FP32(
                tgi_scale_alpha_fp32(alpha, terms.row_scale[i / 2 % 2], b_scale), sum[i]);
        }
    } else if (alpha != 1.0f) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = TGI_MULTIPLY_FP32(alpha, sum[i]);
    }
}

/* Adds the bias of rows, or of the thread's columns, which lie in shared memory. */
template <int Count>
static __device__ __forceinline__ void tgi_add_bias(const tgi_gemm_args &gemm,
                                                    const tgi_fragment_terms &terms,
                                                    uint32_t col_biases, float (&sum)[Count])
{
    const tg_bias kind = gemm.problem.epilogue.bias;
    if (kind == TG_BIAS_ROW) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_add_bias_fp32(sum[i], terms.bias[i / 2 % 2]);
    } else if (kind == TG_BIAS_COL) {
#pragma unroll
        for (int i = 0; i < Count; i += 4) {
            float bias[2];
            tgi_read_shared_8(col_biases + 8 * i, bias);
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[i + j] = tgi_add_bias_fp32(sum[i + j], bias[j % 2]);
        }
    }
}

/* Applies alpha and the scales of A and B, beta and C, and the bias to the sums of a fragment. The
 * terms of its columns lie in `memory`. */
template <int Count, int Words>
static __device__ __forceinline__ void
tgi_apply_terms(const tgi_gemm_args &gemm, const tgi_fragment_terms &terms,
                const tgi_cluster_tile &tile, tgi_fragment_c<Count, Words> &c, uint32_t memory,
                float (&sum)[Count])
{
    const uint32_t own = memory + tgi_reread_thread() % 4 * 8;
    tgi_scale_fragment(gemm, terms, own + TGI_TERM_BYTES / 2, sum);
    if (tgi_uses_c(gemm))
        c.add(gemm, tile, sum);
    tgi_add_bias(gemm, terms, own, sum);
}

/* Applies the activation and D's scale. */
template <int Count>
static __device__ __forceinline__ void tgi_activate(const tgi_gemm_args &gemm, float (&sum)[Count])
{
    const tg_activation activation = gemm.problem.epilogue.activation;
    const int is_narrow = tgi_is_d_narrow(gemm.problem);
    if (activation == TG_ACTIVATION_RELU) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_activate_fp32(sum[i], TG_ACTIVATION_RELU);
    } else if (activation == TG_ACTIVATION_GELU_ERF) {
        tgi_activate_sums<TG_ACTIVATION_GELU_ERF>(is_narrow, sum);
    } else if (activation == TG_ACTIVATION_GELU_TANH) {
        tgi_activate_sums<TG_ACTIVATION_GELU_TANH>(is_narrow, sum);
    } else if (activation == TG_ACTIVATION_SILU) {
        tgi_activate_sums<TG_ACTIVATION_SILU>(is_narrow, sum);
    }
    if (TGI_LEAST_D_BYTES == 1 && gemm.d_scale) {
        const float d_scale = *gemm.d_scale;
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_scale_d_fp32(sum[i], d_scale);
    }
}

/* Takes Cols columns of sums that tgi_put_fp32 has put into one box. */
template <int Cols>
static __device__ __forceinline__ void tgi_take_fp32(uint32_t box, float (&sum)[Cols / 2])
{
    const int lane = tgi_reread_thread() % 32, line = tgi_reread_thread() / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < Cols / 2; i += 2) {
        float pair[2];
        tgi_read_shared_8(tgi_find_unit(box, line + i / 2 % 2 * 8, i / 4 * 2 + lane % 4 / 2) +
                              lane % 2 * 8,
                          pair);
        sum[i] = pair[0];
        sum[i + 1] = pair[1];
    }
}

#endif
