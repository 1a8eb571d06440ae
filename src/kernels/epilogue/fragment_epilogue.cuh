/*
 * Applies the epilogue to fragments, which are the sums of 64 rows of D as the matrix instruction
 * leaves them in the registers of a warpgroup (ptx/warpgroup_mma.cuh). A warp has 16 of the 64
 * rows. Sum 4 t + 2 h + j belongs to column 8 t + 2 (lane % 4) + j and to row lane / 4 + 8 h of the
 * 16.
 */
#ifndef TGI_WGMMA_APPLY_CUH
#define TGI_WGMMA_APPLY_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/ptx/global_memory.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/schedule/tile.cuh"

/* The place of a thread's next sums has their first row and column in D, and the distances to the
 * last row and column of D. These stand for rows and columns outside D, whose sums are not
 * stored. */
struct tgi_fragment_place {
    int64_t row, col;
    int batch, last_row, last_col;

    __device__ __forceinline__ tgi_fragment_place(const tgi_problem &p,
                                                  const tgi_cluster_tile &tile)
    {
        const int lane = tgi_reread_thread() % 32, warp = tgi_reread_thread() / 32 % 4;
        batch = tile.batch;
        row = min(static_cast<int64_t>(tile.row + warp * 16 + lane / 4), p.m - 1);
        col = min(static_cast<int64_t>(tile.col + lane % 4 * 2), p.n - 1);
        last_row = static_cast<int>(p.m - 1 - row);
        last_col = static_cast<int>(p.n - 1 - col);
    }

    /* Moves the place by some columns. */
    __device__ __forceinline__ void move(const tgi_problem &p, int cols)
    {
        const int64_t next = min(col + cols, p.n - 1);
        last_col -= static_cast<int>(next - col);
        col = next;
    }

    __device__ __forceinline__ int find_row(int i) const
    {
        return min(i / 2 % 2 * 8, last_row);
    }

    __device__ __forceinline__ int find_col(int i) const
    {
        return min(i / 4 * 8 + i % 2, last_col);
    }
};

/* Rotates all sums by Group places: the first ones move to the end. Registers take no computed
 * index, so a loop over a few sums at a time rotates them to the front. */
template <int Group, int Count>
static __device__ __forceinline__ void tgi_rotate(float (&sum)[Count])
{
    float first[Group];
#pragma unroll
    for (int i = 0; i < Count; i++) {
        if (i < Group)
            first[i] = sum[i];
        sum[i] = i + Group < Count ? sum[i + Group] : first[i + Group - Count];
    }
}

/* Returns 1 if two neighbours of a row of C can be read at once, at even columns. */
static __device__ __forceinline__ int tgi_has_c_pairs(const tgi_gemm_args &gemm, tg_type type)
{
    const tgi_problem &p = gemm.problem;
    const int pair_bytes = type == TG_TYPE_FP32 ? 8 : 4;
    return !tgi_is_fp8(type) && p.c.col == 1 && p.c.row % 2 == 0 && p.c.batch % 2 == 0 &&
           p.n % 2 == 0 && reinterpret_cast<uintptr_t>(gemm.c) % pair_bytes == 0;
}

/* Returns two neighbours of a row. The first lies in the low half. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_decode_pair(uint32_t bits, float (&pair)[2])
{
    if (Type == TG_TYPE_BF16) {
        pair[0] = __uint_as_float(bits << 16);
        pair[1] = __uint_as_float(bits & 0xffff0000u);
    } else {
        pair[0] = tgi_decode_fp16(static_cast<uint16_t>(bits));
        pair[1] = tgi_decode_fp16(static_cast<uint16_t>(bits >> 16));
    }
}

template <tg_type>
static __device__ __forceinline__ void tgi_decode_pair(uint2 bits, float (&pair)[2])
{
    pair[0] = __uint_as_float(bits.x);
    pair[1] = __uint_as_float(bits.y);
}

/* The places of a thread's next sums for tgi_read_elements. */
struct tgi_fragment_elements {
    const tgi_fragment_place &own;

    __device__ __forceinline__ int row(int i) const
    {
        return own.find_row(i);
    }

    __device__ __forceinline__ int col(int i) const
    {
        return own.find_col(i);
    }

    __device__ __forceinline__ int is_inside(int) const
    {
        return 1;
    }
};

/* Reads the first Group elements of C. All loads are issued before a value is used. */
template <int Group>
static __device__ __forceinline__ void tgi_read_c(const tgi_gemm_args &gemm,
                                                  const tgi_fragment_place &own, tg_type type,
                                                  float (&c)[Group])
{
    const tgi_layout &layout = gemm.problem.c;
    const int64_t first = tgi_offset(layout, own.batch, own.row, own.col);
    if (!tgi_has_c_pairs(gemm, type)) {
        tgi_read_elements(gemm.c, first, layout, tgi_fragment_elements{own}, type, c);
        return;
    }
#pragma unroll
    for (int i = 0; i < Group; i += 2) {
        const int64_t at =
            first + own.find_row(i) * layout.row + min(own.find_col(i), own.last_col - 1);
        uint2 pair;
        if (type == TG_TYPE_FP32)
            pair = reinterpret_cast<const uint2 *>(gemm.c)[at / 2];
        else
            pair.x = static_cast<const uint32_t *>(gemm.c)[at / 2];
        c[i] = __uint_as_float(pair.x);
        c[i + 1] = __uint_as_float(pair.y);
    }
    if (type == TG_TYPE_FP32)
        return;
#pragma unroll
    for (int i = 0; i < Group; i += 2) {
        float pair[2];
        if (type == TG_TYPE_BF16)
            tgi_decode_pair<TG_TYPE_BF16>(__float_as_uint(c[i]), pair);
        else
            tgi_decode_pair<TG_TYPE_FP16>(__float_as_uint(c[i]), pair);
        c[i] = pair[0];
        c[i + 1] = pair[1];
    }
}

/* The biases and scales of lines of D: those of a thread's two rows, and those of columns 2 lane
 * and 2 lane + 1 of the 64, which other threads fetch by shuffles. Biases are of rows or of
 * columns. They are decoded at their use, so that other loads may follow before they have
 * arrived. */
struct tgi_fragment_vectors {
    uint32_t bias_bits[2];
    float row_scale[2], col_scale[2];

    __device__ __forceinline__ tgi_fragment_vectors(void)
    {
    }

    __device__ __forceinline__ tgi_fragment_vectors(const tgi_gemm_args &gemm,
                                                    const tgi_cluster_tile &tile)
    {
        const tgi_problem &p = gemm.problem;
        const tgi_epilogue &e = p.epilogue;
        const tgi_fragment_place own(p, tile);
        int64_t row[2], col[2], line[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            row[i] = own.row + own.find_row(2 * i);
            col[i] =
                min(static_cast<int64_t>(tile.col) + tgi_reread_thread() % 32 * 2 + i, p.n - 1);
            line[i] = e.bias == TG_BIAS_ROW ? row[i] : col[i];
            bias_bits[i] = 0;
        }
        if (e.bias != TG_BIAS_NONE)
            tgi_read_bits(gemm.bias, line, tgi_find_d_type(p), bias_bits);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            row_scale[i] = find_scale(gemm.a_scale, e.a_scale, row[i]);
            col_scale[i] = find_scale(gemm.b_scale, e.b_scale, col[i]);
        }
    }

    static __device__ __forceinline__ float find_scale(const float *scale, tg_scale kind,
                                                       int64_t line)
    {
        return TGI_LEAST_D_BYTES == 1 && scale ? scale[kind == TG_SCALE_VECTOR ? line : 0] : 1.0f;
    }
};

/* Applies alpha, beta, C and the bias to the first Group sums, which begin at column `col` of the
 * 64. */
template <int Group, int Count>
static __device__ __forceinline__ void
tgi_apply_linear(const tgi_gemm_args &gemm, const tgi_fragment_place &own,
                 const tgi_fragment_vectors &vectors, const float (&bias)[2], int col, tg_type type,
                 float (&sum)[Count])
{
    const tgi_epilogue &epilogue = gemm.problem.epilogue;
    const int has_scales = TGI_LEAST_D_BYTES == 1 && (gemm.a_scale || gemm.b_scale);
    float c[Group] = {};
    if (epilogue.beta != 0.0)
        tgi_read_c(gemm, own, type, c);
#pragma unroll
    for (int i = 0; i < Group; i++) {
        const int h = i / 2 % 2, j = i % 2;
        /* Lane `lane` has the terms of this column. */
        const int lane = (col + i / 4 * 8) / 2 + tgi_reread_thread() % 4;
        const float col_bias = __shfl_sync(~0u, bias[j], lane);
        float alpha = static_cast<float>(epilogue.alpha);
        if (has_scales)
            alpha = tgi_scale_alpha_fp32(alpha, vectors.row_scale[h],
                                         __shfl_sync(~0u, vectors.col_scale[j], lane));
        const tgi_terms_fp32 terms = {alpha, c[i],
                                      epilogue.bias == TG_BIAS_ROW ? bias[h] : col_bias};
        sum[i] = tgi_combine_fp32(&epilogue, &terms, sum[i]);
        if (tgi_has_further_operands)
            sum[i] = tgi_apply_operands(gemm, own.batch, own.row + own.find_row(i),
                                        own.col + own.find_col(i), sum[i]);
        if (epilogue.activation == TG_ACTIVATION_RELU)
            sum[i] = tgi_activate_fp32(sum[i], TG_ACTIVATION_RELU);
    }
}

/* Applies an activation that takes many instructions, to some sums at a time. Each iteration of a
 * loop moves all sums, but code that runs once a tile is waited for. A loop in the shorter form
 * therefore has two iterations, each for half of the sums, and one in the longer form more. */
template <tg_activation Kind, int Count>
static __device__ __forceinline__ void tgi_activate_sums(int is_narrow, float (&sum)[Count])
{
    constexpr int few = Count < 64 ? 4 : 8, many = Count < 16 ? Count : Count / 2, near = 16;
    if (is_narrow) {
#pragma unroll 1
        for (int i = 0; i < Count; i += many) {
#pragma unroll
            for (int first = 0; first < many; first += near) {
                /* The compiler moves no instructions across this barrier, which saves registers. */
                __syncwarp();
#pragma unroll
                for (int j = first; j < min(first + near, many); j++)
                    sum[j] = tgi_activate_narrow(sum[j], Kind);
            }
            if (many < Count)
                tgi_rotate<many>(sum);
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < Count; i += few) {
#pragma unroll
            for (int j = 0; j < few; j++)
                sum[j] = tgi_activate_fp32(sum[j], Kind);
            tgi_rotate<few>(sum);
        }
    }
}

/* Applies an activation other than RELU. */
template <int Count>
static __device__ __forceinline__ void tgi_activate(const tgi_problem &problem, float (&sum)[Count])
{
    const tg_activation activation = problem.epilogue.activation;
    const int is_narrow = tgi_is_d_narrow(problem);
    if (activation == TG_ACTIVATION_GELU_ERF)
        tgi_activate_sums<TG_ACTIVATION_GELU_ERF>(is_narrow, sum);
    else if (activation == TG_ACTIVATION_GELU_TANH)
        tgi_activate_sums<TG_ACTIVATION_GELU_TANH>(is_narrow, sum);
    else if (activation == TG_ACTIVATION_SILU)
        tgi_activate_sums<TG_ACTIVATION_SILU>(is_narrow, sum);
}

/* Multiplies by D's scale, if it has one. */
template <int Count>
static __device__ __forceinline__ void tgi_scale_d(const tgi_gemm_args &gemm, float (&sum)[Count])
{
    if (TGI_LEAST_D_BYTES > 1 || !gemm.d_scale)
        return;
    const float d_scale = *gemm.d_scale;
#pragma unroll
    for (int i = 0; i < Count; i++)
        sum[i] = tgi_scale_d_fp32(sum[i], d_scale);
}

/* Returns 1 if the epilogue has anything before GELU or SILU. */
static __device__ __forceinline__ int tgi_has_linear(const tgi_gemm_args &gemm)
{
    const tgi_epilogue &e = gemm.problem.epilogue;
    return tgi_has_further_operands || e.alpha != 1.0 || e.beta != 0.0 || e.bias != TG_BIAS_NONE ||
           e.activation == TG_ACTIVATION_RELU ||
           (TGI_LEAST_D_BYTES == 1 && (gemm.a_scale || gemm.b_scale));
}

/* Applies alpha, beta, C, bias, activation and D's scale to the sums of 64 rows of up to 64
 * columns, which begin at column `first` of the 64 that the vectors have. C is read here. */
template <int Count>
static __device__ __forceinline__ void
tgi_apply_epilogue(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile,
                   const tgi_fragment_vectors &vectors, float (&sum)[Count], int first = 0)
{
    constexpr int group = Count < 8 ? Count : 8;
    tgi_fragment_place own(gemm.problem, tile);
    const tg_type type = tgi_find_d_type(gemm.problem);
    const float bias[2] = {tgi_decode_element(vectors.bias_bits[0], type),
                           tgi_decode_element(vectors.bias_bits[1], type)};
    const int has_linear = tgi_has_linear(gemm);
#pragma unroll 1
    for (int i = 0; has_linear && i < Count; i += group) {
        tgi_apply_linear<group>(gemm, own, vectors, bias, first + 2 * i, type, sum);
        tgi_rotate<group>(sum);
        own.move(gemm.problem, group * 2);
    }
    tgi_activate(gemm.problem, sum);
    tgi_scale_d(gemm, sum);
}

/* Prefetches to L2 what the epilogue will read of C for a warpgroup's rows of a tile, 128 bytes at
 * a time, if its rows are contiguous. The last cache line of an unaligned row is left out. */
static __device__ __forceinline__ void tgi_fetch_c(const tgi_gemm_args &gemm,
                                                   const tgi_cluster_tile &tile, int cols)
{
    const tgi_problem &p = gemm.problem;
    const int elem_bytes = tgi_count_bytes(tgi_find_d_type(p)), thread = tgi_reread_thread() % 128;
    const int64_t end_col = min(static_cast<int64_t>(tile.col + cols), p.n);
    const int64_t row = tile.row + thread / 2;
    if (p.epilogue.beta == 0.0 || p.c.col != 1 || row >= p.m)
        return;
#pragma unroll 1
    for (int64_t col = tile.col + thread % 2 * (128 / elem_bytes); col < end_col;
         col += 256 / elem_bytes)
        tgi_prefetch(static_cast<const char *>(gemm.c) +
                     tgi_offset(p.c, tile.batch, row, col) * elem_bytes);
}

#endif
