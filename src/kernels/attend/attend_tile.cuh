/*
 * Tiles of attention in shared memory: rows of Q, K or V, 16-bit elements, in panels of 64 columns.
 * A panel has all rows, of 128 bytes; the unit of 16 bytes at column 8 c of row r is in place
 * c ^ r % 8 of its row, so that ldmatrix meets no bank twice. It is the 128-byte swizzle of wgmma.
 */
#ifndef TGI_ATTEND_TILE_CUH
#define TGI_ATTEND_TILE_CUH

#include "kernels/attend/attend_args.h"
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/launch.cuh"

#define TGI_ATTEND_NO_ROW INT64_MIN
#define TGI_FOR_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)

/* The place of a block: queries of one batch entry, of one head or of all that share a head of K
 * and V, and the keys that some of them see. Row r is query r % queries of head
 * first_head + r / queries. */
struct tgi_attend_place {
    int batch, first_head, kv_head, part;
    int first, row_count;         /* the block's first row, and the rows of its heads */
    int queries, keys;            /* the batch entry has these */
    int query_entry, first_query; /* entry of Q, and the row there of query 0 */
    int key_entry, first_key;
    int begin, end;        /* keys that the block reads */
    int all_low, all_high; /* keys that all of its queries see */
};

static __device__ __forceinline__ int64_t tgi_attend_offset(const tg_heads &heads, int entry,
                                                            int head, int row)
{
    return entry * heads.batch_stride + head * heads.head_stride + row * heads.row_stride;
}

/* Returns the address of the unit of a tile of `Rows` rows that holds column 8 `unit` of a row. */
template <int Rows>
static __device__ __forceinline__ uint32_t tgi_attend_find_unit(uint32_t tile, int row, int unit)
{
    return tile + (unit / 8 * Rows + row) * 128 + (unit % 8 ^ row % 8) * 16;
}

/* Copies `Rows` rows of `size` elements in the background, with zeros after them. find(row) returns
 * where a row begins, or TGI_ATTEND_NO_ROW for a row of zeros. */
template <int Head, int Rows, int Threads, typename Find>
static __device__ __forceinline__ void tgi_attend_copy(uint32_t tile, const tg_heads &heads,
                                                       int size, int has_units, Find find)
{
    const uint16_t *const data = static_cast<const uint16_t *>(heads.data);
    const int unit = tgi_thread() % (Head / 8);
    const int most = max(0, min(8, size - 8 * unit));
#pragma unroll 1
    for (int row = tgi_thread() / (Head / 8); row < Rows; row += Threads / (Head / 8)) {
        const int64_t at = find(row);
        const int count = at == TGI_ATTEND_NO_ROW ? 0 : most;
        const uint32_t target = tgi_attend_find_unit<Rows>(tile, row, unit);
        if (has_units) {
            tgi_copy_async<16>(target, data + (count > 0 ? at + 8 * unit : 0), 2 * count);
            continue;
        }
#pragma unroll 1
        for (int e = 0; e < 8; e++)
            tgi_write_shared_2(target + 2 * e,
                               e < count ? data[at + (8 * unit + e) * heads.element_stride] : 0);
    }
}

/* Copies `Rows` rows, `stride` elements apart from `first` on, of which 16 bytes at once can be
 * copied. It is tgi_attend_copy with a fraction of its instructions. */
template <int Head, int Rows, int Threads>
static __device__ __forceinline__ void tgi_attend_copy_run(uint32_t tile, const tg_heads &heads,
                                                           int size, int64_t first, int64_t stride)
{
    enum { PASS = Threads / (Head / 8) };
    const int unit = tgi_thread() % (Head / 8), row = tgi_thread() / (Head / 8);
    const int bytes = 2 * max(0, min(8, size - 8 * unit));
    const uint16_t *from = static_cast<const uint16_t *>(heads.data) + first + row * stride +
                           (bytes > 0 ? 8 * unit : 0);
#pragma unroll 8
    for (int i = 0; i < Rows / PASS; i++) {
        tgi_copy_async<16>(tgi_attend_find_unit<Rows>(tile, row + i * PASS, unit), from, bytes);
        from += PASS * stride;
    }
}

/* Copies the rows of K or V (`is_v`) from key_0 on, if the block reads any. */
template <class Products>
static __device__ __forceinline__ void tgi_attend_copy_keys(const tgi_attend_args &p,
                                                            const tgi_attend_place &place, int is_v,
                                                            int key_0, uint32_t tile)
{
    const tg_attention &a = p.attention;
    const tg_heads &heads = is_v ? a.v : a.k;
    const int is_paged = a.page_rows > 0;
    const int32_t *const pages = a.pages + place.batch * a.pages_stride;
    const int64_t first = tgi_attend_offset(heads, is_paged ? 0 : place.key_entry, place.kv_head,
                                            is_paged ? 0 : place.first_key);
    if (key_0 < place.begin || key_0 >= place.end)
        return;
    if (p.has_units[1 + is_v] && !is_paged && key_0 + Products::keys <= place.keys) {
        tgi_attend_copy_run<Products::head, Products::keys, Products::threads>(
            tile, heads, static_cast<int>(is_v ? a.v_head_size : a.head_size),
            first + key_0 * heads.row_stride, heads.row_stride);
        return;
    }
    tgi_attend_copy<Products::head, Products::keys, Products::threads>(
        tile, heads, static_cast<int>(is_v ? a.v_head_size : a.head_size), p.has_units[1 + is_v],
        [&](int row) {
            const int key = key_0 + row;
            int64_t page_at = 0;
            int in_page = key;
            if (key >= place.keys)
                return TGI_ATTEND_NO_ROW;
            if (is_paged) {
                const int page = tgi_divide(key, p.page_rows);
                page_at = pages[page] * heads.batch_stride;
                in_page -= page * p.page_rows.value;
            }
            return first + page_at + in_page * heads.row_stride;
        });
}

#endif
