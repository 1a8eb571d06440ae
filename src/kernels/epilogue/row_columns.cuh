/* Stores neighbouring columns of a row of D, 16 bytes of them. */
#ifndef TGI_ROW_COLUMNS_CUH
#define TGI_ROW_COLUMNS_CUH

#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/global_memory.cuh"

/* Encodes the sums of eight columns. */
static __device__ __forceinline__ uint4 tgi_encode_columns(tg_type type, const float (&sum)[8])
{
    return make_uint4(tgi_encode_pair(type, sum[0], sum[1]), tgi_encode_pair(type, sum[2], sum[3]),
                      tgi_encode_pair(type, sum[4], sum[5]), tgi_encode_pair(type, sum[6], sum[7]));
}

/* Stores the eight columns of a row from `col` on that exist, all at once if they are a unit of 16
 * bytes. `to` is column 0. */
static __device__ __forceinline__ void tgi_store_columns(uint16_t *to, int col, int n,
                                                         const uint4 &unit)
{
    const int is_unit = reinterpret_cast<uintptr_t>(to + col) % 16 == 0;
    if (is_unit && col >= 0 && col + 8 <= n) {
        *reinterpret_cast<uint4 *>(to + col) = unit;
        return;
    }
    const uint32_t word[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (col + i >= 0 && col + i < n)
            to[col + i] = static_cast<uint16_t>(word[i / 2] >> i % 2 * 16);
}

/* Stores sums that need no other type, of which those from `col` on that exist are a unit. */
template <typename Elem, int Count>
static __device__ __forceinline__ void tgi_store_columns(Elem *to, int col, int n,
                                                         const Elem (&sum)[Count])
{
    if (col >= 0 && col + Count <= n) {
        tgi_write_elements_at(to + col, sum);
        return;
    }
#pragma unroll
    for (int i = 0; i < Count; i++)
        if (col + i >= 0 && col + i < n)
            to[col + i] = sum[i];
}

#endif
