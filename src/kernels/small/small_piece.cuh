/*
 * Forms products of family small with a very short k as sums alone, by multiply-adds. A thread has
 * neighbouring columns of a row, and stores them by 16 bytes. Such a kernel takes a microsecond, so
 * that the code is kept small, without shared memory and barriers.
 *
 * There are two forms. In one, for types of 16 bits, units of 16 bytes lie along the rows of B and
 * D. In the other, B is read by elements, and a thread's columns begin where a unit of D does, to
 * the left of its place.
 *
 *     setup()      finds the thread's row and columns
 *     load()       loads the thread's elements of a value of k
 *     multiply()   adds their products to the sums
 *     finish()     stores the sums
 */
#ifndef TGI_SMALL_PIECE_CUH
#define TGI_SMALL_PIECE_CUH

#include "kernels/body.cuh"
#include "kernels/small/small_columns.cuh"
#include "kernels/small/small_direct.cuh"
#include "kernels/small/small_shape.h"

template <tg_type Type, int HasUnits> struct tgi_piece {
    typedef tgi_direct<Type, 0> direct;
    typedef typename direct::elem elem;
    typedef typename direct::sum_type sum_type;
    static constexpr int cols = TGI_SMALL_PIECE_COLS(static_cast<int>(sizeof(elem)));
    static constexpr int threads = TGI_SMALL_PIECE_THREADS(sizeof(elem));

    /* Holds the elements of a value of k. */
    struct step {
        elem a, b[cols];
    };

    int row, col; /* the column may lie to the left of D */
    const elem *a, *b;
    elem *d; /* column 0 of the row */

    __device__ __forceinline__ void setup(const tgi_sums_args &p)
    {
        row = blockIdx.y * blockDim.y + threadIdx.y;
        col = (blockIdx.x * blockDim.x + threadIdx.x) * cols;
        a = static_cast<const elem *>(p.a) + blockIdx.z * p.a_batch + row * p.a_row;
        b = static_cast<const elem *>(p.b) + blockIdx.z * p.b_batch;
        d = static_cast<elem *>(p.d) + blockIdx.z * p.d_batch + row * p.d_row;
        if (!HasUnits)
            col -= static_cast<int>(reinterpret_cast<uintptr_t>(d) / sizeof(elem) % cols);
    }

    __device__ __forceinline__ void load(const tgi_sums_args &p, int k, step &next) const
    {
        const elem *const from = b + k * p.b_k;
        next.a = a[k * p.a_k];
        if constexpr (HasUnits) {
            const uint4 unit = *reinterpret_cast<const uint4 *>(from + col);
            const uint32_t word[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
            for (int j = 0; j < cols; j++)
                next.b[j] = static_cast<uint16_t>(word[j / 2] >> j % 2 * 16);
        } else {
#pragma unroll
            for (int j = 0; j < cols; j++)
                next.b[j] = from[min(max(col + j, 0), p.n - 1) * p.b_col];
        }
    }

    static __device__ __forceinline__ void multiply(const step &next, sum_type (&sum)[cols])
    {
#pragma unroll
        for (int j = 0; j < cols; j++)
            sum[j] += direct::decode(next.a) * direct::decode(next.b[j]);
    }

    /* A sum of -0 becomes +0, as in the short function, which may multiply zeros behind k. */
    __device__ __forceinline__ void finish(const tgi_sums_args &p, sum_type (&sum)[cols]) const
    {
#pragma unroll
        for (int j = 0; j < cols; j++)
            sum[j] += 0;
        if constexpr (sizeof(elem) == 2)
            tgi_store_columns(d, col, p.n, tgi_encode_columns(Type, sum));
        else
            tgi_store_columns(d, col, p.n, sum);
    }

    /* Forms the thread's columns. */
    static __device__ __forceinline__ void form(const tgi_sums_args &p)
    {
        tgi_check_body<tgi_piece>();
        tgi_check_sum<tgi_piece>();
        tgi_piece body;
        body.setup(p);
        if (body.row >= p.m || body.col >= p.n)
            return;
        sum_type sum[cols] = {};
        tgi_wait_for_stream();
#pragma unroll 1
        for (int k = 0; k < p.k; k++) {
            step next;
            body.load(p, k, next);
            multiply(next, sum);
        }
        body.finish(p, sum);
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
#define TGI_SMALL_PIECE_UNITS(type)
#define TGI_SMALL_PIECE(type)
#else
#define TGI_SMALL_PIECE_UNITS(type)                                                                \
    TGI_BODY_KERNEL(tgi_piece_units_##type, tgi_sums_args, (TGI_SMALL_PIECE_THREADS(2)),           \
                    tgi_piece<TGI_TYPE_OF(type), 1>)
#define TGI_SMALL_PIECE(type)                                                                      \
    TGI_BODY_KERNEL(tgi_piece_elements_##type, tgi_sums_args,                                      \
                    (tgi_piece<TGI_TYPE_OF(type), 0>::threads), tgi_piece<TGI_TYPE_OF(type), 0>)
#endif

#endif
