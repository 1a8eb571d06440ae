/*
 * The epilogue of family batch on a tile of sums in registers. Each bias is read once a tile.
 */
#ifndef TGI_BATCH_FINISH_CUH
#define TGI_BATCH_FINISH_CUH

#include "kernels/epilogue/element_epilogue.cuh"

/* Reads element `index` of C or of the bias of a sum of type T. */
template <typename T>
static __device__ __forceinline__ T tgi_read_term(const tgi_problem &problem, const void *data,
                                                  int64_t index)
{
    if constexpr (sizeof(T) == 8)
        return static_cast<const double *>(data)[index];
    else
        return tgi_read_element(data, index, problem.d_type);
}

static __device__ __forceinline__ float tgi_combine_terms(const tgi_epilogue &epilogue, float c,
                                                          float bias, float sum)
{
    const tgi_terms_fp32 terms = {static_cast<float>(epilogue.alpha), c, bias};
    return tgi_combine_fp32(&epilogue, &terms, sum);
}

static __device__ __forceinline__ double tgi_combine_terms(const tgi_epilogue &epilogue, double c,
                                                           double bias, double sum)
{
    const tgi_terms_fp64 terms = {epilogue.alpha, c, bias};
    return tgi_combine_fp64(&epilogue, &terms, sum);
}

/* Applies the epilogue to sums of rows row[] and columns col[] of entry `batch`. They lie in D. */
template <typename T, int Rows, int Cols>
static __device__ __forceinline__ void
tgi_finish_sums(const tgi_gemm_args &args, int64_t batch, const int (&row)[Rows],
                const int (&col)[Cols], T (&sums)[Rows][Cols])
{
    const tgi_problem &p = args.problem;
    const tgi_epilogue &e = p.epilogue;
    T row_bias[Rows] = {}, col_bias[Cols] = {};
    if (e.bias == TG_BIAS_ROW)
#pragma unroll
        for (int i = 0; i < Rows; i++)
            row_bias[i] = tgi_read_term<T>(p, args.bias, row[i]);
    if (e.bias == TG_BIAS_COL)
#pragma unroll
        for (int j = 0; j < Cols; j++)
            col_bias[j] = tgi_read_term<T>(p, args.bias, col[j]);
#pragma unroll
    for (int i = 0; i < Rows; i++) {
        T c[Cols] = {};
        if (e.beta != 0.0)
#pragma unroll
            for (int j = 0; j < Cols; j++)
                c[j] = tgi_read_term<T>(p, args.c, tgi_offset(p.c, batch, row[i], col[j]));
#pragma unroll
        for (int j = 0; j < Cols; j++)
            sums[i][j] = tgi_combine_terms(
                e, c[j], e.bias == TG_BIAS_ROW ? row_bias[i] : col_bias[j], sums[i][j]);
    }
    const int is_limited = e.activation == TG_ACTIVATION_RELU;
    if (e.activation == TG_ACTIVATION_NONE)
        return;
#pragma unroll
    for (int i = 0; i < Rows; i++)
#pragma unroll
        for (int j = 0; j < Cols; j++)
            sums[i][j] = is_limited
                             ? tgi_limit_sum(sums[i][j])
                             : tgi_call_activation(sums[i][j], e.activation, tgi_is_d_narrow(p));
}

#endif
