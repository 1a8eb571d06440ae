/*
 * The epilogue on fragments: the sums of 64 rows of D as the matrix instruction leaves them in the
 * registers of a warpgroup (ptx/warpgroup_mma.cuh). A warp has 16 of the 64 rows. Sum 4 t + 2 h + j
 * belongs to row lane / 4 + 8 h of the 16, and to column 8 t + 2 (lane % 4) + j.
 */
#ifndef TGI_WGMMA_APPLY_CUH
#define TGI_WGMMA_APPLY_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/epilogue/fragment_output.h"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/global_memory.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/schedule/cluster_tiles.cuh"

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

/* Rotates all sums by Step places: the first ones move to the end. Registers take no computed
 * index, so a loop over a few sums at a time rotates them to the front. */
template <int Step, int Count>
static __device__ __forceinline__ void tgi_rotate(float (&sum)[Count])
{
    float first[Step];
#pragma unroll
    for (int i = 0; i < Count; i++) {
        if (i < Step)
            first[i] = sum[i];
        sum[i] = i + Step < Count ? sum[i + Step] : first[i + Step - Count];
    }
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
    if (tgi_has_col_terms(gemm))
        terms.share<Cols>(memory, first);
    /* Without the barrier threads would read terms that others have yet to write. */
    tgi_named_barrier_sync(barrier, 128);
}

/* C of 64 rows and 2 Count columns, of which a thread has Count elements: pairs of neighbours of a
 * row, as they lie in memory. It is read ahead, so that its latency passes while other sums are
 * finished. */
template <int Count> struct tgi_fragment_c {
    uint2 c[Count / 2];

    /* Reads C of the 64 rows from tile.row on. Elements outside D are not read. */
    __device__ __forceinline__ void read(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile)
    {
        const tgi_problem &p = gemm.problem;
        const int lane = tgi_reread_thread() % 32;
        const int first_row = tile.row + tgi_reread_thread() / 32 % 4 * 16 + lane / 4;
        const tg_type type = tgi_find_d_type(p);
        const int bytes = tgi_count_bytes(type);
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
        if (are_pairs && bytes == 4)
            read_pairs<uint2>(source, last_col);
        else if (are_pairs && bytes == 2)
            read_pairs<uint32_t>(source, last_col);
        else if (bytes == 4)
            read_elements<uint32_t>(source, p.c.col, last_col);
        else if (bytes == 2)
            read_elements<uint16_t>(source, p.c.col, last_col);
        else
            read_elements<uint8_t>(source, p.c.col, last_col);
    }

    template <class Pair>
    __device__ __forceinline__ void read_pairs(const char *const (&source)[2], int last_col)
    {
#pragma unroll
        for (int i = 0; i < Count / 2; i++)
            if (i / 2 * 8 <= last_col)
                set(c[i], reinterpret_cast<const Pair *>(source[i % 2])[i / 2 * 4]);
    }

    template <class Element>
    __device__ __forceinline__ void read_elements(const char *const (&source)[2], int64_t stride,
                                                  int last_col)
    {
        Element low[Count / 2], high[Count / 2];
#pragma unroll
        for (int i = 0; i < Count / 2; i++) {
            const Element *first =
                reinterpret_cast<const Element *>(source[i % 2]) + i / 2 * 8 * stride;
            low[i] = i / 2 * 8 <= last_col ? first[0] : 0;
            high[i] = i / 2 * 8 + 1 <= last_col ? first[stride] : 0;
        }
#pragma unroll
        for (int i = 0; i < Count / 2; i++) {
            c[i].x = sizeof(Element) == 4 ? low[i] : low[i] | high[i] << 8 * sizeof(Element) % 32;
            c[i].y = sizeof(Element) == 4 ? high[i] : 0;
        }
    }

    static __device__ __forceinline__ void set(uint2 &pair, uint2 value)
    {
        pair = value;
    }

    static __device__ __forceinline__ void set(uint2 &pair, uint32_t value)
    {
        pair.x = value;
    }

    /* Adds beta times C to the sums. */
    __device__ __forceinline__ void add(tg_type type, float beta, float (&sum)[Count]) const
    {
        if (type == TG_TYPE_FP32) {
#pragma unroll
            for (int i = 0; i < Count / 2; i++)
                add_pair(beta, __uint_as_float(c[i].x), __uint_as_float(c[i].y), sum + 2 * i);
        } else if (type == TG_TYPE_BF16) {
#pragma unroll
            for (int i = 0; i < Count / 2; i++)
                add_pair(beta, __uint_as_float(c[i].x << 16), __uint_as_float(c[i].x & 0xffff0000u),
                         sum + 2 * i);
        } else {
#pragma unroll
            for (int i = 0; i < Count / 2; i++) {
                const uint32_t pair = tgi_is_fp8(type) ? tgi_decode_fp8_pair(type, c[i].x) : c[i].x;
                add_pair(beta, tgi_decode_fp16(static_cast<uint16_t>(pair)),
                         tgi_decode_fp16(static_cast<uint16_t>(pair >> 16)), sum + 2 * i);
            }
        }
    }

    static __device__ __forceinline__ void add_pair(float beta, float low, float high, float *sum)
    {
        sum[0] = TGI_FMA_FP32(beta, low, sum[0]);
        sum[1] = TGI_FMA_FP32(beta, high, sum[1]);
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
template <int Count>
static __device__ __forceinline__ void
tgi_apply_linear(const tgi_gemm_args &gemm, const tgi_fragment_terms &terms,
                 const tgi_fragment_c<Count> &c, uint32_t memory, float (&sum)[Count])
{
    const uint32_t own = memory + tgi_reread_thread() % 4 * 8;
    tgi_scale_fragment(gemm, terms, own + TGI_TERM_BYTES / 2, sum);
    if (tgi_uses_c(gemm))
        c.add(tgi_find_d_type(gemm.problem), static_cast<float>(gemm.problem.epilogue.beta), sum);
    tgi_add_bias(gemm, terms, own, sum);
}

/* Applies an activation that takes many instructions, to few sums at a time. */
template <tg_activation Kind, int Count>
static __device__ __forceinline__ void tgi_activate_sums(int is_narrow, float (&sum)[Count])
{
    constexpr int step = Count < 8 ? Count : 8;
#pragma unroll 1
    for (int i = 0; i < Count; i += step) {
        if (is_narrow) {
#pragma unroll
            for (int j = 0; j < step; j++)
                sum[j] = tgi_activate_narrow(sum[j], Kind);
        } else {
#pragma unroll
            for (int j = 0; j < step; j++)
                sum[j] = tgi_activate_fp32(sum[j], Kind);
        }
        tgi_rotate<step>(sum);
    }
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

/* Prefetches to L2 a warpgroup's rows of C, 128 bytes at a time, if they are contiguous. The last
 * cache line of an unaligned row is left out. */
static __device__ __forceinline__ void tgi_fetch_c(const tgi_gemm_args &gemm,
                                                   const tgi_cluster_tile &tile, int cols)
{
    const tgi_problem &p = gemm.problem;
    const int elem_bytes = tgi_count_bytes(tgi_find_d_type(p));
    const int thread = tgi_reread_thread() % 128;
    const int64_t end_col = min(static_cast<int64_t>(tile.col + cols), p.n);
    const int64_t row = tile.row + thread / 2;
    if (!tgi_uses_c(gemm) || p.c.col != 1 || row >= p.m)
        return;
#pragma unroll 1
    for (int64_t col = tile.col + thread % 2 * (128 / elem_bytes); col < end_col;
         col += 256 / elem_bytes)
        tgi_prefetch(static_cast<const char *>(gemm.c) +
                     tgi_offset(p.c, tile.batch, row, col) * elem_bytes);
}

#endif
