/*
 * Multiplies a wide tile of family small in FP32 by multiply-adds. Shared memory has all lines of
 * one k together, so that a thread reads neighbouring rows and columns at once.
 *
 * A bank of the register file delivers one operand a cycle, of a multiply-add's three. A row's
 * factor serves the thread's columns one after another, from the operand cache. A column's factor
 * and the sum are in different banks, because four sums of a row go to shared memory by one write,
 * rotated by one: the write ties sum j to register j + 1 of four, as the read ties factor j to
 * register j.
 */
#ifndef TGI_SMALL_WIDE_FMA_CUH
#define TGI_SMALL_WIDE_FMA_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/schedule/tile.cuh"
#include "kernels/small/small_shape.h"

/* A thread has Row_sums x Col_sums sums of a tile of Rows x Cols. A_pitch, B_pitch and Sum_pitch
 * are the elements from k to k of A and B, and from row to row of the sums. */
template <int Rows, int Cols, int Row_sums, int Col_sums, int A_pitch, int B_pitch, int Sum_pitch>
struct tgi_small_wide_fma {
    /* The sums lie in groups of neighbouring rows and columns, row_group * rows_apart rows and
     * col_group * cols_apart columns apart. The sums of either half of the tile are whole groups if
     * there are 32 sums or more. */
    static constexpr int rows_apart = Rows / Row_sums, cols_apart = Cols / Col_sums;
    static constexpr int has_halves = TGI_SMALL_WIDE_HAS_HALVES(Row_sums * Col_sums, 4);
    static constexpr int row_group = has_halves ? Row_sums / 2 : Row_sums, col_group = 4;
    /* A warp has lane_cols lanes along the columns. */
    static constexpr int lane_cols = cols_apart < 8 ? cols_apart : 8, lane_rows = 32 / lane_cols;
    static constexpr int warp_cols = cols_apart / lane_cols;
    static constexpr int turn = 4; /* values of k in a turn of the loop */
    typedef float sums[Row_sums][Col_sums];
    static_assert(Col_sums % 4 == 0 && row_group <= 4, "groups of an access");

    /* Return the first row and column of the thread's sums. Lanes whose numbers differ in bit 0
     * have the same rows, and those that differ in bit 1 the same columns, so that a read of 16
     * bytes takes two turns of shared memory in place of four. */
    static __device__ __forceinline__ int find_row()
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        const int lane_row = lane / 2 % 4 + (lane_rows > 4 ? lane / 16 * 4 : 0);
        return (warp / warp_cols * lane_rows + lane_row) * row_group;
    }

    static __device__ __forceinline__ int find_col()
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        const int lane_col = lane % 2 + lane / 8 % (lane_cols / 2) * 2;
        return (warp % warp_cols * lane_cols + lane_col) * col_group;
    }

    /* Reads the factors of one k of Count lines. */
    template <int Count, int Group>
    static __device__ __forceinline__ void read(float (&factor)[Count], const float *from,
                                                int apart)
    {
#pragma unroll
        for (int i = 0; i < Count; i += Group) {
            const tgi_row_piece<float, Group> piece =
                *reinterpret_cast<const tgi_row_piece<float, Group> *>(from + i * apart);
#pragma unroll
            for (int j = 0; j < Group; j++)
                factor[i + j] = piece.element[j];
        }
    }

    /* Multiplies along one row and back along the next. */
    template <int Down, int Across>
    static __device__ __forceinline__ void multiply_k(const float (&rows)[Down],
                                                      const float (&cols)[Across], sums &sum)
    {
#pragma unroll
        for (int i = 0; i < Down; i++)
#pragma unroll
            for (int at = 0; at < Across; at++) {
                const int j = i % 2 ? Across - 1 - at : at;
                sum[i][j] = fmaf(rows[i], cols[j], sum[i][j]);
            }
    }

    /* Adds the products of `count` of k, and of zeros up to a multiple of turn, to the first Down x
     * Across sums. Factors are read one k ahead. */
    template <int Down, int Across>
    static __device__ __forceinline__ void multiply_sums(const float *a, const float *b, int count,
                                                         sums &sum)
    {
        float rows[2][Down], cols[2][Across];
        a += find_row();
        b += find_col();
        read<Down, row_group>(rows[0], a, rows_apart);
        read<Across, col_group>(cols[0], b, cols_apart);
#pragma unroll 1
        for (int k = 0; k < count; k += turn) {
#pragma unroll
            for (int i = 0; i < turn; i++) {
                if (i + 1 < turn || k + turn < count) {
                    read<Down, row_group>(rows[(i + 1) % 2], a + (i + 1) * A_pitch, rows_apart);
                    read<Across, col_group>(cols[(i + 1) % 2], b + (i + 1) * B_pitch, cols_apart);
                }
                /* Without this barrier the compiler would move the reads down to their use. */
                __syncwarp();
                multiply_k(rows[i % 2], cols[i % 2], sum);
            }
            a += turn * A_pitch;
            b += turn * B_pitch;
        }
    }

    /* Adds the products of a stage. Halves of the tile that lie outside D are left out: the lower
     * half if is_low, the right one if is_narrow. */
    static __device__ __forceinline__ void multiply(const float *a, const float *b, int count,
                                                    int is_low, int is_narrow, sums &sum)
    {
        if constexpr (has_halves && Col_sums == 4) {
            if (is_low)
                multiply_sums<Row_sums / 2, Col_sums>(a, b, count, sum);
            else
                multiply_sums<Row_sums, Col_sums>(a, b, count, sum);
        } else if constexpr (has_halves) {
            if (is_low && is_narrow)
                multiply_sums<Row_sums / 2, Col_sums / 2>(a, b, count, sum);
            else if (is_low)
                multiply_sums<Row_sums / 2, Col_sums>(a, b, count, sum);
            else if (is_narrow)
                multiply_sums<Row_sums, Col_sums / 2>(a, b, count, sum);
            else
                multiply_sums<Row_sums, Col_sums>(a, b, count, sum);
        } else {
            multiply_sums<Row_sums, Col_sums>(a, b, count, sum);
        }
    }

    /* Writes the thread's sums to shared memory, each four rotated by one. */
    static __device__ __forceinline__ void keep(float *shared, const sums &sum)
    {
        shared += find_row() * Sum_pitch + find_col();
#pragma unroll
        for (int i = 0; i < Row_sums; i++)
#pragma unroll
            for (int j = 0; j < Col_sums; j += 4) {
                const int row = i / row_group * row_group * rows_apart + i % row_group;
                *reinterpret_cast<float4 *>(shared + row * Sum_pitch + j * cols_apart) =
                    make_float4(sum[i][j + 3], sum[i][j], sum[i][j + 1], sum[i][j + 2]);
            }
    }
};

#endif
