/* Copies rows of FP32 and FP64 between memory and tiles of attention in shared memory. */
#ifndef TGI_ATTEND_REAL_COPY_CUH
#define TGI_ATTEND_REAL_COPY_CUH

#include "kernels/attend/attend_real_products.cuh"
#include "kernels/attend/attend_store.cuh"
#include "kernels/ptx/barrier.cuh"

/* Deals out units of 16 bytes of rows to the threads of a block: a thread has every `apart`th row,
 * and of a row the unit from element `element` on, and units `width` elements apart. */
template <int Unit> struct tgi_attend_dealt_units {
    const int shift, width, element, row, apart;

    /* Rows have `size` elements. */
    __device__ __forceinline__ explicit tgi_attend_dealt_units(int size)
        : shift(size <= 8 * Unit    ? 3
                : size <= 16 * Unit ? 4
                                    : 5),
          width(Unit << shift), element((tgi_thread() & ((1 << shift) - 1)) * Unit),
          row(tgi_thread() >> shift), apart(static_cast<int>(blockDim.x) >> shift)
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

/* Does the same for rows of at most Head elements that lie `stride` elements apart in memory from
 * `source` on and consist of whole units of 16 bytes. The first `there` rows exist. Units are
 * copied as a whole or written as zeros: copies with a number of bytes take more instructions. */
template <typename Real, int Head>
static __device__ __forceinline__ void tgi_attend_fill_reals(uint32_t tile, int pitch,
                                                             const Real *source, int64_t stride,
                                                             int row_count, int size, int there)
{
    enum { BYTES = sizeof(Real), UNIT = 16 / BYTES, WIDTH = 32 * UNIT };
    const int end = (size + 31) / 32 * 32;
    const tgi_attend_dealt_units<UNIT> dealt(end);
    source += dealt.row * stride + dealt.element;
    tile += dealt.row * pitch + dealt.element * BYTES;
    stride *= dealt.apart;
    pitch *= dealt.apart;
    there = min(there, row_count);
#pragma unroll 1
    for (int row = dealt.row; row < row_count; row += dealt.apart) {
        TGI_FOR_UNROLLED(turn, Head / WIDTH)
        {
            const int e = dealt.element + turn * WIDTH, is_there = row < there && e < size;
            tgi_copy_async_if<16>(tile + turn * WIDTH * BYTES, source + turn * WIDTH, is_there);
            if (!is_there && e < end)
                tgi_write_shared_unit(tile + turn * WIDTH * BYTES, {});
        }
        tile += pitch;
        source += stride;
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
    const int has_pairs = size % 2 == 0 && (p.split_count > 1 || p.has_d_units);
#pragma unroll 1
    for (int i = 0; first + i * apart < rows; i += AT_ONCE) {
        Real *row[AT_ONCE];
        uint32_t from[AT_ONCE];
        TGI_FOR_UNROLLED(x, AT_ONCE)
        {
            row[x] = reinterpret_cast<Real *>(
                __shfl_sync(~0u, reinterpret_cast<unsigned long long>(to), (i + x) % 32));
            if (first + (i + x) * apart >= rows)
                row[x] = NULL;
            from[x] = tile + min(first + (i + x) * apart, rows - 1) * pitch;
        }
#pragma unroll 1
        for (int e = 2 * lane; e < size; e += 64) {
            Real value[AT_ONCE][2];
            TGI_FOR_UNROLLED(x, AT_ONCE)
            tgi_attend_read_two(value[x], from[x] + e * BYTES);
            TGI_FOR_UNROLLED(x, AT_ONCE)
            if (row[x] && has_pairs) {
                tgi_attend_store_two(row[x] + e, value[x][0], value[x][1]);
            } else if (row[x]) {
                row[x][e * stride] = value[x][0];
                if (e + 1 < size)
                    row[x][(e + 1) * stride] = value[x][1];
            }
        }
    }
}

#endif
