/*
 * Multiplies a wide tile of family small by matrix instructions of FP64 and of 16-bit types. Shared
 * memory has the values of k of a line together.
 */
#ifndef TGI_SMALL_WIDE_MMA_CUH
#define TGI_SMALL_WIDE_MMA_CUH

#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/tile.cuh"

/* A warp forms 16 x 32 sums of a tile of Rows x Cols. Pitch and Sum_pitch are the elements from
 * line to line of A and B, and from row to row of the sums. */
template <tg_type Type, int Rows, int Cols, int Pitch, int Sum_pitch> struct tgi_small_wide_mma {
    typedef typename tgi_element_of<Type>::sum sum_type;
    static constexpr int warp_cols = Cols / 32;
    typedef sum_type sums[4][4];

    /* Adds the products of `count` of k, and of zeros up to a multiple of 16, to the warp's
     * sums. */
    static __device__ __forceinline__ void multiply(const uint16_t *a, const uint16_t *b, int count,
                                                    int, int, float (&sums)[4][4])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        const int row = warp / warp_cols * 16 + lane % 16;
        const int col = warp % warp_cols * 32 + lane % 8 + lane / 16 * 8;
        uint32_t a_place = tgi_shared_address(a + row * Pitch + lane / 16 * 8);
        uint32_t b_place = tgi_shared_address(b + col * Pitch + lane / 8 % 2 * 8);
#pragma unroll 1
        for (int k = 0; k < count; k += 16) {
            uint32_t a_words[4], low[4], high[4];
            tgi_read_matrices(a_words, a_place);
            tgi_read_matrices(low, b_place);
            tgi_read_matrices(high, b_place + 16 * Pitch * 2);
            tgi_multiply_16x8x16<Type>(sums[0], a_words, low[0], low[1]);
            tgi_multiply_16x8x16<Type>(sums[1], a_words, low[2], low[3]);
            tgi_multiply_16x8x16<Type>(sums[2], a_words, high[0], high[1]);
            tgi_multiply_16x8x16<Type>(sums[3], a_words, high[2], high[3]);
            a_place += 32;
            b_place += 32;
        }
    }

    /* Adds the same products of FP64, with zeros up to a multiple of 4. */
    static __device__ __forceinline__ void multiply(const double *a, const double *b, int count,
                                                    int, int, double (&sums)[4][4])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        a += (warp / warp_cols * 16 + lane / 4) * Pitch + lane % 4;
        b += (warp % warp_cols * 32 + lane / 4) * Pitch + lane % 4;
#pragma unroll 2
        for (int k = 0; k < count; k += 4) {
            const double a_pair[2] = {a[k], a[8 * Pitch + k]};
#pragma unroll
            for (int i = 0; i < 4; i++)
                tgi_multiply_fp64_16x8x4(sums[i], a_pair, b[8 * i * Pitch + k]);
        }
    }

    /* Writes the thread's sums to shared memory. */
    static __device__ __forceinline__ void keep(sum_type *shared, const sums &sum)
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        shared +=
            (warp / warp_cols * 16 + lane / 4) * Sum_pitch + warp % warp_cols * 32 + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                shared[j / 2 * 8 * Sum_pitch + 8 * i + j % 2] = sum[i][j];
    }
};

#endif
