/*
 * The epilogue of one element of D, as a production kernel stores it: it reads C and the bias where
 * they count, applies core/epilogue.h and writes. `sum` is the finished sum of products; `row` and
 * `col` lie inside D. The suffixes _fp32 and _fp64 name the type of the computation; C, bias and D
 * of the former may be narrower.
 */
#ifndef TGI_EPILOGUE_CUH
#define TGI_EPILOGUE_CUH

#include "core/epilogue.h"
#include "kernels/gemm_args.h"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/launch.cuh"

/* Bytes of the narrowest D, C or bias of the kernels of a source: 4 if all multiply FP32 or FP64, 2
 * if none multiplies FP8. Operands and D have scales only if it is 1. It saves every kernel the
 * code for types that do not occur. */
#ifndef TGI_LEAST_D_BYTES
#define TGI_LEAST_D_BYTES 1
#endif

/* Returns D's type, for kernels whose sums are FP32. */
static __device__ __forceinline__ tg_type tgi_find_d_type(const tgi_problem &problem)
{
    return TGI_LEAST_D_BYTES == 4 ? TG_TYPE_FP32 : problem.d_type;
}

/* Returns 1 if D has 16 or 8 bits. */
static __device__ __forceinline__ int tgi_is_d_narrow(const tgi_problem &problem)
{
    return tgi_find_d_type(problem) != TG_TYPE_FP32;
}

static __device__ __forceinline__ int tgi_is_fp8(tg_type type)
{
    return TGI_LEAST_D_BYTES == 1 && (type == TG_TYPE_FP8_E4M3 || type == TG_TYPE_FP8_E5M2);
}

/* Returns the bytes of an element of D of 32 bits or fewer. */
static __device__ __forceinline__ int tgi_count_bytes(tg_type type)
{
    return type == TG_TYPE_FP32 ? 4 : tgi_is_fp8(type) ? 1 : 2;
}

/* Reads element `index` of a matrix or vector of the type of C, D or the bias. */
static __device__ __forceinline__ float tgi_read_element(const void *data, int64_t index,
                                                         tg_type type)
{
    if (TGI_LEAST_D_BYTES == 4 || type == TG_TYPE_FP32)
        return static_cast<const float *>(data)[index];
    const uint8_t *fp8 = static_cast<const uint8_t *>(data);
    if (tgi_is_fp8(type))
        return type == TG_TYPE_FP8_E4M3 ? tgi_fp32_from_e4m3(fp8[index])
                                        : tgi_fp32_from_e5m2(fp8[index]);
    const uint16_t bits = static_cast<const uint16_t *>(data)[index];
    return type == TG_TYPE_BF16 ? tgi_fp32_from_bf16(bits) : tgi_decode_fp16(bits);
}

static __device__ __forceinline__ void tgi_write_element(void *data, int64_t index, tg_type type,
                                                         float value)
{
    if (TGI_LEAST_D_BYTES == 4 || type == TG_TYPE_FP32)
        static_cast<float *>(data)[index] = value;
    else if (tgi_is_fp8(type))
        static_cast<uint8_t *>(data)[index] =
            static_cast<uint8_t>(tgi_encode_fp8_pair(type == TG_TYPE_FP8_E4M3, value, 0.0f));
    else
        static_cast<uint16_t *>(data)[index] =
            type == TG_TYPE_BF16 ? tgi_encode_bf16(value) : tgi_encode_fp16(value);
}

/* Returns the offset in elements of entry (row, col) of batch entry `batch`. */
static __device__ __forceinline__ int64_t tgi_offset(const tgi_layout &layout, int64_t batch,
                                                     int64_t row, int64_t col)
{
    return batch * layout.batch + row * layout.row + col * layout.col;
}

/* Reads C's element, or returns 0 if beta is 0. It is apart from the write, so that a thread can
 * read several elements before it writes the first. */
static __device__ __forceinline__ float tgi_read_c_fp32(const tgi_gemm_args &args, int64_t batch,
                                                        int64_t row, int64_t col)
{
    if (args.problem.epilogue.beta == 0.0)
        return 0.0f;
    return tgi_read_element(args.c, tgi_offset(args.problem.c, batch, row, col),
                            args.problem.d_type);
}

/* Returns alpha times the operands' scales. */
static __device__ __forceinline__ float tgi_find_alpha(const tgi_gemm_args &args, int64_t row,
                                                       int64_t col)
{
    const tgi_epilogue &epilogue = args.problem.epilogue;
    const float alpha = static_cast<float>(epilogue.alpha);
    if (TGI_LEAST_D_BYTES > 1 || (!args.a_scale && !args.b_scale))
        return alpha;
    const float a =
        args.a_scale ? args.a_scale[epilogue.a_scale == TG_SCALE_VECTOR ? row : 0] : 1.0f;
    const float b =
        args.b_scale ? args.b_scale[epilogue.b_scale == TG_SCALE_VECTOR ? col : 0] : 1.0f;
    return tgi_scale_alpha_fp32(alpha, a, b);
}

static __device__ __forceinline__ void tgi_finish_fp32(const tgi_gemm_args &args, int64_t batch,
                                                       int64_t row, int64_t col, float sum, float c)
{
    const tgi_problem &problem = args.problem;
    const tgi_epilogue &epilogue = problem.epilogue;
    float bias = 0.0f;
    if (epilogue.bias != TG_BIAS_NONE)
        bias =
            tgi_read_element(args.bias, epilogue.bias == TG_BIAS_ROW ? row : col, problem.d_type);
    const tgi_terms_fp32 terms = {tgi_find_alpha(args, row, col), c, bias};
    float value = tgi_epilogue_fp32(&epilogue, &terms, tgi_is_d_narrow(problem), sum);
    if (TGI_LEAST_D_BYTES == 1 && args.d_scale)
        value = tgi_scale_d_fp32(value, *args.d_scale);
    tgi_write_element(args.d, tgi_offset(problem.d, batch, row, col), problem.d_type, value);
}

/* The stores are not inlined, because the code of an element covers all types and activations. */
static __device__ __noinline__ void tgi_write_d_fp32(const tgi_gemm_args &args, int64_t batch,
                                                     int64_t row, int64_t col, float sum, float c)
{
    tgi_finish_fp32(args, batch, row, col, sum, c);
}

static __device__ __noinline__ void tgi_store_fp32(const tgi_gemm_args &args, int64_t batch,
                                                   int64_t row, int64_t col, float sum)
{
    tgi_finish_fp32(args, batch, row, col, sum, tgi_read_c_fp32(args, batch, row, col));
}

static __device__ __forceinline__ double tgi_read_c_fp64(const tgi_gemm_args &args, int64_t batch,
                                                         int64_t row, int64_t col)
{
    if (args.problem.epilogue.beta == 0.0)
        return 0.0;
    return static_cast<const double *>(args.c)[tgi_offset(args.problem.c, batch, row, col)];
}

static __device__ __noinline__ void tgi_write_d_fp64(const tgi_gemm_args &args, int64_t batch,
                                                     int64_t row, int64_t col, double sum, double c)
{
    const tgi_problem &problem = args.problem;
    const tgi_epilogue &epilogue = problem.epilogue;
    double bias = 0.0;
    if (epilogue.bias != TG_BIAS_NONE)
        bias = static_cast<const double *>(args.bias)[epilogue.bias == TG_BIAS_ROW ? row : col];
    const tgi_terms_fp64 terms = {epilogue.alpha, c, bias};
    static_cast<double *>(args.d)[tgi_offset(problem.d, batch, row, col)] =
        tgi_epilogue_fp64(&epilogue, &terms, sum);
}

static __device__ __forceinline__ void tgi_store_fp64(const tgi_gemm_args &args, int64_t batch,
                                                      int64_t row, int64_t col, double sum)
{
    tgi_write_d_fp64(args, batch, row, col, sum, tgi_read_c_fp64(args, batch, row, col));
}

#endif
