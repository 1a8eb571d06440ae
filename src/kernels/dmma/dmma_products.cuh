/*
 * Forms the products of family dmma_tma from stages that lie in shared memory, by the FP64 matrix
 * instructions of Hopper, and stores tiles. The stages are filled by TMA (dmma_tma.cuh) or copied
 * by threads (dmma_copied.cuh).
 *
 * A stage has lines of 16 elements under the 128-byte swizzle: for every 16 values of k the tile's
 * rows of A and then its columns of B. They are read without bank conflicts.
 */
#ifndef TGI_DMMA_PRODUCTS_CUH
#define TGI_DMMA_PRODUCTS_CUH

#include "kernels/body.cuh"
#include "kernels/copy/swizzle.cuh"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/dmma/dmma_terms.cuh"
#include "kernels/dmma/dmma_tma_args.h"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma_fp64.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* tgi_dmma_lines finds what a lane reads of an operand: 16 entries, rows of A or columns of B, by 8
 * values of k, of which lane 4 g + c reads numbers c and c + 4: the instruction adds them in the
 * order of k. Entries have an order of their own, in which lanes that read at once read different
 * banks. */
template <int Along_k> struct tgi_dmma_lines {
    /* Bytes to the lane's first k of either 8, along k, or to its unit of either k, across k. */
    int offset[2];

    /* Returns the unit across k that lanes of this g read. */
    static __device__ __forceinline__ int find_pair(int g)
    {
        return g ^ (g & 1) * 4;
    }

    /* Returns entry g of half h of 16. */
    static __device__ __forceinline__ int place(int g, int h)
    {
        return Along_k ? (g & 1) * 4 + (g & 2) + g / 4 + 8 * h : 2 * find_pair(g) + h;
    }

    /* `first` is the first entry. The first read takes half `half` of 16 values of k. */
    __device__ __forceinline__ tgi_dmma_lines(int first, int half, int g, int c)
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
            offset[i] = first * TGI_SWIZZLE_BYTES +
                        (Along_k ? tgi_find_unit(0, place(g, 0), 4 * (i ^ half) + c / 2) + c % 2 * 8
                                 : tgi_find_unit(0, 8 * half + c + 4 * i, find_pair(g)));
    }

    /* Reads value[h][k] of 16 entries, `block` times 16 behind the first one. k_half is 0 for the
     * half of k that is read first, 1 for the other one. */
    __device__ __forceinline__ void read(const char *lines, int block, int k_half,
                                         double (&value)[2][2]) const
    {
        const char *from = lines + block * 16 * TGI_SWIZZLE_BYTES;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const char *at = from + (Along_k ? i : k_half) * 8 * TGI_SWIZZLE_BYTES;
            if (Along_k) {
                /* Four values of k further are two units, which the swizzle leaves together. */
                value[i][0] = *reinterpret_cast<const double *>(at + offset[k_half]);
                value[i][1] = *reinterpret_cast<const double *>(at + (offset[k_half] ^ 32));
            } else {
                const double2 pair = *reinterpret_cast<const double2 *>(at + offset[i]);
                value[0][i] = pair.x;
                value[1][i] = pair.y;
            }
        }
    }
};

/* Rows x Cols is the block's tile, Warp_rows x Warp_cols a warp's. A or B may be the wide operand
 * of the instruction, since D^T = B^T A^T. If one lies across k, it is the wide one, because a read
 * then yields two neighbouring registers of the instruction. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Threads, int A_along_k,
          int B_along_k>
struct tgi_dmma_products {
    static constexpr int tile_warps = Rows / Warp_rows * (Cols / Warp_cols);
    static constexpr int teams = Threads / 32 / tile_warps;
    static constexpr int is_b_wide = !B_along_k;
    typedef tgi_dmma_lines<is_b_wide ? B_along_k : A_along_k> wide_lines;
    typedef tgi_dmma_lines<is_b_wide ? A_along_k : B_along_k> narrow_lines;
    static constexpr int wide_count = (is_b_wide ? Warp_cols : Warp_rows) / 16;
    static constexpr int narrow_count = (is_b_wide ? Warp_rows : Warp_cols) / 16;
    static constexpr int sub_bytes = TGI_SWIZZLE_BYTES * (Rows + Cols); /* 16 of k */
    static constexpr int sub_count = Depth / TGI_DMMA_TMA_ELEMS;
    static constexpr int stage_bytes = TGI_DMMA_TMA_STAGE_BYTES(Rows, Cols, Depth);
    static constexpr int b_place = Rows * TGI_SWIZZLE_BYTES;
    static constexpr int wide_place = is_b_wide ? b_place : 0;
    static constexpr int narrow_place = is_b_wide ? 0 : b_place;
    static constexpr int pitch = TGI_DMMA_TMA_TILE_PITCH(Cols);
    static_assert(sub_bytes * sub_count == stage_bytes, "the host counts what lies here");
    static_assert(teams * tile_warps * 32 == Threads && Depth % (8 * teams) == 0 &&
                      (teams == 1 || teams % 2 == 0),
                  "teams share out k");

    /* A fragment has a lane's elements of 8 values of k. */
    struct fragment {
        double wide[wide_count][2][2], narrow[narrow_count][2][2];

        __device__ __forceinline__ void read(const char *stage, const wide_lines &wide_at,
                                             const narrow_lines &narrow_at, int index)
        {
            const char *part = stage;
#pragma unroll
            for (int j = 0; j < narrow_count; j++)
                narrow_at.read(part + narrow_place, j, index, narrow[j]);
#pragma unroll
            for (int i = 0; i < wide_count; i++)
                wide_at.read(part + wide_place, i, index, wide[i]);
        }

        /* Adds the products of 16 entries of the wide operand. */
        __device__ __forceinline__ void multiply(double (&sums)[wide_count][2 * narrow_count][4],
                                                 int i) const
        {
#pragma unroll
            for (int j = 0; j < 2 * narrow_count; j++)
                tgi_multiply_fp64_16x8x8(sums[i][j], wide[i], narrow[j / 2][j % 2]);
        }
    };

    typedef double sums[wide_count][2 * narrow_count][4];

    char *data;               /* the stages */
    const int team, row, col; /* the warp's first row and column */
    const int g, c;           /* lane 4 g + c */
    const wide_lines wide_at;
    const narrow_lines narrow_at;

    __device__ __forceinline__ explicit tgi_dmma_products(char *shared)
        : data(shared), team(tgi_thread() / 32 / tile_warps),
          row(tgi_thread() / 32 % tile_warps / (Cols / Warp_cols) * Warp_rows),
          col(tgi_thread() / 32 % tile_warps % (Cols / Warp_cols) * Warp_cols),
          g(tgi_thread() % 32 / 4), c(tgi_thread() % 32 % 4),
          wide_at(is_b_wide ? col : row, team % 2, g, c),
          narrow_at(is_b_wide ? row : col, team % 2, g, c)
    {
    }

    static __device__ __forceinline__ void begin(sums &sum)
    {
#pragma unroll
        for (int i = 0; i < wide_count; i++)
#pragma unroll
            for (int j = 0; j < 2 * narrow_count; j++)
#pragma unroll
                for (int s = 0; s < 4; s++)
                    sum[i][j][s] = 0.0;
    }

    /* Adds the products of stage `index`. A team takes every fragment of 8 of k whose number is its
     * own, modulo `teams`. */
    __device__ __forceinline__ void add(sums &sum, int index) const
    {
        const char *stage = data + index * stage_bytes + team / 2 * sub_bytes;
#pragma unroll 1
        for (int i = 0; i < (teams == 1 ? Depth / 16 : Depth / 8 / teams); i++) {
#pragma unroll
            for (int half = 0; half < (teams == 1 ? 2 : 1); half++) {
                fragment part;
                part.read(stage, wide_at, narrow_at, half);
#pragma unroll
                for (int j = 0; j < wide_count; j++)
                    part.multiply(sum, j);
            }
            stage += (teams == 1 ? 1 : teams / 2) * sub_bytes;
        }
    }

    /* Leaves the sums in shared memory, with rows `pitch` apart. Zeros behind the end of k turn -0
     * into 0. Tiles differ in their number, so that the addition does it always. */
    __device__ __forceinline__ void gather(const sums &sum) const
    {
        double *tile = reinterpret_cast<double *>(data) + team * Rows * pitch;
        /* Without this barrier the sums would overwrite what slower warps still read. */
        __syncthreads();
#pragma unroll
        for (int i = 0; i < wide_count; i++)
#pragma unroll
            for (int j = 0; j < 2 * narrow_count; j++)
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    const int wide = i * 16 + wide_lines::place(g, s / 2);
                    const int narrow = j / 2 * 16 + narrow_lines::place(2 * c + s % 2, j % 2);
                    tile[(row + (is_b_wide ? narrow : wide)) * pitch + col +
                         (is_b_wide ? wide : narrow)] = sum[i][j][s] + 0.0;
                }
    }
};

#endif
