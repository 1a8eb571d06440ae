/*
 * Multiplies a wide tile of family small in FP32 by matrix instructions of FP64, which holds
 * products of FP32 exactly. On Hopper they form as many products a cycle as multiply-adds of FP32,
 * from a fraction of the reads: a lane reads each factor once for four or eight products of its
 * row or column. Shared memory has all lines of one k together, padded so that four values of k of
 * eight neighbouring lines lie in different banks, and so do sixteen of two, as lines along k are
 * copied.
 */
#ifndef TGI_SMALL_WIDE_FP64_CUH
#define TGI_SMALL_WIDE_FP64_CUH

#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/tile.cuh"
#include "kernels/small/small_shape.h"

/* A thread has Row_sums x Col_sums sums of a tile of Rows x Cols, and a warp 8 Row_sums x 4
 * Col_sums. A_pitch, B_pitch and Sum_pitch are the elements from k to k of A and B, and from row to
 * row of the sums. */
template <int Rows, int Cols, int Row_sums, int Col_sums, int A_pitch, int B_pitch, int Sum_pitch>
struct tgi_small_wide_fp64 {
    /* The matrices of an instruction down and across the warp's part of the tile. */
    static constexpr int down = Row_sums / 2, across = Col_sums / 2;
    static constexpr int warp_cols = Cols / (4 * Col_sums);
    static constexpr int step = 4; /* values of k of an instruction */
    typedef double sums[down * across][4];
    static_assert(Row_sums % 2 == 0 && Col_sums % 2 == 0 && Rows % (8 * Row_sums) == 0 &&
                      Cols % (4 * Col_sums) == 0,
                  "warps have whole matrices");

    static __device__ __forceinline__ int find_row()
    {
        return tgi_thread() / 32 / warp_cols * 8 * Row_sums + tgi_thread() % 32 / 4;
    }

    static __device__ __forceinline__ int find_col()
    {
        return tgi_thread() / 32 % warp_cols * 4 * Col_sums;
    }

    /* Reads the lane's factors of a step. */
    static __device__ __forceinline__ void read(float (&rows)[down][2], float (&cols)[across],
                                                const float *a, const float *b)
    {
#pragma unroll
        for (int i = 0; i < down; i++) {
            rows[i][0] = a[16 * i];
            rows[i][1] = a[16 * i + 8];
        }
#pragma unroll
        for (int j = 0; j < across; j++)
            cols[j] = b[8 * j];
    }

    static __device__ __forceinline__ void multiply_step(const float (&rows)[down][2],
                                                         const float (&cols)[across], sums &sum)
    {
        double pair[down][2];
#pragma unroll
        for (int i = 0; i < down; i++) {
            pair[i][0] = rows[i][0];
            pair[i][1] = rows[i][1];
        }
#pragma unroll
        for (int j = 0; j < across; j++) {
            const double col = cols[j];
#pragma unroll
            for (int i = 0; i < down; i++)
                tgi_multiply_fp64_16x8x4(sum[i * across + j], pair[i], col);
        }
    }

    /* Adds the products of `count` of k, and of zeros up to a multiple of a step, to the sums.
     * Factors are read one step ahead. */
    static __device__ __forceinline__ void multiply(const float *a, const float *b, int count, int,
                                                    int, sums &sum)
    {
        const int lane = tgi_thread() % 32;
        float rows[2][down][2], cols[2][across];
        a += lane % 4 * A_pitch + find_row();
        b += lane % 4 * B_pitch + find_col() + lane / 4;
        read(rows[0], cols[0], a, b);
#pragma unroll 1
        for (int k = 0; k < count; k += 2 * step) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if (k + i * step >= count)
                    break;
                a += step * A_pitch + TGI_SMALL_WIDE_SHIFT;
                b += step * B_pitch + TGI_SMALL_WIDE_SHIFT;
                if (k + (i + 1) * step < count)
                    read(rows[1 - i], cols[1 - i], a, b);
                multiply_step(rows[i], cols[i], sum);
            }
        }
    }

    /* Rounds the thread's sums to FP32 on their way to shared memory, each four of a row rotated by
     * one, as those of multiply-adds. */
    static __device__ __forceinline__ void keep(float *shared, const sums &sum)
    {
        shared += find_row() * Sum_pitch;
        const int first = find_col() + tgi_thread() % 4 * 2;
#pragma unroll
        for (int i = 0; i < down * across; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int row = i / across * 16 + j / 2 * 8, col = first + i % across * 8 + j % 2;
                shared[row * Sum_pitch + col / 4 * 4 + (col + 1) % 4] =
                    static_cast<float>(sum[i][j]);
            }
    }
};

#endif
