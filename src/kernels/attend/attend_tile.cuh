/*
 * Declares tiles of attention in shared memory. They have rows of Q, K or V, 16-bit elements, in
 * strips of 64 columns. A strip has all rows, of 128 bytes each. The unit of 16 bytes at column 8 c
 * of row r lies at place c ^ r % 8 of its row, so that ldmatrix has no bank conflicts. This is the
 * 128-byte swizzle of wgmma.
 */
#ifndef TGI_ATTEND_TILE_CUH
#define TGI_ATTEND_TILE_CUH

#include "kernels/attend/attend_args.h"
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/launch.cuh"

#define TGI_ATTEND_NO_ROW INT64_MIN
#define TGI_FOR_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)

/* The place of a block has queries of one batch entry, of one head or of all heads that share a
 * head of K and V, and the keys that some of them see. Row r is query r % queries of head
 * first_head + r / queries. */
struct tgi_attend_place {
    int batch, first_head, kv_head, split;
    int first, row_count;         /* the block's first row, and the rows of its heads */
    int queries, keys;            /* numbers of the batch entry */
    int query_entry, first_query; /* entry of Q, and the row there of query 0 */
    int key_entry, first_key;
    int begin, end;        /* keys that the block reads */
    int all_low, all_high; /* keys that all of its queries see */
    int filled;            /* rows of V from this key on are zeros in shared memory */
};

static __device__ __forceinline__ int64_t tgi_attend_offset(const tg_heads &heads, int entry,
                                                            int head, int row)
{
    return entry * heads.batch_stride + head * heads.head_stride + row * heads.row_stride;
}

/* Returns the address of the unit at column 8 `unit` of a row, in a tile of `Rows` rows. */
template <int Rows>
static __device__ __forceinline__ uint32_t tgi_attend_find_unit(uint32_t tile, unsigned row,
                                                                unsigned unit)
{
    return tile + (unit / 8 * Rows + row) * 128 + ((unit ^ row) & 7) * 16;
}

/* Returns the address of the unit i times `Apart` rows further than the one at `at`, whose row is
 * less than `Apart`. Four rows further, a unit has the other half of its row. */
template <int Apart>
static __device__ __forceinline__ uint32_t tgi_attend_descend(uint32_t at, int i)
{
    static_assert(Apart % 8 == 0 || Apart == 4, "the order of units repeats");
    return (Apart == 4 ? at ^ i % 2 * 64 : at) + i * Apart * 128;
}

/* A line has the addresses from which a lane reads the matrices of a tile, beginning at its own row
 * and unit. Distances of 8 rows and of two units are offsets in the instruction, or one exclusive
 * or. */
struct tgi_attend_line {
    uint32_t at[4]; /* addresses 0, 2, 4 and 6 units further in a row */

    __device__ __forceinline__ tgi_attend_line(uint32_t tile, unsigned row, unsigned unit)
        : tgi_attend_line(tgi_attend_find_unit<0>(tile, row, unit))
    {
    }

    explicit __device__ __forceinline__ tgi_attend_line(uint32_t first)
    {
        TGI_FOR_UNROLLED(i, 4)
        at[i] = first ^ 32 * i;
    }

    /* Returns the address `row` rows and `unit` units further. `row` is a multiple of 8, and `unit`
     * is even. */
    template <int Rows> __device__ __forceinline__ uint32_t find(int row, int unit) const
    {
        return at[unit / 2 % 4] + (unit / 8 * Rows + row) * 128;
    }
};

/* Returns the thread's number among the threads that copy, which are the whole block or its last
 * warpgroup. */
template <int Copiers> static __device__ __forceinline__ int tgi_find_copier(void)
{
    /* Divisions of unsigned numbers are shifts. */
    return static_cast<int>(static_cast<unsigned>(tgi_reread_thread()) % Copiers);
}

/* Copies `Rows` rows of `size` elements in the background, with zeros behind them. find(row)
 * returns the address of a row, or TGI_ATTEND_NO_ROW for a row of zeros. */
template <int Head, int Rows, int Copiers, typename Find>
static __device__ __forceinline__ void tgi_attend_copy(uint32_t tile, const tg_heads &heads,
                                                       int size, int has_units, Find find)
{
    enum { UNITS = Head / 8, ROWS_APART = Copiers / UNITS };
    const uint16_t *const data = static_cast<const uint16_t *>(heads.data);
    const int thread = tgi_find_copier<Copiers>(), unit = thread % UNITS;
    const int most = max(0, min(8, size - 8 * unit));
    if (thread >= ROWS_APART * UNITS) /* too few are left for a row, as for heads of 192 */
        return;
#pragma unroll 1
    for (int row = thread / UNITS; row < Rows; row += ROWS_APART) {
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

/* Copies `Rows` rows of `size` elements in the background, with zeros behind them. The first row
 * has offset `first`, and `row_count` rows exist. Units of 16 bytes can be copied. */
template <int Head, int Rows, int Copiers>
static __device__ __forceinline__ void tgi_attend_fill(uint32_t tile, const tg_heads &heads,
                                                       int size, int64_t first, int row_count)
{
    enum { UNITS = Head / 8, ROWS_APART = Copiers / UNITS };
    const unsigned thread = static_cast<unsigned>(tgi_find_copier<Copiers>());
    const unsigned row = thread / UNITS, unit = thread % UNITS;
    const int bytes = 2 * max(0, min(8, size - 8 * static_cast<int>(unit)));
    const uint16_t *source =
        static_cast<const uint16_t *>(heads.data) + first + row * heads.row_stride + 8 * unit;
    const uint32_t target = tgi_attend_find_unit<Rows>(tile, row, unit);
    row_count = bytes > 0 ? row_count - static_cast<int>(row) : 0;
    TGI_FOR_UNROLLED(i, Rows / ROWS_APART)
    {
        const int is_there = i * ROWS_APART < row_count;
        tgi_copy_async<16>(tgi_attend_descend<ROWS_APART>(target, i),
                           is_there ? source : heads.data, is_there ? bytes : 0);
        source += ROWS_APART * heads.row_stride;
    }
}

/* Returns the offset of the first key of the block's batch entry and head. With pages, it is the
 * offset within each page. */
static __device__ __forceinline__ int64_t tgi_attend_find_first(const tgi_attend_args &p,
                                                                const tgi_attend_place &place,
                                                                const tg_heads &heads)
{
    const int is_paged = p.attention.page_rows > 0;
    return tgi_attend_offset(heads, is_paged ? 0 : place.key_entry, place.kv_head,
                             is_paged ? 0 : place.first_key);
}

/* Returns the offset of a key's row of K or V. */
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

/* Returns 1 if V of the step from key_0 on has rows that not every query of the block sees. */
template <int Keys>
static __device__ __forceinline__ int tgi_attend_hides(const tgi_attend_place &place, int key_0)
{
    return key_0 < place.all_low || min(key_0 + Keys, place.filled) > place.all_high;
}

/* Copies `Rows` rows of K or V from `key` on by accesses of 16 bytes. The rows are the row stride
 * apart. If there are threads for five rows, as for heads of 192, those of the fifth do nothing. */
template <class Products, int Rows>
static __device__ __forceinline__ void
tgi_attend_copy_run(const tgi_attend_args &p, const tgi_attend_place &place, const tg_heads &heads,
                    int size, int key, uint32_t tile)
{
    enum { UNITS = Products::head / 8, AT_ONCE = Products::copiers / UNITS };
    enum { ROWS_APART = AT_ONCE > 4 ? AT_ONCE / 4 * 4 : AT_ONCE };
    static_assert(Rows % ROWS_APART == 0, "threads copy whole rounds of rows");
    const unsigned thread = static_cast<unsigned>(tgi_find_copier<Products::copiers>());
    const unsigned row = thread / UNITS, unit = thread % UNITS;
    if (row >= ROWS_APART)
        return;
    const uint32_t target = tgi_attend_find_unit<Products::keys>(tile, row, unit);
    const int bytes = 2 * max(0, min(8, size - 8 * static_cast<int>(unit)));
    const int64_t source_stride = ROWS_APART * heads.row_stride;
    const uint16_t *source = static_cast<const uint16_t *>(heads.data) +
                             tgi_attend_find_key(p, place, heads, key) + row * heads.row_stride +
                             (bytes > 0 ? 8 * unit : 0);
#pragma unroll 8
    for (int i = 0; i < Rows / ROWS_APART; i++) {
        /* Eight rows further, a unit has the same place in its row. */
        if constexpr (ROWS_APART % 8 == 0)
            tgi_copy_async<16>(target + i * ROWS_APART * 128, source, bytes);
        else
            tgi_copy_async<16>(
                tgi_attend_find_unit<Products::keys>(tile, row + i * ROWS_APART, unit), source,
                bytes);
        source += source_stride;
    }
}

/* The copier copies tiles of K and V in pieces between products, if rows lie a row stride apart and
 * consist of whole units of 16 bytes. A thread has the same unit of every ROWS_APART-th row. Units
 * behind the rows' ends keep their contents. */
template <class Products> struct tgi_attend_copier {
    enum { UNITS = Products::head / 8, ROWS_APART = Products::copiers / UNITS };
    enum {
        PIECES = Products::keys / ROWS_APART,
        FRAGMENTS = Products::head / 16 * Products::keys / 16
    };
    enum { EVERY = FRAGMENTS / PIECES, GROUP = 4 };
    static_assert(EVERY > 0, "a piece beside each fragment of a product, or fewer");
    const uint16_t *first[2]; /* the thread's unit of key 0 of K and V, or NULL */
    int is_fit[2];            /* K and V: 1: can be copied in pieces */
    const uint16_t *source;
    int64_t source_stride;
    uint32_t target;
    int is_on; /* 1: the thread has pieces */

    __device__ __forceinline__ tgi_attend_copier(const tgi_attend_args &p,
                                                 const tgi_attend_place &place)
    {
        const unsigned thread = static_cast<unsigned>(tgi_find_copier<Products::copiers>());
        const int row = thread / UNITS, unit = thread % UNITS;
        TGI_FOR_UNROLLED(is_v, 2)
        {
            const tg_heads &heads = is_v ? p.attention.v : p.attention.k;
            const int size =
                static_cast<int>(is_v ? p.attention.v_head_size : p.attention.head_size);
            /* A K with shorter rows would leave units of the V that lay in its place. Zeros of Q
             * times their Inf are NaN. */
            is_fit[is_v] = p.has_units[1 + is_v] && p.attention.page_rows == 0 && size % 8 == 0 &&
                           (is_v || size >= p.attention.v_head_size);
            first[is_v] = static_cast<const uint16_t *>(heads.data) +
                          tgi_attend_find_first(p, place, heads) + row * heads.row_stride +
                          8 * unit;
            if (8 * unit >= size)
                first[is_v] = NULL;
        }
    }

    /* Returns where the thread's first unit lies, in bytes from the beginning of a tile. */
    static __device__ __forceinline__ uint32_t find_in_tile(void)
    {
        const unsigned thread = static_cast<unsigned>(tgi_find_copier<Products::copiers>());
        return tgi_attend_find_unit<Products::keys>(0, thread / UNITS, thread % UNITS);
    }

    /* Begins to copy the step of K or V from key_0 on, of which all keys exist if key_0 is less
     * than `end`, or none. The thread's first unit goes to `at`. */
    __device__ __forceinline__ void start(const tgi_attend_args &p, int is_v, int key_0, int end,
                                          uint32_t at)
    {
        const int64_t stride = is_v ? p.attention.v.row_stride : p.attention.k.row_stride;
        source = is_v ? first[1] : first[0];
        is_on = source != NULL && key_0 < end;
        source += key_0 * stride;
        source_stride = ROWS_APART * stride;
        target = at;
    }

    /* Copies the step of K or V from key_0 on at once, with zeros behind the keys and behind the
     * ends of their rows. */
    __device__ __forceinline__ void fill(const tgi_attend_args &p, const tgi_attend_place &place,
                                         int is_v, int key_0, uint32_t tile) const
    {
        const tg_heads &heads = is_v ? p.attention.v : p.attention.k;
        if (key_0 < place.end)
            tgi_attend_fill<Products::head, Products::keys, Products::copiers>(
                tile, heads,
                static_cast<int>(is_v ? p.attention.v_head_size : p.attention.head_size),
                tgi_attend_find_key(p, place, heads, key_0), place.keys - key_0);
    }

    /* Copies some pieces, or none, beside fragment `fragment` of FRAGMENTS. Several in a row take
     * fewer instructions. */
    __device__ __forceinline__ void copy_beside(int fragment)
    {
        TGI_FOR_UNROLLED(i, PIECES)
        if (i / GROUP * GROUP * EVERY == fragment) {
            tgi_copy_async_if<16>(tgi_attend_descend<ROWS_APART>(target, i), source, is_on);
            source += source_stride;
        }
    }
};

/* Copies the rows of K, or of V if is_v is 1, of the step from key_0 on, if the block reads any. */
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

/* The tiles of a block, or of a warp with tiles of its own. K and V of step after step, in the
 * order of their use, take turns at `Tiles` places. While a tile is read, the place of the tile
 * before is filled. */
template <class Products, int Tiles> struct tgi_attend_tiles {
    enum { KEYS = Products::keys, BYTES = 2 * Products::head * KEYS };
    const tgi_attend_args &p;
    const tgi_attend_place &place;
    const uint32_t tiles;
    uint32_t filled, tile; /* the place that is filled next, and the one that is read */
    tgi_attend_copier<Products> copier;

    __device__ __forceinline__ tgi_attend_tiles(const tgi_attend_args &args,
                                                const tgi_attend_place &at, uint32_t first)
        : p(args), place(at), tiles(first), filled(first), tile(first), copier(args, at)
    {
    }

    __device__ __forceinline__ void advance(uint32_t &at) const
    {
        at = at == tiles + (Tiles - 1) * BYTES ? tiles : at + BYTES;
    }

    __device__ __forceinline__ void copy(int i)
    {
        const int is_v = i % 2, key_0 = place.begin + i / 2 * KEYS;
        if constexpr (!Products::is_split)
            if (is_v ? copier.is_fit[1] : copier.is_fit[0]) {
                copier.fill(p, place, is_v, key_0, filled);
                return;
            }
        tgi_attend_copy_keys<Products>(p, place, is_v, key_0, filled);
    }

    /* Begins to copy all tiles but one. */
    __device__ __forceinline__ void open(void)
    {
#pragma unroll 1
        for (int i = 0; i < Tiles - 1; i++) {
            copy(i);
            tgi_copy_async_commit();
            advance(filled);
        }
    }

    /* Waits for tile i, and begins to copy the next tile to the place of the tile before. The first
     * copy to a place writes zeros behind the rows' ends. */
    __device__ __forceinline__ void start(int i)
    {
        Products::template wait_copies<Tiles - 2>();
        copy(i + Tiles - 1);
        advance(filled);
    }

    /* Does the same, but copies the next tile in pieces. `own` is the copier's find_in_tile. */
    __device__ __forceinline__ void start_pieces(int i, uint32_t own)
    {
        const int copied = i + Tiles - 1;
        copier.start(p, copied % 2, place.begin + copied / 2 * KEYS, place.end, filled + own);
        Products::template wait_copies<Tiles - 2>();
        advance(filled);
    }

    /* Returns where the lane reads the tile. */
    __device__ __forceinline__ tgi_attend_line find_line(int is_v) const
    {
        return tgi_attend_line(tile + (is_v ? Products::find_in_v() : Products::find_in_k()));
    }

    /* Ends the product with the tile. */
    __device__ __forceinline__ void end(void)
    {
        tgi_copy_async_commit();
        advance(tile);
    }
};

#endif
