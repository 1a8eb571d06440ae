/*
 * D = epilogue(0): what is left where alpha = 0 or k = 0, so that no product is formed. Any
 * strides, any batch, C in place; one thread an element, in strides of the whole grid.
 */
#include "kernels/epilogue.cuh"

static __device__ __forceinline__ float decode(uint16_t bits, tg_type type)
{
    return type == TG_TYPE_BF16 ? tgi_fp32_from_bf16(bits) : tgi_fp32_from_fp16(bits);
}

/* D of 16 bits: C and the bias are of D's type, the epilogue is FP32's. */
static __device__ __forceinline__ void store_16bit(const tgi_gemm_args &args, int64_t batch,
                                                   int64_t row, int64_t col)
{
    const tgi_problem &problem = args.problem;
    const tg_type type = problem.d_type;
    float c = 0.0f, bias = 0.0f;
    if (problem.beta != 0.0)
        c = decode(static_cast<const uint16_t *>(args.c)[tgi_offset(problem.c, batch, row, col)],
                   type);
    if (problem.bias != TG_BIAS_NONE)
        bias = decode(
            static_cast<const uint16_t *>(args.bias)[problem.bias == TG_BIAS_ROW ? row : col],
            type);
    float value =
        tgi_epilogue_fp32(0.0f, static_cast<float>(problem.alpha), static_cast<float>(problem.beta),
                          c, problem.bias != TG_BIAS_NONE, bias, problem.activation);
    static_cast<uint16_t *>(args.d)[tgi_offset(problem.d, batch, row, col)] =
        type == TG_TYPE_BF16 ? tgi_bf16_from_fp32(value) : tgi_fp16_from_fp32(value);
}

/* store(batch, row, col) for every element of D, columns first. */
#define TGI_FOR_EACH_ELEMENT(args, store)                                                          \
    do {                                                                                           \
        const tgi_problem &problem = (args).problem;                                               \
        const int64_t count = problem.batch_count * problem.m * problem.n;                         \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {   \
            const int64_t line = i / problem.n;                                                    \
            store(line / problem.m, line % problem.m, i % problem.n);                              \
        }                                                                                          \
    } while (0)

extern "C" __global__ void tgi_scale_fp32(const __grid_constant__ tgi_gemm_args args)
{
#define TGI_STORE(batch, row, col) tgi_store_fp32(args, batch, row, col, 0.0f)
    TGI_FOR_EACH_ELEMENT(args, TGI_STORE);
#undef TGI_STORE
}

extern "C" __global__ void tgi_scale_fp64(const __grid_constant__ tgi_gemm_args args)
{
#define TGI_STORE(batch, row, col) tgi_store_fp64(args, batch, row, col, 0.0)
    TGI_FOR_EACH_ELEMENT(args, TGI_STORE);
#undef TGI_STORE
}

extern "C" __global__ void tgi_scale_16bit(const __grid_constant__ tgi_gemm_args args)
{
#define TGI_STORE(batch, row, col) store_16bit(args, batch, row, col)
    TGI_FOR_EACH_ELEMENT(args, TGI_STORE);
#undef TGI_STORE
}
