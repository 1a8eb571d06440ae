/*
 * Declares dense tiles of K and V (sm_90a), which lie in shared memory as they lie in memory. If
 * rows have no gaps and an odd number of units of 16 bytes, TMA copies the keys of a step as one
 * piece, without a map, and eight rows of a unit have different banks as they are. With a map, TMA
 * takes as long for each such row as for a whole line.
 */
#ifndef TGI_ATTEND_DENSE_CUH
#define TGI_ATTEND_DENSE_CUH

#include "kernels/attend/attend_tile.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/bulk_load.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/shared_memory.cuh"

/* These offsets from the beginning of a tile, in bytes, say where a lane reads the matrices of 16
 * rows and two units. */
template <class Products> struct tgi_attend_offsets {
    enum { KEYS = Products::keys, HEAD = Products::head, ZEROS = 2 * HEAD * KEYS - 16 };
    uint32_t at[KEYS / 16][HEAD / 16];

    /* `own` is the lane's offset in a tile of strips. `row_bytes` is 0 for such a tile. In a dense
     * tile the next row follows where a row of strips has zeros. What it adds to the sums of V is
     * in no column of D; for K, lanes read the tile's last unit in its place, which is zeros.
     * Registers keep the offsets unless they are too many. */
    __device__ __forceinline__ tgi_attend_offsets(uint32_t own, uint32_t row_bytes, int is_k)
    {
        const uint32_t row = own / 128, unit = (own / 16 ^ row) & 7;
        TGI_FOR_UNROLLED(j, KEYS / 16)
        TGI_FOR_UNROLLED(e, HEAD / 16)
        {
            uint32_t offset = (own ^ e % 4 * 32) + (e / 4 * KEYS + 16 * j) * 128;
            if (row_bytes > 0)
                offset = is_k && 16 * (unit + 2 * e) >= row_bytes
                             ? ZEROS
                             : (row + 16 * j) * row_bytes + 16 * (unit + 2 * e);
            at[j][e] = HEAD > 128 ? offset : tgi_make_opaque(offset);
        }
    }
};

/* The addresses from which a lane reads a tile. */
template <class Products> struct tgi_attend_offset_line {
    uint32_t tile;
    const tgi_attend_offsets<Products> &own;

    /* Returns the address `row` rows and `unit` units further. `row` is a multiple of 16, and
     * `unit` is even. */
    template <int Rows> __device__ __forceinline__ uint32_t find(int row, int unit) const
    {
        return tile + own.at[row / 16][unit / 2];
    }
};

/* Copies a dense tile of K, or of V if is_v is 1, by TMA and arrives at its barrier. One warp calls
 * it. */
template <class Products>
static __device__ __forceinline__ void
tgi_attend_copy_dense(const tgi_attend_args &p, const tgi_attend_place &place, int is_v, int key_0,
                      uint32_t row_bytes, uint32_t tile, uint32_t barrier)
{
    const tg_heads &heads = is_v ? p.attention.v : p.attention.k;
    if (tgi_elect()) {
        const int rows = min(Products::keys, place.keys - key_0);
        const int bytes = rows * static_cast<int>(row_bytes);
        tgi_barrier_expect(barrier, bytes);
        tgi_load_bulk(tile,
                      static_cast<const uint16_t *>(heads.data) +
                          tgi_attend_find_key(p, place, heads, key_0),
                      bytes, barrier);
    }
    __syncwarp();
}

/* Writes zeros to the rows from `row` on of a dense tile. One warp calls it. */
template <class Products>
static __device__ __forceinline__ void tgi_attend_clear_rows(uint32_t tile, int row,
                                                             uint32_t row_bytes)
{
    const uint32_t end = Products::keys * row_bytes;
#pragma unroll 1
    for (uint32_t at = row * row_bytes + tgi_thread() % 32 * 16; at < end; at += 512)
        tgi_write_shared_unit(tile + at, {0, 0, 0, 0});
    __syncwarp();
}

#endif
