/*
 * Attention of few queries runs in clusters (sm_90a). The warps of all blocks of a cluster have the
 * same 16 queries and share out the keys. Their states are joined in shared memory, first within
 * each block.
 */
#ifndef TGI_ATTEND_CLUSTERS_CUH
#define TGI_ATTEND_CLUSTERS_CUH

#include "kernels/attend/attend.cuh"
#include "kernels/attend/attend_dense.cuh"
#include "kernels/attend/attend_ring.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/cluster_memory.cuh"

template <tg_type Type, int Head, int Keys>
struct tgi_attend_by_clusters : tgi_attend_by_splits<Type, Head, Keys> {
    static constexpr int is_clustered = 1, has_room = 1, tile_bytes = 2 * Head * Keys;

    static __device__ __forceinline__ int find_cluster(void)
    {
        return tgi_cluster_index();
    }

    static __device__ __forceinline__ int find_rank(void)
    {
        return tgi_cluster_rank();
    }

    /* The zeros that lanes wrote for Inf and NaN must precede TMA's next copy to their place. */
    static __device__ __forceinline__ int has_any(int is_set)
    {
        if (is_set)
            tgi_fence_async_proxy();
        return tgi_attend_by_splits<Type, Head, Keys>::has_any(is_set);
    }

    /* Returns the address of the same place in block `rank`. */
    static __device__ __forceinline__ uint32_t find(uint32_t shared, int rank)
    {
        return tgi_find_remote(shared, rank);
    }

    /* Waits for all threads of the cluster and what they have written. */
    static __device__ __forceinline__ void meet(void)
    {
        __syncwarp();
        tgi_cluster_meet();
    }

    static __device__ __forceinline__ void read(float (&value)[2], uint32_t remote)
    {
        tgi_read_remote_8(value, remote);
    }

    static __device__ __forceinline__ void read(float (&value)[4], uint32_t remote)
    {
        tgi_read_remote_16(value, remote);
    }
};

/* These tiles are copied by TMA where it can. One lane of the warp issues the copies. */
template <class Products, int Tiles>
struct tgi_attend_box_tiles : tgi_attend_tiles<Products, Tiles> {
    typedef tgi_attend_tiles<Products, Tiles> base;
    const int has_boxes;
    const uint32_t barriers; /* a barrier for each place, and one for the queries */
    const tgi_attend_offsets<Products> own_k, own_v;

    /* The barriers of the warps come behind the tiles of the last of them. */
    __device__ __forceinline__ tgi_attend_box_tiles(const tgi_attend_args &args,
                                                    const tgi_attend_place &at, uint32_t first)
        : base(args, at, first), has_boxes(args.is_dense || (args.has_map[0] && args.has_map[1] &&
                                                             !args.attention.has_key_offsets)),
          barriers(find_barriers(args, first)),
          own_k(Products::find_in_k(), get_row_bytes(args, 0), 1),
          own_v(Products::find_in_v(), get_row_bytes(args, 1), 0)
    {
        if (tgi_thread() % 32 == 0) {
            TGI_FOR_UNROLLED(i, 3)
            if (args.has_map[i])
                tgi_prefetch_map(&args.map[i]);
            TGI_FOR_UNROLLED(i, Tiles + 1)
            tgi_barrier_init(barriers + 8 * i, 1);
            tgi_fence_barrier_init();
            for (int i = 0; args.is_dense && i < Tiles / 2; i++)
                tgi_write_shared_unit(first + (2 * i + 1) * base::BYTES - 16, {0, 0, 0, 0});
        }
        __syncwarp();
    }

    /* Returns the bytes of a row of K or V in a dense tile, or 0 if tiles have strips. */
    static __device__ __forceinline__ uint32_t get_row_bytes(const tgi_attend_args &args, int is_v)
    {
        const tg_attention &a = args.attention;
        const int64_t size = is_v ? a.v_head_size : a.head_size;
        return args.is_dense ? 2 * static_cast<uint32_t>(size) : 0;
    }

    __device__ __forceinline__ tgi_attend_offset_line<Products> find_line(int is_v) const
    {
        return {this->tile, is_v ? own_v : own_k};
    }

    static __device__ __forceinline__ uint32_t find_barriers(const tgi_attend_args &args,
                                                             uint32_t first)
    {
        enum { TILES = Products::tile_bytes * Tiles };
        enum { OWN = TILES + 2 * Products::head * Products::rows };
        const int warp = tgi_thread() / 32;
        return first + TILES + (args.warp_split_count - 1 - warp) * OWN + warp * 64;
    }

    /* A warp without keys makes no copy, because it waits for none. */
    __device__ __forceinline__ void copy_queries(uint32_t q)
    {
        if (this->place.begin >= this->place.end)
            return;
        if (this->p.has_map[2])
            tgi_attend_copy_query_boxes<Products>(this->p, this->place, q, barriers + 8 * Tiles);
        else
            tgi_attend_copy_queries<Products, Products::copiers>(this->p, this->place, q);
    }

    __device__ __forceinline__ void copy(int i)
    {
        const int key_0 = this->place.begin + i / 2 * Products::keys;
        if (!has_boxes)
            base::copy(i);
        else if (key_0 < this->place.end && this->p.is_dense)
            tgi_attend_copy_dense<Products>(this->p, this->place, i % 2, key_0,
                                            get_row_bytes(this->p, i % 2), this->filled,
                                            barriers + i % Tiles * 8);
        else if (key_0 < this->place.end)
            tgi_attend_copy_boxes<Products>(this->p, this->place, i % 2, key_0, this->filled,
                                            barriers + i % Tiles * 8);
    }

    __device__ __forceinline__ void open(void)
    {
#pragma unroll 1
        for (int i = 0; i < Tiles - 1; i++) {
            copy(i);
            tgi_copy_async_commit();
            this->advance(this->filled);
        }
    }

    __device__ __forceinline__ void start(int i)
    {
        if (i == 0 && this->p.has_map[2])
            tgi_barrier_wait(barriers + 8 * Tiles, 0);
        if (!has_boxes || i == 0)
            Products::template wait_copies<Tiles - 2>();
        if (has_boxes)
            tgi_barrier_wait(barriers + i % Tiles * 8, i / Tiles % 2);
        const int keys = this->place.keys - this->place.begin - i / 2 * Products::keys;
        if (this->p.is_dense && i % 2 && keys < Products::keys)
            tgi_attend_clear_rows<Products>(this->tile, keys, get_row_bytes(this->p, 1));
        __syncwarp();
        copy(i + Tiles - 1);
        this->advance(this->filled);
    }
};

template <class Products, int Tiles> struct tgi_attend_tiles_of<Products, Tiles, 1> {
    typedef tgi_attend_box_tiles<Products, Tiles> type;
};

template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_clusters(const tgi_attend_args &p,
                                                              char *shared)
{
    static_assert(Queries == 16, "a warp has all of them");
    tgi_attend<tgi_attend_by_clusters<Type, Head, Keys>, Tiles>(p, shared);
}

#endif
