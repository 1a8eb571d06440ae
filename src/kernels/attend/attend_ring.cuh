/*
 * Declares the ring of tiles of K and V in shared memory (sm_90a), and the warpgroup that fills it.
 * Tiles come in the order of their use: K of step 0, K of step 1, V of step 0, K of step 2, V of
 * step 1 and so on. Barriers lie behind the tiles.
 */
#ifndef TGI_ATTEND_RING_CUH
#define TGI_ATTEND_RING_CUH

#include "kernels/attend/attend_queries.cuh"
#include "kernels/attend/attend_nonfinite.cuh"
#include "kernels/ptx/named_barrier.cuh"
#include "kernels/ptx/tma_heads.cuh"

/* The sizes of a block of `Queries` rows, 64 for each warpgroup that computes, and of a ring of
 * `Tiles` tiles of `Keys` rows. */
template <tg_type Type, int Head, int Queries, int Keys, int Tiles> struct tgi_attend_ring_sizes {
    static constexpr tg_type type = Type;
    static constexpr int head = Head, rows = Queries, keys = Keys, tiles = Tiles;
    static constexpr int groups = Queries / 64, q_places = TGI_ATTEND_QUERY_PLACES(Head);
    static constexpr int copiers = 128; /* threads that copy, the last of the block */
    static constexpr int copy_registers = groups == 2 ? 40 : 32;
    static constexpr int registers = groups == 2 ? 232 : 160;
    static constexpr int tile_bytes = 2 * Head * Keys, q_bytes = 2 * Head * Queries;
};

/* Passes a place to the warpgroups that compute, by way of shared memory. */
static __device__ __forceinline__ void tgi_attend_pass_place(const tgi_attend_place &place,
                                                             uint32_t shared)
{
    int words[20] = {};
    memcpy(words, &place, sizeof place);
    TGI_FOR_UNROLLED(i, 5)
    tgi_write_shared_unit(shared + 16 * i, {static_cast<uint32_t>(words[4 * i]),
                                            static_cast<uint32_t>(words[4 * i + 1]),
                                            static_cast<uint32_t>(words[4 * i + 2]),
                                            static_cast<uint32_t>(words[4 * i + 3])});
}

static __device__ __forceinline__ tgi_attend_place tgi_attend_get_place(uint32_t shared)
{
    int words[20];
    tgi_attend_place place;
    TGI_FOR_UNROLLED(i, 5)
    {
        const uint4 unit = tgi_read_shared_unit(shared + 16 * i);
        words[4 * i] = unit.x;
        words[4 * i + 1] = unit.y;
        words[4 * i + 2] = unit.z;
        words[4 * i + 3] = unit.w;
    }
    TGI_FOR_UNROLLED(i, 20)
    words[i] = tgi_make_uniform(words[i]);
    __syncwarp(); /* one lane will release what all have read */
    memcpy(&place, words, sizeof place);
    return place;
}

/* A position in the ring, at one tile. */
template <class Sizes> struct tgi_attend_ring {
    const uint32_t tiles;
    uint32_t stage, round;

    __device__ __forceinline__ explicit tgi_attend_ring(uint32_t q)
        : tiles(q + Sizes::q_places * Sizes::q_bytes), stage(0), round(0)
    {
    }

    __device__ __forceinline__ void advance(void)
    {
        if (++stage == Sizes::tiles) {
            stage = 0;
            round++;
        }
    }

    __device__ __forceinline__ uint32_t find_tile(void) const
    {
        return tiles + stage * Sizes::tile_bytes;
    }

    __device__ __forceinline__ uint32_t find_full(uint32_t at) const
    {
        return tiles + Sizes::tiles * Sizes::tile_bytes + 16 * at;
    }

    __device__ __forceinline__ uint32_t find_empty(uint32_t at) const
    {
        return find_full(at) + 8;
    }

    __device__ __forceinline__ uint32_t find_q_full(uint32_t at) const
    {
        return find_full(Sizes::tiles + at);
    }

    __device__ __forceinline__ uint32_t find_q_empty(uint32_t at) const
    {
        return find_empty(Sizes::tiles + at);
    }

    /* Returns the barrier on which TMA counts a tile that threads inspect before it is full. */
    __device__ __forceinline__ uint32_t find_landed(uint32_t at) const
    {
        return find_full(Sizes::tiles + Sizes::q_places) + 8 * at;
    }

    /* Returns the address of the word of a place. It is round + 1 if Inf or NaN of the tile were
     * replaced. */
    __device__ __forceinline__ uint32_t find_nonfinite(uint32_t at) const
    {
        return find_landed(Sizes::tiles) + 4 * at;
    }

    /* Returns the address of the place of a tile of queries. */
    __device__ __forceinline__ uint32_t find_place(uint32_t at) const
    {
        return find_full(0) + 256 + 80 * at;
    }

    __device__ __forceinline__ void wait_full(void) const
    {
        tgi_barrier_wait(find_full(stage), round & 1);
    }

    __device__ __forceinline__ int is_nonfinite(void) const
    {
        return tgi_read_shared_word(find_nonfinite(stage)) == round + 1;
    }

    /* Releases the tile for this warp, which has read it. */
    __device__ __forceinline__ void release(void) const
    {
        if (tgi_thread() % 32 == 0)
            tgi_barrier_arrive(find_empty(stage));
    }

    __device__ __forceinline__ void release_q(uint32_t at) const
    {
        if (tgi_thread() % 32 == 0)
            tgi_barrier_arrive(find_q_empty(at));
    }

    /* Initializes the barriers of the block and prefetches the tensor maps. */
    static __device__ __forceinline__ void open(const tgi_attend_args &p, uint32_t q)
    {
        const tgi_attend_ring ring(q);
        if (tgi_thread() == 0) {
            TGI_FOR_UNROLLED(i, 4)
            if (p.has_map[i])
                tgi_prefetch_map(&p.map[i]);
            for (int i = 0; i < Sizes::tiles + Sizes::q_places; i++) {
                tgi_barrier_init(ring.find_full(i), 1);
                tgi_barrier_init(ring.find_empty(i), 4 * Sizes::groups);
            }
            for (int i = 0; i < Sizes::tiles; i++) {
                tgi_barrier_init(ring.find_landed(i), 1);
                tgi_write_shared_4(ring.find_nonfinite(i), 0.0f);
            }
            tgi_fence_barrier_init();
        }
        __syncthreads();
    }
};

/* Copies a tile of K, or of V if is_v is 1, by TMA and arrives at its barrier. One warp calls
 * it. */
template <class Sizes>
static __device__ __forceinline__ void
tgi_attend_copy_boxes(const tgi_attend_args &p, const tgi_attend_place &place, int is_v, int key_0,
                      uint32_t tile, uint32_t barrier)
{
    enum { KEYS = Sizes::keys, STRIPS = Sizes::head / 64 };
    const tg_attention &a = p.attention;
    const int lane = tgi_thread() % 32;
    if (a.page_rows == 0) {
        if (tgi_elect()) {
            tgi_barrier_expect(barrier, Sizes::tile_bytes);
            TGI_FOR_UNROLLED(i, STRIPS)
            tgi_tma_load_head(tile + i * KEYS * 128, &p.map[is_v], barrier, i * 64,
                              place.first_key + key_0, place.kv_head, place.key_entry);
        }
        __syncwarp();
        return;
    }
    if (lane == 0)
        tgi_barrier_expect(barrier, Sizes::tile_bytes);
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < STRIPS * (KEYS / p.box_rows); i += 32) {
        const int row = i / STRIPS * p.box_rows, key = key_0 + row;
        const int page = tgi_divide(key, p.page_rows), is_there = key < place.keys;
        tgi_tma_load_head(
            tile + (i % STRIPS * KEYS + row) * 128, &p.map[is_v], barrier, i % STRIPS * 64,
            is_there ? key - page * p.page_rows.value : -KEYS, /* outside: zeros */
            place.kv_head, is_there ? a.pages[place.batch * a.pages_stride + page] : 0);
    }
    __syncwarp();
}

/* Copies the block's queries by TMA and arrives at the barrier. One warp calls it. The queries
 * belong to one head, or there is one query of each head, and the heads are the rows of the map. */
template <class Sizes>
static __device__ __forceinline__ void tgi_attend_copy_query_boxes(const tgi_attend_args &p,
                                                                   const tgi_attend_place &place,
                                                                   uint32_t q, uint32_t barrier)
{
    const int has_heads = p.attention.m == 1;
    if (tgi_elect()) {
        tgi_barrier_expect(barrier, 2 * Sizes::head * Sizes::rows);
        TGI_FOR_UNROLLED(i, Sizes::head / 64)
        tgi_tma_load_head(q + i * Sizes::rows * 128, &p.map[2], barrier, i * 64,
                          place.first + (has_heads ? place.first_head : 0),
                          has_heads ? 0 : place.first_head, place.query_entry);
    }
    __syncwarp();
}

/*
 * Copies queries and keys of all tiles of the block. If TMA copies K and V, the first warp does
 * nothing else, because it would otherwise not keep up with the products. The other warps then copy
 * queries, by TMA too if possible, and replace Inf and NaN in V for steps that some row does not
 * see whole. If TMA cannot copy K and V, all threads copy.
 */
template <class Sizes> struct tgi_attend_filler {
    enum { KEYS = Sizes::keys, COPIERS = Sizes::copiers, OTHERS = COPIERS - 32, BARRIER = 8 };
    const tgi_attend_args &p;
    tgi_attend_ring<Sizes> ring;
    const uint32_t q;
    uint32_t copied; /* tiles of queries */
    uint32_t landed; /* bit i: parity of TMA's next phase at place i */

    /* Signals that everything that `Threads` threads have copied has arrived. Where any of them has
     * replaced Inf or NaN, the thread that arrives writes the word of the place. */
    template <int Threads> __device__ __forceinline__ void announce(uint32_t full, int is_nonfinite)
    {
        tgi_fence_async_proxy();
        const int is_any = tgi_named_barrier_any(BARRIER, Threads, is_nonfinite);
        if (tgi_find_copier<COPIERS>() != COPIERS - 1)
            return;
        if (is_any)
            tgi_write_shared_4(ring.find_nonfinite(ring.stage), __uint_as_float(ring.round + 1));
        tgi_barrier_arrive(full);
    }

    /* Copies the queries of a tile, and passes its place to the warpgroups that compute. Where TMA
     * copies them, the last warp does both alone. The thread that passes the place is the one that
     * arrives for it. */
    template <int Threads>
    __device__ __forceinline__ void copy_queries(const tgi_attend_place &place)
    {
        const int copier = tgi_find_copier<COPIERS>(), is_empty = place.begin >= place.end;
        const uint32_t at = copied % Sizes::q_places, to = q + at * Sizes::q_bytes;
        if (p.has_map[2] && tgi_make_uniform(copier / 32) < COPIERS / 32 - 1)
            return;
        tgi_barrier_wait(ring.find_q_empty(at), ~(copied++ / Sizes::q_places) & 1);
        if (p.has_map[2] ? tgi_elect() : copier == COPIERS - 1) {
            tgi_attend_pass_place(place, ring.find_place(at));
            if (is_empty)
                tgi_barrier_arrive(ring.find_q_full(at));
        }
        __syncwarp();
        if (is_empty)
            return;
        if (p.has_map[2]) {
            tgi_attend_copy_query_boxes<Sizes>(p, place, to, ring.find_q_full(at));
            return;
        }
        tgi_attend_copy_queries<Sizes, Threads>(p, place, to);
        tgi_copy_async_wait<0>();
        announce<Threads>(ring.find_q_full(at), 0);
    }

    /* Replaces Inf and NaN in this thread's share of a tile of V. Returns 1 if there were any. */
    template <int Threads> __device__ __forceinline__ int clear_nonfinite(void) const
    {
        return tgi_attend_clear_nonfinite<Sizes, Threads>(ring.find_tile(),
                                                          tgi_find_copier<Threads>());
    }

    /* Copies the next tile. Threads copy it if TMA cannot, and inspect it if rows do not see all of
     * it. */
    __device__ __forceinline__ void copy_tile(const tgi_attend_place &place, int is_v, int key_0,
                                              int is_edge)
    {
        const int is_whole = !p.attention.has_key_offsets || key_0 + KEYS <= place.keys;
        const uint32_t full = ring.find_full(ring.stage);
        tgi_barrier_wait(ring.find_empty(ring.stage), ~ring.round & 1);
        if (p.has_map[is_v] && is_whole && !is_edge) {
            if (tgi_find_copier<COPIERS>() < 32)
                tgi_attend_copy_boxes<Sizes>(p, place, is_v, key_0, ring.find_tile(), full);
            return;
        }
        tgi_attend_copy_keys<Sizes>(p, place, is_v, key_0, ring.find_tile());
        tgi_copy_async_commit();
        tgi_copy_async_wait<0>();
        int is_nonfinite = 0;
        if (is_edge) {
            tgi_named_barrier_sync(BARRIER, COPIERS); /* threads inspect what others have copied */
            is_nonfinite = clear_nonfinite<COPIERS>();
        }
        announce<COPIERS>(full, is_nonfinite);
    }

    /* Calls begin(place) for each tile of queries, and visit(place, is_v, key_0, is_edge) for each
     * tile of K or V. is_edge is 1 for a tile of V that not all rows see whole. */
    template <typename Begin, typename Visit>
    __device__ __forceinline__ void walk(Begin begin, Visit visit)
    {
        for (unsigned number = 0; number * gridDim.x < p.block_count; number++) {
            const tgi_attend_place place = tgi_attend_find_own_tile<KEYS>(p, number);
            if (number == 0)
                tgi_wait_for_stream();
            begin(place);
            if (place.first >= place.row_count || place.begin >= place.end)
                continue;
            const int last = 2 * ((place.end - place.begin + KEYS - 1) / KEYS) - 1;
#pragma unroll 1
            for (int i = 0; i <= last; i++) {
                const int is_v = i > 0 && (i % 2 == 0 || i == last);
                const int key_0 = place.begin + (is_v ? (i - 1) / 2 : (i + 1) / 2) * KEYS;
                visit(place, is_v, key_0, is_v && tgi_attend_hides<KEYS>(place, key_0));
                ring.advance();
            }
        }
    }

    __device__ __forceinline__ void copy_all(void)
    {
        if (!p.has_map[0] || !p.has_map[1] || p.attention.has_key_offsets) {
            walk([&](const tgi_attend_place &place) { copy_queries<COPIERS>(place); },
                 [&](const tgi_attend_place &place, int is_v, int key_0, int is_edge) {
                     copy_tile(place, is_v, key_0, is_edge);
                 });
        } else if (tgi_make_uniform(tgi_find_copier<COPIERS>() / 32) == 0) {
            walk([](const tgi_attend_place &) {},
                 [&](const tgi_attend_place &place, int is_v, int key_0, int is_edge) {
                     const int stage = ring.stage;
                     tgi_barrier_wait(ring.find_empty(stage), ~ring.round & 1);
                     tgi_attend_copy_boxes<Sizes>(p, place, is_v, key_0, ring.find_tile(),
                                                  is_edge ? ring.find_landed(stage)
                                                          : ring.find_full(stage));
                 });
        } else {
            walk([&](const tgi_attend_place &place) { copy_queries<OTHERS>(place); },
                 [&](const tgi_attend_place &, int, int, int is_edge) {
                     if (!is_edge)
                         return;
                     tgi_barrier_wait(ring.find_landed(ring.stage), landed >> ring.stage & 1);
                     landed ^= 1u << ring.stage;
                     announce<OTHERS>(ring.find_full(ring.stage), clear_nonfinite<OTHERS>());
                 });
        }
    }
};

#endif
