/*
 * Applies the epilogue of family batch to a tile of sums in registers. Each bias is read once a
 * tile.
 */
#ifndef TGI_BATCH_FINISH_CUH
#define TGI_BATCH_FINISH_CUH

#include "kernels/epilogue/element_epilogue.cuh"

/* Reads elements first + at[i] * stride of C or of the bias of sums of type T. D's type is tested
 * once, so that all loads are issued before a value is decoded. */
template <typename T, int Count>
static __device__ __forceinline__ void tgi_read_terms(const tgi_problem &problem, const void *data,
                                                      int64_t first, int64_t stride,
                                                      const int (&at)[Count], T (&value)[Count])
{
    if (sizeof(T) == 8 || problem.d_type == TG_TYPE_FP32) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            value[i] = static_cast<const T *>(data)[first + at[i] * stride];
    } else if constexpr (sizeof(T) == 4) {
        uint16_t bits[Count];
#pragma unroll
        for (int i = 0; i < Count; i++)
            bits[i] = static_cast<const uint16_t *>(data)[first + at[i] * stride];
#pragma unroll
        for (int i = 0; i < Count; i++)
            value[i] = problem.d_type == TG_TYPE_BF16 ? tgi_fp32_from_bf16(bits[i])
                                                      : tgi_decode_fp16(bits[i]);
    }
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
        tgi_read_terms(p, args.bias, 0, 1, row, row_bias);
    if (e.bias == TG_BIAS_COL)
        tgi_read_terms(p, args.bias, 0, 1, col, col_bias);
    /* All reads of C are under way before the first is used. */
    T c[Rows][Cols] = {};
    if (e.beta != 0.0) {
#pragma unroll
        for (int i = 0; i < Rows; i++)
            tgi_read_terms(p, args.c, tgi_offset(p.c, batch, row[i], 0), p.c.col, col, c[i]);
    }
#pragma unroll
    for (int i = 0; i < Rows; i++)
#pragma unroll
        for (int j = 0; j < Cols; j++) {
            sums[i][j] = tgi_combine_terms(
                e, c[i][j], e.bias == TG_BIAS_ROW ? row_bias[i] : col_bias[j], sums[i][j]);
            if (tgi_has_further_operands)
                sums[i][j] = tgi_apply_operands(args, batch, row[i], col[j], sums[i][j]);
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
