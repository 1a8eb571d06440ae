/*
 * Applies the epilogue to a warpgroup's whole tile, 64 rows, in registers. The code is unrolled as
 * far as registers would otherwise need computed indices. Loads wait long while TMA fills stages.
 * So a warp that does not multiply brings biases and scales to shared memory while the products are
 * summed, and all pairs of C are read at once. fragment_epilogue.cuh describes the places of the
 * sums.
 */
#ifndef TGI_WARPGROUP_EPILOGUE_CUH
#define TGI_WARPGROUP_EPILOGUE_CUH

#include "kernels/epilogue/tile_c.cuh"
#include "kernels/epilogue/fragment_output.h"
#include "kernels/ptx/named_barrier.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/shared_memory.cuh"

/* The terms of lines (rows or columns) of D that a lane reads for tgi_read_elements. Those from
 * `end` on lie outside. */
struct tgi_line_places {
    int lane, end;

    __device__ __forceinline__ int row(int) const
    {
        return 0;
    }

    __device__ __forceinline__ int col(int i) const
    {
        return lane + 32 * i;
    }

    __device__ __forceinline__ int is_inside(int i) const
    {
        return col(i) < end;
    }
};

/* Named barriers of the terms, one for each warpgroup that multiplies. The warpgroup and the warp
 * that brings terms meet at the first ones when the terms are there, at the others when they have
 * been used. */
#define TGI_TERMS_FULL 3
#define TGI_TERMS_USED 5
#define TGI_TERMS_THREADS 160

/* Waits until all warpgroups have used the terms. The warp that brings terms calls it. */
template <int Groups> static __device__ __forceinline__ void tgi_wait_for_release(void)
{
#pragma unroll
    for (int i = 0; i < Groups; i++)
        tgi_named_barrier_sync(TGI_TERMS_USED + i, TGI_TERMS_THREADS);
}

/* The terms of a tile of Rows x Cols. They lie in shared memory as FP32 numbers: scales of columns,
 * then scales of rows, then biases of columns or of rows. */
template <int Rows, int Cols> struct tgi_tile_terms {
    const tgi_gemm_args &gemm;
    tgi_cluster_tile tile;
    uint32_t memory;

    static constexpr int row_scales = 4 * Cols, biases = row_scales + 4 * Rows;
    static_assert(biases + 4 * (Rows < Cols ? Cols : Rows) <= TGI_TERM_BYTES,
                  "the terms have room");

    __device__ __forceinline__ int has_row_scales(void) const
    {
        return TGI_LEAST_D_BYTES == 1 && gemm.problem.epilogue.a_scale == TG_SCALE_VECTOR;
    }

    __device__ __forceinline__ int has_col_scales(void) const
    {
        return TGI_LEAST_D_BYTES == 1 && gemm.problem.epilogue.b_scale == TG_SCALE_VECTOR;
    }

    /* Brings Count terms of lines (rows or columns) of D from line `first` on, of which those from
     * line `end` on lie outside D. A warp calls it. */
    template <int Count>
    static __device__ __forceinline__ void bring_lines(const void *data, tg_type type, int first,
                                                       int64_t end, uint32_t target)
    {
        constexpr int at_once = Count < 128 ? (Count + 31) / 32 : 4; /* terms of a lane */
        const int count = static_cast<int>(min(end - first, static_cast<int64_t>(Count)));
#pragma unroll 1
        for (int done = 0; done < count; done += 32 * at_once) {
            const tgi_line_places places = {done + tgi_thread() % 32, count};
            float term[at_once];
            tgi_read_elements(data, first, {0, 1, 0}, places, type, term);
#pragma unroll
            for (int i = 0; i < at_once; i++)
                if (places.is_inside(i))
                    tgi_write_shared_4(target + places.col(i) * 4, term[i]);
        }
    }

    /* Brings the terms. A warp calls it when the terms of the tile before have been used. */
    __device__ __forceinline__ void bring(void) const
    {
        const tgi_problem &p = gemm.problem;
        const tg_type type = tgi_find_d_type(p);
        if (has_col_scales())
            bring_lines<Cols>(gemm.b_scale, TG_TYPE_FP32, tile.col, p.n, memory);
        if (has_row_scales())
            bring_lines<Rows>(gemm.a_scale, TG_TYPE_FP32, tile.row, p.m, memory + row_scales);
        if (p.epilogue.bias == TG_BIAS_COL)
            bring_lines<Cols>(gemm.bias, type, tile.col, p.n, memory + biases);
        else if (p.epilogue.bias == TG_BIAS_ROW)
            bring_lines<Rows>(gemm.bias, type, tile.row, p.m, memory + biases);
#pragma unroll
        for (int i = 0; i < Rows / 64; i++)
            tgi_named_barrier_arrive(TGI_TERMS_FULL + i, TGI_TERMS_THREADS);
    }

    /* Tells the warp that brings terms that warpgroup `group` has used these. If that warp does
     * nothing else, it waits there already, and the warpgroup meets it: racecheck does not see that
     * the last warp that only arrives has read before. */
    template <int IsMet> static __device__ __forceinline__ void release(int group)
    {
        if (IsMet)
            tgi_named_barrier_sync(TGI_TERMS_USED + group, TGI_TERMS_THREADS);
        else
            tgi_named_barrier_arrive(TGI_TERMS_USED + group, TGI_TERMS_THREADS);
    }

    /* Returns the address of the term of this thread's first row, or of its first columns. The
     * first warpgroup that multiplies is the block's second one. */
    static __device__ __forceinline__ uint32_t find_row(uint32_t rows)
    {
        const int thread = tgi_reread_thread() - 128;
        return rows + (thread / 32 * 16 + thread % 32 / 4) * 4;
    }

    static __device__ __forceinline__ uint32_t find_cols(uint32_t cols)
    {
        return cols + tgi_reread_thread() % 4 * 8;
    }

    /* Multiplies the sums by alpha and the scales of A and B. */
    __device__ __forceinline__ void scale(float (&sum)[Cols / 2]) const
    {
        const float alpha = static_cast<float>(gemm.problem.epilogue.alpha);
        if (TGI_LEAST_D_BYTES == 1 && (gemm.a_scale || gemm.b_scale)) {
            const uint32_t rows = find_row(memory + row_scales), cols = find_cols(memory);
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
        } else if (alpha != 1.0f) {
#pragma unroll
            for (int i = 0; i < Cols / 2; i++)
                sum[i] = TGI_MULTIPLY_FP32(alpha, sum[i]);
        }
    }

    __device__ __forceinline__ void add_bias(float (&sum)[Cols / 2]) const
    {
        const tg_bias kind = gemm.problem.epilogue.bias;
        if (kind == TG_BIAS_ROW) {
            const uint32_t rows = find_row(memory + biases);
            const float bias[2] = {tgi_read_shared_4(rows), tgi_read_shared_4(rows + 32)};
#pragma unroll
            for (int i = 0; i < Cols / 2; i++)
                sum[i] = tgi_add_bias_fp32(sum[i], bias[i / 2 % 2]);
        } else if (kind == TG_BIAS_COL) {
            const uint32_t cols = find_cols(memory + biases);
#pragma unroll
            for (int i = 0; i < Cols / 2; i += 4) {
                float bias[2];
                tgi_read_shared_8(cols + 8 * i, bias);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i + j] = tgi_make_opaque(tgi_add_bias_fp32(sum[i + j], bias[j % 2]));
            }
        }
    }
};

/* Applies the activation. */
template <int Count>
static __device__ __forceinline__ void tgi_activate_tile(const tgi_gemm_args &gemm,
                                                         float (&sum)[Count])
{
    if (gemm.problem.epilogue.activation == TG_ACTIVATION_RELU) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_activate_fp32(sum[i], TG_ACTIVATION_RELU);
    } else {
        tgi_activate(gemm.problem, sum);
    }
}

/* Applies the epilogue to the rows of warpgroup `group`, which begin at the tile's row. Another
 * warp brings the terms; IsMet is 1 if it does nothing else. C takes up to `Words` registers. */
template <int Words, int IsMet, int Rows, int Cols>
static __device__ __forceinline__ void tgi_finish_tile(const tgi_tile_terms<Rows, Cols> &terms,
                                                       int group, float (&sum)[Cols / 2])
{
    const tgi_gemm_args &gemm = terms.gemm;
    /* Without this barrier threads would read terms that have yet to be brought. */
    tgi_named_barrier_sync(TGI_TERMS_FULL + group, TGI_TERMS_THREADS);
    terms.scale(sum);
    tgi_add_tile_c<Words>(gemm, terms.tile, sum);
    terms.add_bias(sum);
    terms.template release<IsMet>(group);
    tgi_activate_tile(gemm, sum);
    tgi_scale_d(gemm, sum);
}

#endif
