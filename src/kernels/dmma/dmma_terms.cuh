/*
 * Stores a tile of FP64 through an epilogue. A thread reads C at several rows before it finishes
 * one, and activates several sums at once, because the instructions of a single sum wait for each
 * other.
 */
#ifndef TGI_DMMA_TERMS_CUH
#define TGI_DMMA_TERMS_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/schedule/tile.cuh"

struct tgi_fp64_group {
    double value[2];
};

/* Activates several sums, as tgi_call_activation activates one. */
static __device__ __noinline__ tgi_fp64_group tgi_call_fp64_activations(tgi_fp64_group sums,
                                                                        tg_activation activation)
{
    sums.value[0] = tgi_activate_fp64(sums.value[0], activation);
    sums.value[1] = tgi_activate_fp64(sums.value[1], activation);
    return sums;
}

/* Stores what tgi_store_tile stores. */
template <int Rows, int Cols, int Pitch, int Threads>
static __device__ __forceinline__ void
tgi_store_terms(const tgi_gemm_args &args, const tgi_block_tile &tile, const double *sums)
{
    static_assert(Threads % Cols == 0, "a thread keeps to its column");
    constexpr int rows_apart = Threads / Cols, own_rows = Rows / rows_apart;
    constexpr int at_once = own_rows < 8 ? own_rows : 8;
    const tgi_problem &p = args.problem;
    const tgi_epilogue &e = p.epilogue;
    const int rows = tgi_clamp_count(p.m - tile.row, Rows);
    const int col = threadIdx.x % Cols;
    if (col >= p.n - tile.col)
        return;
    const double *col_bias = static_cast<const double *>(args.bias) + tile.col + col;
    const double shared_bias = e.bias == TG_BIAS_COL ? *col_bias : 0.0;
#pragma unroll 1
    for (int first = threadIdx.x / Cols; first < rows; first += at_once * rows_apart) {
        const tgi_column_places places = {first, rows_apart, rows};
        double c[at_once] = {}, bias[at_once], sum[at_once];
        if (e.beta != 0.0)
            tgi_read_elements(args.c, tgi_offset(p.c, tile.batch, tile.row, tile.col + col), p.c,
                              places, p.d_type, c);
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            bias[i] = shared_bias;
            sum[i] = sums[min(places.row(i), Rows - 1) * Pitch + col];
        }
        if (e.bias == TG_BIAS_ROW)
            tgi_read_elements(args.bias, tile.row, {1, 0, 0}, places, p.d_type, bias);
        tgi_combine_elements(args, 0, 0, places, c, bias, sum);
#pragma unroll
        for (int i = 0; i < at_once; i++)
            if (tgi_has_further_operands && places.is_inside(i))
                sum[i] = tgi_apply_operands(args, tile.batch, tile.row + places.row(i),
                                            tile.col + col, sum[i]);
        if (e.activation == TG_ACTIVATION_RELU) {
#pragma unroll
            for (int i = 0; i < at_once; i++)
                sum[i] = tgi_limit_sum(sum[i]);
        } else if (e.activation != TG_ACTIVATION_NONE) {
#pragma unroll
            for (int i = 0; i < at_once; i += 2) {
                tgi_fp64_group group = {{sum[i], sum[i + 1]}};
                group = tgi_call_fp64_activations(group, e.activation);
                sum[i] = group.value[0];
                sum[i + 1] = group.value[1];
            }
        }
        tgi_write_elements(args, tgi_offset(p.d, tile.batch, tile.row, tile.col + col), places,
                           sum);
    }
}

#endif
