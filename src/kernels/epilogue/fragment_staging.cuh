/*
 * Writes the sums of a warpgroup to shared memory, 64 rows and at most 64 columns of D, in TMA
 * boxes under the 128-byte swizzle. A fragment is what one thread holds: sum 4 t + 2 h + j belongs
 * to row lane / 4 + 8 h of the warp's 16 rows and to column 8 t + 2 (lane % 4) + j.
 */
#ifndef TGI_FRAGMENT_STAGING_CUH
#define TGI_FRAGMENT_STAGING_CUH

#include "kernels/copy/swizzle.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/epilogue/fragment_output.h"
#include "tilegemm.h"

/* A number of 16 bits: its type, and 1 if it is RELU of the sum. */
struct tgi_narrow_form {
    tg_type type;
    int is_relu;
};

template <tg_type Type, int IsRelu, int Count, int Pairs>
static __device__ __forceinline__ void tgi_pack_sums_as(const float (&sum)[Count], int first,
                                                        uint32_t (&pair)[Pairs])
{
#pragma unroll
    for (int i = 0; i < Pairs; i++) {
        const float low = sum[4 * first + 2 * i], high = sum[4 * first + 2 * i + 1];
        pair[i] = IsRelu ? tgi_encode_relu_pair(Type, low, high) : tgi_encode_pair(Type, low, high);
    }
}

/* Packs sums as pairs of 16-bit numbers, from columns 8 * first on. */
template <int Count, int Pairs>
static __device__ __forceinline__ void tgi_pack_sums(const float (&sum)[Count], int first,
                                                     tgi_narrow_form form, uint32_t (&pair)[Pairs])
{
    if (form.is_relu && form.type == TG_TYPE_BF16)
        tgi_pack_sums_as<TG_TYPE_BF16, 1>(sum, first, pair);
    else if (form.is_relu)
        tgi_pack_sums_as<TG_TYPE_FP16, 1>(sum, first, pair);
    else if (form.type == TG_TYPE_BF16)
        tgi_pack_sums_as<TG_TYPE_BF16, 0>(sum, first, pair);
    else
        tgi_pack_sums_as<TG_TYPE_FP16, 0>(sum, first, pair);
}

/* Puts Cols columns of packed sums, from pair `first` on, into one box. */
template <int Cols, int Count>
static __device__ __forceinline__ void tgi_put_pairs(uint32_t box, const uint32_t (&pair)[Count],
                                                     int first)
{
    const int lane = tgi_thread() % 32, line = tgi_thread() / 32 % 4 * 16 + lane % 16;
#pragma unroll
    for (int t = 0; t < Cols / 8; t += 2) {
        const int i = first + 2 * t;
        const uint32_t pairs[4] = {pair[i], pair[i + 1], pair[i + 2], pair[i + 3]};
        tgi_store_matrices(tgi_find_unit(box, line, t + lane / 16), pairs);
    }
}

/* Puts Cols columns of sums, from column 8 * first on, into one box as 16-bit numbers. */
template <int Cols, int Count>
static __device__ __forceinline__ void tgi_put_16bit(uint32_t box, const float (&sum)[Count],
                                                     int first, tgi_narrow_form form)
{
    uint32_t pair[Cols / 4];
    tgi_pack_sums(sum, first, form, pair);
    tgi_put_pairs<Cols>(box, pair, 0);
}

/* Puts Cols columns of sums into one box as FP8. They use Cols of the 128 bytes of a line. */
template <int Cols, int Count>
static __device__ __forceinline__ void tgi_put_bytes(uint32_t box, const float (&sum)[Count],
                                                     tg_type type)
{
    const int lane = tgi_reread_thread() % 32, line = tgi_reread_thread() / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int t = 0; t < Cols / 8; t++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int i = 4 * t + 2 * h;
            const uint32_t unit = tgi_find_unit(box, line + 8 * h, t / 2);
            tgi_write_shared_2(unit + t % 2 * 8 + lane % 4 * 2,
                               tgi_encode_fp8_pair(type == TG_TYPE_FP8_E4M3, sum[i], sum[i + 1]));
        }
}

/* Puts Cols columns of sums, from column 8 * first on, into boxes of 32 columns as FP32. */
template <int Cols, int Count>
static __device__ __forceinline__ void tgi_put_fp32(uint32_t box, const float (&sum)[Count],
                                                    int first)
{
    const int lane = tgi_reread_thread() % 32, line = tgi_reread_thread() / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int t = 0; t < Cols / 8; t++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int i = 4 * (first + t) + 2 * h;
            const uint32_t unit =
                tgi_find_unit(box + t / 4 * TGI_BOX_BYTES, line + 8 * h, t % 4 * 2 + lane % 4 / 2);
            tgi_write_shared_8(unit + lane % 2 * 8, sum[i], sum[i + 1]);
        }
}

/* Puts Cols columns of sums into one box as 16-bit numbers, transposed. Lines of the box are
 * columns of a D whose columns are contiguous. */
template <int Cols, int Count>
static __device__ __forceinline__ void
tgi_put_transposed_16bit(uint32_t box, const float (&sum)[Count], tgi_narrow_form form)
{
    const int lane = tgi_reread_thread() % 32,
              unit = tgi_reread_thread() / 32 % 4 * 2 + lane / 8 % 2;
    uint32_t pair[Cols / 4];
    tgi_pack_sums(sum, 0, form, pair);
#pragma unroll
    for (int t = 0; t < Cols / 8; t += 2) {
        const uint32_t pairs[4] = {pair[2 * t], pair[2 * t + 1], pair[2 * t + 2], pair[2 * t + 3]};
        tgi_store_matrices_transposed(tgi_find_unit(box, (t + lane / 16) * 8 + lane % 8, unit),
                                      pairs);
    }
}

template <int Cols, int Count>
static __device__ __forceinline__ void tgi_put_transposed_fp32(uint32_t box,
                                                               const float (&sum)[Count])
{
    const int lane = tgi_reread_thread() % 32, warp = tgi_reread_thread() / 32 % 4;
    box += warp / 2 * TGI_BOX_BYTES + lane / 4 % 4 * 4;
#pragma unroll
    for (int t = 0; t < Cols / 8; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            tgi_write_shared_4(tgi_find_unit(box, t * 8 + lane % 4 * 2 + i % 2,
                                             warp % 2 * 4 + i / 2 * 2 + lane / 16),
                               sum[4 * t + i]);
}

static __device__ __forceinline__ uint32_t tgi_find_sum(uint32_t staged, int row, int col)
{
    return tgi_find_unit(staged + col / 32 * TGI_BOX_BYTES, row, col % 32 / 4) + col % 4 * 4;
}

#endif
