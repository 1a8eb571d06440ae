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
static __device__ __forceinline__ uint32_t tgi_attend_find_unit(uint32_t tile, unsigned row,
                                                                unsigned unit)
{
    return tile + (unit / 8 * Rows + row) * 128 + ((unit ^ row) & 7) * 16;
}

/* Returns the thread's number among those that copy: all of the block or its last warpgroup. */
template <int Copiers> static __device__ __forceinline__ int tgi_find_copier(void)
{
    /* Unsigned, divisions are shifts. */
    return static_cast<int>(static_cast<unsigned>(tgi_reread_thread()) % Copiers);
}

/* Copies `Rows` rows of `size` elements in the background, with zeros after them. find(row) returns
 * where a row begins, or TGI_ATTEND_NO_ROW for a row of zeros. */
template <int Head, int Rows, int Copiers, typename Find>
static __device__ __forceinline__ void tgi_attend_copy(uint32_t tile, const tg_heads &heads,
                                                       int size, int has_units, Find find)
{
    const uint16_t *const data = static_cast<const uint16_t *>(heads.data);
    const int thread = tgi_find_copier<Copiers>(), unit = thread % (Head / 8);
    const int most = max(0, min(8, size - 8 * unit));
#pragma unroll 1
    for (int row = thread / (Head / 8); row < Rows; row += Copiers / (Head / 8)) {
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

/* Returns where the keys of the block's batch entry and head begin, in pages: in each page. */
static __device__ __forceinline__ int64_t tgi_attend_find_first(const tgi_attend_args &p,
                                                                const tgi_attend_place &place,
                                                                const tg_heads &heads)
{
    const int is_paged = p.attention.page_rows > 0;
    return tgi_attend_offset(heads, is_paged ? 0 : place.key_entry, place.kv_head,
                             is_paged ? 0 : place.first_key);
}

/* Returns where a key's row of K or V begins. */
static __device__ __forceinline__ int64_t tgi_attend_find_key(const tgi_attend_args &p,
                                                              const tgi_attend_place &place,
                                                              const tg_heads &heads, int key)
{
    const tg_attention &a = p.attention;
    int64_t page_at = 0;
    if (a.page_rows > 0) {
        const int page = tgi_divide(key, p.page_rows);
        page_at = a.pages[place.batch * a.pages_stride + page] * heads.batch_stride;
        key -= page * p.page_rows.value;
    }
    return tgi_attend_find_first(p, place, heads) + page_at + key * heads.row_stride;
}

/* Returns 1 if not every query of the block sees all keys of the step from key_0 on. */
template <int Keys>
static __device__ __forceinline__ int tgi_attend_is_edge(const tgi_attend_place &place, int key_0)
{
    return key_0 < place.all_low || key_0 + Keys > place.all_high;
}

/* Copies `Rows` rows of K or V from `key` on, which lie a row's stride apart, 16 bytes at once. */
template <class Products, int Rows>
static __device__ __forceinline__ void
tgi_attend_copy_run(const tgi_attend_args &p, const tgi_attend_place &place, const tg_heads &heads,
                    int size, int key, uint32_t tile)
{
    enum { UNITS = Products::head / 8, PASS = Products::copiers / UNITS };
    const unsigned thread = static_cast<unsigned>(tgi_find_copier<Products::copiers>());
    const unsigned row = thread / UNITS, unit = thread % UNITS;
    const uint32_t target = tgi_attend_find_unit<Products::keys>(tile, row, unit);
    const int bytes = 2 * max(0, min(8, size - 8 * static_cast<int>(unit)));
    const int64_t pass = PASS * heads.row_stride;
    const uint16_t *source = static_cast<const uint16_t *>(heads.data) +
                             tgi_attend_find_key(p, place, heads, key) + row * heads.row_stride +
                             (bytes > 0 ? 8 * unit : 0);
#pragma unroll 8
    for (int i = 0; i < Rows / PASS; i++) {
        /* Eight rows on, a unit has the same place in its row. */
        if constexpr (PASS % 8 == 0)
            tgi_copy_async<16>(target + i * PASS * 128, source, bytes);
        else
            tgi_copy_async<16>(tgi_attend_find_unit<Products::keys>(tile, row + i * PASS, unit),
                               source, bytes);
        source += pass;
    }
}

/* Copies the rows of K or V (`is_v`) of the step from key_0 on, if the block reads any. */
template <class Products>
static __device__ __forceinline__ void tgi_attend_copy_keys(const tgi_attend_args &p,
                                                            const tgi_attend_place &place, int is_v,
                                                            int key_0, uint32_t tile)
{
    enum { KEYS = Products::keys, RUN = TGI_ATTEND_RUN };
    const tg_heads &heads = is_v ? p.attention.v : p.attention.k;
    const int size = static_cast<int>(is_v ? p.attention.v_head_size : p.attention.head_size);
    if (key_0 < place.begin || key_0 >= place.end)
        return;
    if (p.has_units[1 + is_v] && p.has_runs && key_0 + KEYS <= place.keys) {
        if (p.attention.page_rows == 0) {
            tgi_attend_copy_run<Products, KEYS>(p, place, heads, size, key_0, tile);
            return;
        }
#pragma unroll 1
        for (int row = 0; row < KEYS; row += RUN)
            tgi_attend_copy_run<Products, RUN>(p, place, heads, size, key_0 + row,
                                               tile + row * 128);
        return;
    }
    tgi_attend_copy<Products::head, KEYS, Products::copiers>(
        tile, heads, size, p.has_units[1 + is_v], [&](int row) {
            const int key = key_0 + row;
            return key < place.keys ? tgi_attend_find_key(p, place, heads, key) : TGI_ATTEND_NO_ROW;
        });
}

#endif
