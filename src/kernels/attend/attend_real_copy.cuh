/* Copies rows of FP32 and FP64 between memory and tiles of attention in shared memory. */
#ifndef TGI_ATTEND_REAL_COPY_CUH
#define TGI_ATTEND_REAL_COPY_CUH

#include "kernels/attend/attend_real_products.cuh"
#include "kernels/attend/attend_store.cuh"

/* Deals out units of 16 bytes of rows to the threads of a block: a thread has every `apart`th row,
 * and of a row the unit from element `element` on, and units `width` elements apart. */
template <int Unit> struct tgi_attend_dealt_units {
    const int lanes, width, element, row, apart;

    /* Rows have `size` elements. */
    __device__ __forceinline__ explicit tgi_attend_dealt_units(int size)
        : lanes(size <= 8 * Unit    ? 8
                : size <= 16 * Unit ? 16
                                    : 32),
          width(lanes * Unit), element(tgi_thread() % lanes * Unit), row(tgi_thread() / lanes),
          apart(static_cast<int>(blockDim.x) / lanes)
    {
    }
};

/* Copies `row_count` rows of `size` elements in the background by all threads of the block, with
 * zeros up to the next multiple of 32 elements. Rows lie `pitch` bytes apart. find(row) returns the
 * address of a row, or TGI_ATTEND_NO_ROW for a row of zeros. */
template <typename Real, typename Find>
static __device__ __forceinline__ void tgi_attend_copy_reals(uint32_t tile, int pitch,
                                                             const tg_heads &heads, int row_count,
                                                             int size, int has_units, Find find)
{
    enum { BYTES = sizeof(Real), UNIT = 16 / BYTES };
    const Real *const data = static_cast<const Real *>(heads.data);
    const int lane = tgi_thread() % 32, end = (size + 31) / 32 * 32;
    const int each = has_units ? static_cast<int>(UNIT) : 1;
#pragma unroll 1
    for (int row = tgi_thread() / 32; row < row_count; row += static_cast<int>(blockDim.x / 32)) {
        const int64_t at = find(row);
        const int there = at == TGI_ATTEND_NO_ROW ? 0 : size;
        const uint32_t target = tile + row * pitch;
#pragma unroll 1
        for (int e = lane * each; e < end; e += 32 * each) {
            const int count = max(0, min(each, there - e));
            const Real *const source = data + (count > 0 ? at + e * heads.element_stride : 0);
            if (has_units)
                tgi_copy_async<16>(target + e * BYTES, source, count * BYTES);
            else
                tgi_copy_async<BYTES>(target + e * BYTES, source, count * BYTES);
        }
    }
}

/* Does the same for rows that lie a row stride apart in memory, the first at offset `first`, whose
 * units of 16 bytes can be copied. The first `there` rows exist. */
template <typename Real>
static __device__ __forceinline__ void tgi_attend_fill_reals(uint32_t tile, int pitch,
                                                             const tg_heads &heads, int row_count,
                                                             int size, int64_t first, int there)
{
    enum { BYTES = sizeof(Real), UNIT = 16 / BYTES };
    const tgi_attend_dealt_units<UNIT> dealt((size + 31) / 32 * 32);
    const int64_t stride = dealt.apart * heads.row_stride;
#pragma unroll 1
    for (int e = dealt.element; e < (size + 31) / 32 * 32; e += dealt.width) {
        const int bytes = BYTES * max(0, min(static_cast<int>(UNIT), size - e));
        const Real *source =
            static_cast<const Real *>(heads.data) + first + dealt.row * heads.row_stride + e;
        uint32_t target = tile + dealt.row * pitch + e * BYTES;
#pragma unroll 4
        for (int row = dealt.row; row < row_count; row += dealt.apart) {
            const int count = row < there ? bytes : 0;
            tgi_copy_async<16>(target, count > 0 ? source : heads.data, count);
            target += dealt.apart * pitch;
            source += stride;
        }
    }
}

/* Stores the block's rows of D, or of a split, which lie `pitch` bytes apart from `tile` on, with
 * their largest scores and sums of weights behind Head elements. Each lane finds the place of one
 * of its warp's rows, of which there are at most 32. */
template <typename Real, int Head>
static __device__ __forceinline__ void tgi_attend_store_reals(const tgi_attend_args &p,
                                                              const tgi_attend_place &place,
                                                              uint32_t tile, int pitch)
{
    enum { BYTES = sizeof(Real), AT_ONCE = 2 };
    const tg_attention &a = p.attention;
    const int size = static_cast<int>(a.v_head_size), lane = tgi_thread() % 32;
    const int apart = static_cast<int>(blockDim.x / 32), first = tgi_thread() / 32;
    const int own = first + lane * apart;
    const int rows = min(p.tile_rows, place.row_count - place.first);
    const int64_t stride = p.split_count > 1 ? 1 : a.d.element_stride;
    Real *to = NULL;
    __syncthreads(); /* all rows are there */
    if (own < p.tile_rows) {
        const tgi_attend_row_place at = tgi_attend_find_row(p, place, own);
        const int query = place.first_query + at.query;
        Real largest, total;
        tgi_attend_read_one(largest, tile + own * pitch + Head * BYTES);
        tgi_attend_read_one(total, tile + own * pitch + (Head + 1) * BYTES);
        if (at.is_there && p.split_count > 1) {
            to = tgi_attend_find_split<Real>(p, place.split, place.batch, at.head, at.query);
            tgi_attend_store_two(to + tgi_attend_split_reals(size) - 2, largest, total);
        } else if (at.is_there) {
            to = static_cast<Real *>(a.d.data) +
                 tgi_attend_offset(a.d, place.query_entry, at.head, query);
            if (a.has_log_sum_exp)
                tgi_attend_store_log(
                    p, tgi_attend_offset(a.log_sum_exp, place.query_entry, at.head, query), largest,
                    total);
        }
    }
#pragma unroll 1
    for (int e = lane; e < (size + 31) / 32 * 32; e += 32)
#pragma unroll 1
        for (int i = 0; first + i * apart < rows; i += AT_ONCE) {
            Real value[AT_ONCE];
            TGI_FOR_UNROLLED(x, AT_ONCE)
            tgi_attend_read_one(value[x],
                                tile + min(first + (i + x) * apart, rows - 1) * pitch + e * BYTES);
            TGI_FOR_UNROLLED(x, AT_ONCE)
            {
                Real *const row = reinterpret_cast<Real *>(
                    __shfl_sync(~0u, reinterpret_cast<unsigned long long>(to), (i + x) % 32));
                if (row && e < size && first + (i + x) * apart < rows)
                    row[e * stride] = value[x];
            }
        }
}

#endif
