/* Reads units of eight elements from memory into registers. */
#ifndef TGI_ATTEND_UNITS_CUH
#define TGI_ATTEND_UNITS_CUH

#include "kernels/attend/attend_tile.cuh"
#include "kernels/ptx/shared_memory.cuh"

/* Reads units of eight elements. find(i, e, count) returns the address of the row of unit i, and
 * sets the unit's first element and the number of elements from there on; the others are read as
 * zeros. `is_whole` is 1 if units are whole or absent and lie at multiples of 16 bytes. */
template <int Count, typename Find>
static __device__ __forceinline__ void tgi_attend_read_units(const tg_heads &heads, int is_whole,
                                                             uint32_t (&unit)[Count][4], Find find)
{
    const uint16_t *const data = static_cast<const uint16_t *>(heads.data);
    if (is_whole) {
        TGI_FOR_UNROLLED(i, Count)
        {
            int e, count;
            const int64_t row = find(i, e, count);
            uint4 words = {0, 0, 0, 0};
            if (count > 0)
                words = *reinterpret_cast<const uint4 *>(data + row + e);
            unit[i][0] = words.x;
            unit[i][1] = words.y;
            unit[i][2] = words.z;
            unit[i][3] = words.w;
        }
        return;
    }
    /* Registers take no computed index, so units rotate through them. */
#pragma unroll 1
    for (int i = 0; i < Count; i++) {
        uint64_t words[2] = {0, 0};
        int first, count;
        const int64_t row = find(i, first, count);
#pragma unroll 1
        for (int e = 7; e >= 0; e--) {
            const uint16_t value = e < count ? data[row + (first + e) * heads.element_stride] : 0;
            words[1] = words[1] << 16 | words[0] >> 48;
            words[0] = words[0] << 16 | value;
        }
        TGI_FOR_UNROLLED(j, Count - 1)
        TGI_FOR_UNROLLED(w, 4)
        unit[j][w] = unit[j + 1][w];
        TGI_FOR_UNROLLED(w, 4)
        unit[Count - 1][w] = static_cast<uint32_t>(words[w / 2] >> w % 2 * 32);
    }
}

/* Writes the lane's units to shared memory from `kept` on, 16 bytes of each lane side by side. */
template <int Count>
static __device__ __forceinline__ void tgi_attend_keep_units(const uint32_t (&unit)[Count][4],
                                                             uint32_t kept)
{
    TGI_FOR_UNROLLED(i, Count)
    tgi_write_shared_unit(kept + 512 * i, {unit[i][0], unit[i][1], unit[i][2], unit[i][3]});
}

/* Reads units that tgi_attend_keep_units has kept. */
template <int Count>
static __device__ __forceinline__ void tgi_attend_read_kept(uint32_t (&unit)[Count][4],
                                                            uint32_t kept)
{
    TGI_FOR_UNROLLED(i, Count)
    {
        const uint4 words = tgi_read_shared_unit(kept + 512 * i);
        unit[i][0] = words.x;
        unit[i][1] = words.y;
        unit[i][2] = words.z;
        unit[i][3] = words.w;
    }
}

#endif
