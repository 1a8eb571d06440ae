/*
 * Reads elements of C and the bias, and writes elements of D, as a thread of a production kernel
 * stores them. Conditions that do not depend on the element, types above all, are tested once. C,
 * bias and D of an FP32 sum may be narrower.
 */
#ifndef TGI_ELEMENT_ACCESS_CUH
#define TGI_ELEMENT_ACCESS_CUH

#include "core/epilogue.h"
#include "kernels/gemm_args.h"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/launch.cuh"

/* TGI_LEAST_D_BYTES is the element size of the narrowest D, C or bias in the kernels of a source: 4
 * if all multiply FP32 or FP64, 2 if none multiplies FP8. Operands and D have scales only if it is
 * 1. Kernels thus contain no code for types that do not occur. */
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

/* Reads the bits of two elements of such a vector. Both loads are issued, and neither is waited
 * for. */
static __device__ __forceinline__ void tgi_read_bits(const void *data, const int64_t (&index)[2],
                                                     tg_type type, uint32_t (&bits)[2])
{
    if (TGI_LEAST_D_BYTES == 4 || type == TG_TYPE_FP32) {
        bits[0] = static_cast<const uint32_t *>(data)[index[0]];
        bits[1] = static_cast<const uint32_t *>(data)[index[1]];
    } else if (tgi_is_fp8(type)) {
        bits[0] = static_cast<const uint8_t *>(data)[index[0]];
        bits[1] = static_cast<const uint8_t *>(data)[index[1]];
    } else {
        bits[0] = static_cast<const uint16_t *>(data)[index[0]];
        bits[1] = static_cast<const uint16_t *>(data)[index[1]];
    }
}

static __device__ __forceinline__ float tgi_decode_element(uint32_t bits, tg_type type)
{
    if (TGI_LEAST_D_BYTES == 4 || type == TG_TYPE_FP32)
        return __uint_as_float(bits);
    if (type == TG_TYPE_BF16)
        return __uint_as_float(bits << 16);
    if (tgi_is_fp8(type))
        return type == TG_TYPE_FP8_E4M3 ? tgi_fp32_from_e4m3(static_cast<uint8_t>(bits))
                                        : tgi_fp32_from_e5m2(static_cast<uint8_t>(bits));
    return tgi_decode_fp16(static_cast<uint16_t>(bits));
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

/* Places are the elements of D that a thread stores together. Place i is row(i) rows and col(i)
 * columns from the first one, and is_inside(i) is 1 if it lies in D. Column places are rows of one
 * column, `stride` rows apart; those from `end` on lie outside D. */
struct tgi_column_places {
    int first, stride, end;

    __device__ __forceinline__ int row(int i) const
    {
        return first + i * stride;
    }

    __device__ __forceinline__ int col(int) const
    {
        return 0;
    }

    __device__ __forceinline__ int is_inside(int i) const
    {
        return row(i) < end;
    }
};

/* Returns how far place i is from the first one, in elements of a matrix. */
template <class Places>
static __device__ __forceinline__ int64_t tgi_find_offset(const Places &places, int i,
                                                          const tgi_layout &layout)
{
    return places.row(i) * layout.row + places.col(i) * layout.col;
}

/* Reads the elements of C, or of the bias, at the places. Each width has a loop of its own, so that
 * all loads are issued before a value is decoded. */
template <int Count, class Places>
static __device__ __forceinline__ void
tgi_read_elements(const void *data, int64_t first, const tgi_layout &layout, const Places &places,
                  tg_type type, float (&value)[Count])
{
    if (TGI_LEAST_D_BYTES == 4 || type == TG_TYPE_FP32) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            if (places.is_inside(i))
                value[i] =
                    static_cast<const float *>(data)[first + tgi_find_offset(places, i, layout)];
    } else if (tgi_is_fp8(type)) {
        uint8_t bits[Count] = {};
#pragma unroll
        for (int i = 0; i < Count; i++)
            if (places.is_inside(i))
                bits[i] =
                    static_cast<const uint8_t *>(data)[first + tgi_find_offset(places, i, layout)];
#pragma unroll
        for (int i = 0; i < Count; i++)
            value[i] = type == TG_TYPE_FP8_E4M3 ? tgi_fp32_from_e4m3(bits[i])
                                                : tgi_fp32_from_e5m2(bits[i]);
    } else {
        uint16_t bits[Count] = {};
#pragma unroll
        for (int i = 0; i < Count; i++)
            if (places.is_inside(i))
                bits[i] =
                    static_cast<const uint16_t *>(data)[first + tgi_find_offset(places, i, layout)];
#pragma unroll
        for (int i = 0; i < Count; i++)
            value[i] =
                type == TG_TYPE_BF16 ? tgi_fp32_from_bf16(bits[i]) : tgi_decode_fp16(bits[i]);
    }
}

template <int Count, class Places>
static __device__ __forceinline__ void
tgi_read_elements(const void *data, int64_t first, const tgi_layout &layout, const Places &places,
                  tg_type, double (&value)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i++)
        if (places.is_inside(i))
            value[i] =
                static_cast<const double *>(data)[first + tgi_find_offset(places, i, layout)];
}

/* Writes the elements of D at the places. */
template <int Count, class Places>
static __device__ __forceinline__ void tgi_write_elements(const tgi_gemm_args &args, int64_t first,
                                                          const Places &places,
                                                          const float (&value)[Count])
{
    const tg_type type = tgi_find_d_type(args.problem);
    const tgi_layout &layout = args.problem.d;
    if (TGI_LEAST_D_BYTES == 4 || type == TG_TYPE_FP32) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            if (places.is_inside(i))
                static_cast<float *>(args.d)[first + tgi_find_offset(places, i, layout)] = value[i];
    } else {
#pragma unroll
        for (int i = 0; i < Count; i++)
            if (places.is_inside(i))
                tgi_write_element(args.d, first + tgi_find_offset(places, i, layout), type,
                                  value[i]);
    }
}

template <int Count, class Places>
static __device__ __forceinline__ void tgi_write_elements(const tgi_gemm_args &args, int64_t first,
                                                          const Places &places,
                                                          const double (&value)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i++)
        if (places.is_inside(i))
            static_cast<double *>(args.d)[first + tgi_find_offset(places, i, args.problem.d)] =
                value[i];
}

#endif
