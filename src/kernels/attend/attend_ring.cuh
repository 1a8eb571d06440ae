/*
 * The ring of tiles of K and V in shared memory (sm_90a), and the warpgroup that fills it. Tiles
 * come in the order of their use: K of step 0, K of step 1, V of step 0, K of step 2, V of step 1
 * and so on. Barriers lie behind the tiles.
 */
#ifndef TGI_ATTEND_RING_CUH
#define TGI_ATTEND_RING_CUH

#include "kernels/attend/attend_scores.cuh"
#include "kernels/ptx/named_barrier.cuh"
#include "kernels/ptx/tma_heads.cuh"

/* The sizes of a block of `Queries` rows, 64 for each warpgroup that computes, and of a ring of
 * `Tiles` tiles of `Keys` rows. */
template <tg_type Type, int Head, int Queries, int Keys, int Tiles> struct tgi_attend_ring_sizes {
    static constexpr tg_type type = Type;
    static constexpr int head = Head, rows = Queries, keys = Keys, tiles = Tiles;
    static constexpr int groups = Queries / 64;
    static constexpr int copiers = 128; /* threads that copy, the last of the block */
    static constexpr int copy_registers = groups == 2 ? 40 : 32;
    static constexpr int registers = groups == 2 ? 232 : 160;
    static constexpr int tile_bytes = 2 * Head * Keys, q_bytes = 2 * Head * Queries;
};

/* A place in the ring: that of one tile. */
template <class Sizes> struct tgi_attend_ring {
    const uint32_t tiles;
    uint32_t stage, round;

    __device__ __forceinline__ explicit tgi_attend_ring(uint32_t q)
        : tiles(q + Sizes::q_bytes), stage(0), round(0)
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

    __device__ __forceinline__ uint32_t find_q_full(void) const
    {
        return find_full(Sizes::tiles);
    }

    __device__ __forceinline__ uint32_t find_q_empty(void) const
    {
        return find_empty(Sizes::tiles);
    }

    /* A word for each place: round + 1 if wild elements of the tile were replaced. */
    __device__ __forceinline__ uint32_t find_wild(uint32_t at) const
    {
        return find_full(Sizes::tiles + 1) + 4 * at;
    }

    __device__ __forceinline__ void wait_full(void) const
    {
        tgi_barrier_wait(find_full(stage), round & 1);
    }

    __device__ __forceinline__ int is_wild(void) const
    {
        return tgi_read_shared_word(find_wild(stage)) == round + 1;
    }

    /* A warp has read the tile. */
    __device__ __forceinline__ void release(void) const
    {
        if (tgi_thread() % 32 == 0)
            tgi_barrier_arrive(find_empty(stage));
    }

    __device__ __forceinline__ void release_q(void) const
    {
        if (tgi_thread() % 32 == 0)
            tgi_barrier_arrive(find_q_empty());
    }

    /* Initialises the barriers of the block. */
    static __device__ __forceinline__ void open(uint32_t q)
    {
        const tgi_attend_ring ring(q);
        if (tgi_thread() == 0) {
            for (int i = 0; i <= Sizes::tiles; i++) {
                tgi_barrier_init(ring.find_full(i), Sizes::copiers / 32);
                tgi_barrier_init(ring.find_empty(i), 4 * Sizes::groups);
                tgi_write_shared_4(ring.find_wild(i), 0.0f);
            }
            tgi_fence_barrier_init();
        }
        __syncthreads();
    }
};

/* Copies a tile of K or V (`is_v`) by TMA. */
template <class Sizes>
static __device__ __forceinline__ void
tgi_attend_copy_boxes(const tgi_attend_args &p, const tgi_attend_place &place, int is_v, int key_0,
                      uint32_t tile, uint32_t full)
{
    enum { KEYS = Sizes::keys, PANELS = Sizes::head / 64 };
    const tg_attention &a = p.attention;
    const int lane = tgi_thread() % 32;
    if (lane == 0)
        tgi_barrier_expect(full, Sizes::tile_bytes);
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < PANELS * (KEYS / p.box_rows); i += 32) {
        const int row = i / PANELS * p.box_rows, key = key_0 + row;
        int entry = place.key_entry, at = place.first_key + key;
        if (a.page_rows > 0) {
            const int page = tgi_divide(key, p.page_rows), is_there = key < place.keys;
            entry = is_there ? a.pages[place.batch * a.pages_stride + page] : 0;
            at = is_there ? key - page * p.page_rows.value : -KEYS; /* outside: zeros */
        }
        tgi_tma_load_head(tile + (i % PANELS * KEYS + row) * 128, &p.map[is_v], full,
                          i % PANELS * 64, at, place.kv_head, entry);
    }
}

/* Copies queries and keys of all tiles of the block. */
template <class Sizes> struct tgi_attend_feeder {
    enum { KEYS = Sizes::keys };
    const tgi_attend_args &p;
    tgi_attend_ring<Sizes> ring;
    const uint32_t q;

    /* Tells that all that the warp has copied is there. */
    static __device__ __forceinline__ void announce(uint32_t full)
    {
        tgi_fence_async_proxy();
        __syncwarp();
        if (tgi_thread() % 32 == 0)
            tgi_barrier_arrive(full);
    }

    /* Copies the next tile. Threads copy what has no boxes, and V of which a row does not see all,
     * for they look at it. */
    __device__ __forceinline__ void copy_tile(const tgi_attend_place &place, int is_v, int key_0)
    {
        const uint32_t full = ring.find_full(ring.stage), tile = ring.find_tile();
        const int is_edge = is_v && tgi_attend_is_edge<KEYS>(place, key_0);
        const int is_whole = !p.attention.has_key_offsets || key_0 + KEYS <= place.keys;
        tgi_barrier_wait(ring.find_empty(ring.stage), ~ring.round & 1);
        if (p.has_map[is_v] && is_whole && !is_edge) {
            if (tgi_thread() % Sizes::copiers < 32)
                tgi_attend_copy_boxes<Sizes>(p, place, is_v, key_0, tile, full);
            else if (tgi_thread() % 32 == 0)
                tgi_barrier_arrive(full);
        } else {
            tgi_attend_copy_keys<Sizes>(p, place, is_v, key_0, tile);
            tgi_copy_async_commit();
            tgi_copy_async_wait<0>();
            if (is_edge && tgi_attend_tame<Sizes>(tile))
                tgi_write_shared_4(ring.find_wild(ring.stage), __uint_as_float(ring.round + 1));
            announce(full);
        }
        ring.advance();
    }

    __device__ __forceinline__ void copy_queries(const tgi_attend_place &place, uint32_t parity)
    {
        tgi_barrier_wait(ring.find_q_empty(), parity);
        tgi_attend_copy_queries<Sizes>(p, place, q);
        tgi_copy_async_wait<0>();
        announce(ring.find_q_full());
    }

    __device__ __forceinline__ void copy_all(void)
    {
        uint32_t parity = 1;
        for (unsigned turn = 0; turn * gridDim.x < p.block_count; turn++) {
            const tgi_attend_place place = tgi_attend_find_turn<Sizes::rows, KEYS>(p, turn);
            if (place.first >= place.row_count || place.begin >= place.end)
                continue;
            const int last = 2 * ((place.end - place.begin + KEYS - 1) / KEYS) - 1;
#pragma unroll 1
            for (int i = 0; i <= last; i++) {
                const int is_v = i > 0 && (i % 2 == 0 || i == last);
                copy_tile(place, is_v, place.begin + (is_v ? (i - 1) / 2 : (i + 1) / 2) * KEYS);
                if (i == 0)
                    copy_queries(place, parity);
            }
            parity ^= 1;
        }
    }
};

#endif
