/*
 * The epilogue of one element of D, as a production kernel stores it: it reads C and the bias where
 * they count, applies core/epilogue.h and writes. `sum` is the finished sum of products; `row` and
 * `col` lie inside D. C, bias and D of an FP32 sum may be narrower.
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

/* Reads what an element takes beside its sum. It is apart from the write, so that a thread can read
 * for several elements before it writes the first. */
static __device__ __forceinline__ void tgi_read_terms(const tgi_gemm_args &args, int64_t batch,
                                                      int64_t row, int64_t col,
                                                      tgi_terms_fp32 *read)
{
    const tgi_problem &problem = args.problem;
    const tgi_epilogue &epilogue = problem.epilogue;
    float c = 0.0f, bias = 0.0f;
    if (epilogue.beta != 0.0)
        c = tgi_read_element(args.c, tgi_offset(problem.c, batch, row, col), problem.d_type);
    if (epilogue.bias != TG_BIAS_NONE)
        bias =
            tgi_read_element(args.bias, epilogue.bias == TG_BIAS_ROW ? row : col, problem.d_type);
    const tgi_terms_fp32 terms = {tgi_find_alpha(args, row, col), c, bias};
    *read = terms;
}

static __device__ __forceinline__ void tgi_read_terms(const tgi_gemm_args &args, int64_t batch,
                                                      int64_t row, int64_t col,
                                                      tgi_terms_fp64 *read)
{
    const tgi_problem &problem = args.problem;
    const tgi_epilogue &epilogue = problem.epilogue;
    double c = 0.0, bias = 0.0;
    if (epilogue.beta != 0.0)
        c = static_cast<const double *>(args.c)[tgi_offset(problem.c, batch, row, col)];
    if (epilogue.bias != TG_BIAS_NONE)
        bias = static_cast<const double *>(args.bias)[epilogue.bias == TG_BIAS_ROW ? row : col];
    *read = {epilogue.alpha, c, bias};
}

/* Activations are called, not inlined, because their code is long. They are given values: behind a
 * reference the arguments would be read from global memory at each call, not from constant
 * memory. */
static __device__ __noinline__ float tgi_call_activation(float t, tg_activation activation,
                                                         int is_narrow)
{
    return is_narrow ? tgi_activate_narrow(t, activation) : tgi_activate_fp32(t, activation);
}

static __device__ __noinline__ double tgi_call_activation(double t, tg_activation activation)
{
    return tgi_activate_fp64(t, activation);
}

static __device__ __forceinline__ void tgi_write_d(const tgi_gemm_args &args, int64_t batch,
                                                   int64_t row, int64_t col, float sum,
                                                   const tgi_terms_fp32 &terms)
{
    const tgi_problem &problem = args.problem;
    const tgi_epilogue &epilogue = problem.epilogue;
    float value = tgi_combine_fp32(&epilogue, &terms, sum);
    if (epilogue.activation != TG_ACTIVATION_NONE)
        value = tgi_call_activation(value, epilogue.activation, tgi_is_d_narrow(problem));
    if (TGI_LEAST_D_BYTES == 1 && args.d_scale)
        value = tgi_scale_d_fp32(value, *args.d_scale);
    tgi_write_element(args.d, tgi_offset(problem.d, batch, row, col), problem.d_type, value);
}

static __device__ __forceinline__ void tgi_write_d(const tgi_gemm_args &args, int64_t batch,
                                                   int64_t row, int64_t col, double sum,
                                                   const tgi_terms_fp64 &terms)
{
    const tgi_problem &problem = args.problem;
    const tgi_epilogue &epilogue = problem.epilogue;
    double value = tgi_combine_fp64(&epilogue, &terms, sum);
    if (epilogue.activation != TG_ACTIVATION_NONE)
        value = tgi_call_activation(value, epilogue.activation);
    static_cast<double *>(args.d)[tgi_offset(problem.d, batch, row, col)] = value;
}

/* The type of the terms of a sum of type T. */
template <typename T> struct tgi_terms_of {
    typedef tgi_terms_fp32 type;
};

template <> struct tgi_terms_of<double> {
    typedef tgi_terms_fp64 type;
};

template <typename T>
static __device__ __forceinline__ void tgi_store(const tgi_gemm_args &args, int64_t batch,
                                                 int64_t row, int64_t col, T sum)
{
    typename tgi_terms_of<T>::type terms;
    tgi_read_terms(args, batch, row, col, &terms);
    tgi_write_d(args, batch, row, col, sum, terms);
}

#endif
