/*
 * Rows of A of FP32 that lie across k. The instruction takes words from shared memory along k
 * alone; so threads read them as they lie and hold them in registers, whence it takes them too.
 */
#ifndef TGI_WGMMA_TURNED_CUH
#define TGI_WGMMA_TURNED_CUH

#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warpgroup_mma.cuh"
#include "kernels/wgmma/shape.cuh"

/* Of the thread: 8 steps of k, register of the instruction. */
typedef uint32_t tgi_turned_rows[4][4];

/* Reads the warpgroup's 64 rows of one step at `shared`: boxes of 32 rows, lines of 128 bytes, one
 * for each k, under the 128-byte swizzle. A thread needs steps c and c + 4 of its rows: where c is
 * odd it reads them in the other order, so that a warp's 32 words lie in as many banks. */
static __device__ __forceinline__ void tgi_turn_rows(uint32_t shared, tgi_turned_rows &held)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, is_odd = lane & 1;
    shared += warp / 2 * 32 * TGI_WGMMA_STEP_BYTES + lane / 4 % 4 * 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int unit = warp % 2 * 4 + half * 2 + lane / 16; /* of 16 bytes, of a line */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t word[2];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const int k = lane % 4 + (j ^ is_odd) * 4;
                word[j] = tgi_read_shared_word(shared + (i * 8 + k) * TGI_WGMMA_STEP_BYTES +
                                               (unit ^ k) * 16);
            }
            held[i][half] = is_odd ? word[1] : word[0];
            held[i][half + 2] = is_odd ? word[0] : word[1];
        }
    }
}

/* Puts the products of one step under way, added to `sum`. */
template <class Shape>
static __device__ __forceinline__ void
tgi_multiply_turned_rows(uint32_t stage, const tgi_turned_rows &held, float (&sum)[Shape::cols / 2])
{
    const uint64_t b =
        tgi_describe(stage + Shape::a_bytes, Shape::block_bytes, 8 * TGI_WGMMA_STEP_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int i = 0; i < TGI_WGMMA_STEP_PRODUCTS; i++)
        tgi_multiply_registers<Shape, 1>(sum, held[i], b + i * 2);
    tgi_wgmma_commit();
}

#endif
