/*
 * This feed has TF32 with lines of A across k. Matrix instructions read words from shared memory
 * only along k, so threads read A as it lies, and the products take A from registers.
 */
#ifndef TGI_FEED_TRANSPOSED_CUH
#define TGI_FEED_TRANSPOSED_CUH

#include "kernels/ptx/shared_memory.cuh"
#include "kernels/wgmma/feed_tma.cuh"

/* A thread's part of 64 rows: [8 values of k][register of the instruction]. */
typedef uint32_t tgi_transposed_rows[4][4];

/* Reads the warpgroup's 64 rows of one step at `shared`. They lie in boxes of 32 rows, with a line
 * of 128 bytes for each k, under the 128-byte swizzle. A thread needs values c and c + 4 of k of
 * its rows. If c is odd it reads them in the other order, so that a warp's 32 words lie in
 * different banks. */
static __device__ __forceinline__ void tgi_transpose_rows(uint32_t shared,
                                                          tgi_transposed_rows &rows)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, is_odd = lane & 1;
    shared += warp / 2 * 32 * TGI_WGMMA_STEP_BYTES + lane / 4 % 4 * 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int unit = warp % 2 * 4 + half * 2 + lane / 16; /* unit of 16 bytes in a line */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t word[2];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const int k = lane % 4 + (j ^ is_odd) * 4;
                word[j] = tgi_read_shared_word(shared + (i * 8 + k) * TGI_WGMMA_STEP_BYTES +
                                               (unit ^ k) * 16);
            }
            rows[i][half] = is_odd ? word[1] : word[0];
            rows[i][half + 2] = is_odd ? word[0] : word[1];
        }
    }
}

struct tgi_feed_transposed : tgi_feed_tma {
    static constexpr int has_a_in_registers = 1;

    template <class Shape>
    static __device__ __forceinline__ void
    sum(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile, tgi_ring<Shape::stages> &ring,
        repair &, typename Shape::deferred &, float (&total)[Shape::blocks][Shape::cols / 2])
    {
        const tgi_stage_release<Shape> release(at.args, at.rank);
        int step = tile.step;
        do {
            const tgi_wgmma_stage stage = tgi_find_stage<Shape>(at.args, at.memory, ring);
            tgi_barrier_wait(stage.full, stage.parity);
            tgi_transposed_rows rows;
            tgi_transpose_rows(stage.data + at.group * TGI_BLOCK_LINES * TGI_WGMMA_STEP_BYTES,
                               rows);
            const uint64_t b = tgi_describe(stage.data + Shape::a_bytes, Shape::block_bytes,
                                            8 * TGI_WGMMA_STEP_BYTES);
            tgi_wgmma_fence();
#pragma unroll
            for (int i = 0; i < TGI_WGMMA_STEP_PRODUCTS; i++)
                tgi_multiply_registers<Shape, 1>(total[0], rows[i], b + i * 2);
            tgi_wgmma_commit();
            tgi_wgmma_wait<0>(); /* the registers of the rows are free again */
            release(stage.empty);
            ring.advance();
        } while (++step < tile.step_end);
    }
};

#endif
