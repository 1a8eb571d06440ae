/*
 * How a production kernel stores one element of D: reads C and the bias where they count, applies
 * core/epilogue.h and writes. `sum` is the finished sum of products, `row` and `col` lie inside D.
 */
#ifndef TGI_EPILOGUE_CUH
#define TGI_EPILOGUE_CUH

#include "core/epilogue.h"
#include "kernels/gemm_args.h"

/* Offset in elements of entry (row, col) of batch entry `batch`. */
static __device__ __forceinline__ int64_t tgi_offset(const tgi_layout &layout, int64_t batch,
                                                     int64_t row, int64_t col)
{
    return batch * layout.batch + row * layout.row + col * layout.col;
}

/* Out of line: the store loops hold several elements, and each would bring all activations. */
static __device__ __noinline__ float tgi_activate_call_fp32(float value, tg_activation kind)
{
    return tgi_activate_fp32(value, kind);
}

/* C's element, 0 where C does not count. Apart from the write, so that a thread can read several
 * elements before it writes the first. */
static __device__ __forceinline__ float tgi_read_c_fp32(const tgi_gemm_args &args, int64_t batch,
                                                        int64_t row, int64_t col)
{
    if (args.problem.beta == 0.0)
        return 0.0f;
    return static_cast<const float *>(args.c)[tgi_offset(args.problem.c, batch, row, col)];
}

static __device__ __forceinline__ void tgi_write_d_fp32(const tgi_gemm_args &args, int64_t batch,
                                                        int64_t row, int64_t col, float sum,
                                                        float c)
{
    const tgi_problem &problem = args.problem;
    float bias = 0.0f;
    if (problem.bias != TG_BIAS_NONE)
        bias = static_cast<const float *>(args.bias)[problem.bias == TG_BIAS_ROW ? row : col];
    float value =
        tgi_epilogue_fp32(sum, static_cast<float>(problem.alpha), static_cast<float>(problem.beta),
                          c, problem.bias != TG_BIAS_NONE, bias, TG_ACTIVATION_NONE);
    if (problem.activation != TG_ACTIVATION_NONE)
        value = tgi_activate_call_fp32(value, problem.activation);
    static_cast<float *>(args.d)[tgi_offset(problem.d, batch, row, col)] = value;
}

static __device__ __forceinline__ void tgi_store_fp32(const tgi_gemm_args &args, int64_t batch,
                                                      int64_t row, int64_t col, float sum)
{
    tgi_write_d_fp32(args, batch, row, col, sum, tgi_read_c_fp32(args, batch, row, col));
}

static __device__ __forceinline__ void tgi_store_fp64(const tgi_gemm_args &args, int64_t batch,
                                                      int64_t row, int64_t col, double sum)
{
    const tgi_problem &problem = args.problem;
    double c = 0.0, bias = 0.0;
    if (problem.beta != 0.0)
        c = static_cast<const double *>(args.c)[tgi_offset(problem.c, batch, row, col)];
    if (problem.bias != TG_BIAS_NONE)
        bias = static_cast<const double *>(args.bias)[problem.bias == TG_BIAS_ROW ? row : col];
    static_cast<double *>(args.d)[tgi_offset(problem.d, batch, row, col)] =
        tgi_epilogue_fp64(sum, problem.alpha, problem.beta, c, problem.bias != TG_BIAS_NONE, bias,
                          problem.activation);
}

#endif
