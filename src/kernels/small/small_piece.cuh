/*
 * Forms products of family small with a very short k, by multiply-adds. A thread has neighbouring
 * columns of a row, or of two, and stores them by 16 bytes. Such a kernel takes a microsecond, so
 * that the code is kept small, without shared memory and barriers.
 *
 * There are two forms. In one, for types of 16 bits, units of 16 bytes lie along the rows of B and
 * D. In the other, B is read by elements, and a thread's columns begin where a unit of D does, to
 * the left of its place. A kernel of its own has C, a bias and RELU of FP64: beside the sums alone
 * the code for them would cost these a tenth of a microsecond.
 *
 *     setup()      finds the thread's row and columns
 *     load()       loads the thread's elements of a value of k
 *     multiply()   adds their products to the sums
 *     finish()     stores the sums
 */
#ifndef TGI_SMALL_PIECE_CUH
#define TGI_SMALL_PIECE_CUH

#include "kernels/body.cuh"
#include "kernels/epilogue/row_columns.cuh"
#include "kernels/small/small_direct.cuh"
#include "kernels/small/small_shape.h"
#include "kernels/small/small_terms.cuh"

template <tg_type Type, int HasUnits, tgi_terms_kind Kind = TGI_TERMS_NONE> struct tgi_piece {
    typedef tgi_direct<Type, 0> direct;
    typedef typename direct::elem elem;
    typedef typename direct::sum_type sum_type;
    static constexpr int cols = TGI_SMALL_PIECE_COLS(static_cast<int>(sizeof(elem)));
    static constexpr int rows = TGI_SMALL_PIECE_ROWS(static_cast<int>(sizeof(elem)));
    typedef sum_type sums[rows][cols];
    typedef typename tgi_terms_of<Type>::bits bits;
    typedef tgi_short_terms<bits> terms[rows][cols];

    /* Holds the elements of a value of k. */
    struct step {
        elem a[rows], b[cols];
    };

    int row, col; /* the first row; the column may lie to the left of D */
    int apart;    /* rows from one to the next: units of D begin at the same columns of them */
    const elem *a, *b;
    elem *d; /* column 0 of the first row */

    __device__ __forceinline__ void setup(const tgi_sums_args &p)
    {
        apart = blockDim.y;
        row = blockIdx.y * (rows * apart) + threadIdx.y;
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
#pragma unroll
        for (int i = 0; i < rows; i++)
            next.a[i] = i == 0 || row + i * apart < p.m ? a[k * p.a_k + i * apart * p.a_row] : 0;
        if constexpr (HasUnits) {
            const uint4 unit = *reinterpret_cast<const uint4 *>(from + col);
            const uint32_t word[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
            for (int j = 0; j < cols; j++)
                next.b[j] = static_cast<uint16_t>(word[j / 2] >> j % 2 * 16);
        } else {
            const elem *const own = from + col * p.b_col;
#pragma unroll
            for (int j = 0; j < cols; j++)
                next.b[j] = col + j >= 0 && col + j < p.n ? own[j * p.b_col] : 0;
        }
    }

    static __device__ __forceinline__ void multiply(const step &next, sums &sum)
    {
#pragma unroll
        for (int i = 0; i < rows; i++)
#pragma unroll
            for (int j = 0; j < cols; j++)
                sum[i][j] += direct::decode(next.a[i]) * direct::decode(next.b[j]);
    }

    __device__ __forceinline__ bool is_inside(const tgi_sums_args &p, int i, int j) const
    {
        return (i == 0 || row + i * apart < p.m) && col + j >= 0 && col + j < p.n;
    }

    /* Requests C and the bias of the thread's elements. */
    __device__ __forceinline__ void request(const tgi_short_args &args, terms &own) const
    {
        const tgi_epilogue &e = args.epilogue;
        const bits *const c = static_cast<const bits *>(args.c) + blockIdx.z * args.c_batch +
                              row * args.c_row + col * args.c_col;
#pragma unroll
        for (int i = 0; i < rows; i++)
#pragma unroll
            for (int j = 0; j < cols; j++)
                own[i][j].c = e.beta != 0.0 && is_inside(args.sums, i, j)
                                  ? c[i * apart * args.c_row + j * args.c_col]
                                  : 0;
        const bits *const bias = static_cast<const bits *>(args.bias);
        const int is_row = e.bias == TG_BIAS_ROW;
#pragma unroll
        for (int i = 0; i < rows; i++)
#pragma unroll
            for (int j = 0; j < cols; j++)
                own[i][j].bias = e.bias != TG_BIAS_NONE && is_inside(args.sums, i, j)
                                     ? bias[is_row ? row + i * apart : col + j]
                                     : 0;
    }

    /* A sum of -0 becomes +0, as in the short function, which may multiply zeros behind k. */
    template <typename Args>
    __device__ __forceinline__ void finish(const Args &args, const terms &own, sums &sum) const
    {
        const tgi_sums_args &p = find_sums(args);
#pragma unroll
        for (int i = 0; i < rows; i++) {
            if (i > 0 && row + i * apart >= p.m)
                break;
#pragma unroll
            for (int j = 0; j < cols; j++) {
                sum[i][j] += 0;
                if constexpr (Kind == TGI_TERMS_SIMPLE)
                    sum[i][j] = tgi_apply_terms<Kind>(args, Type, own[i][j], sum[i][j]);
            }
            elem *const to = d + i * apart * p.d_row;
            if constexpr (sizeof(elem) == 2)
                tgi_store_columns(to, col, p.n, tgi_encode_columns(Type, sum[i]));
            else
                tgi_store_columns(to, col, p.n, sum[i]);
        }
    }

    static __device__ __forceinline__ const tgi_sums_args &find_sums(const tgi_sums_args &args)
    {
        return args;
    }

    static __device__ __forceinline__ const tgi_sums_args &find_sums(const tgi_short_args &args)
    {
        return args.sums;
    }

    /* Forms the thread's columns. */
    template <typename Args> static __device__ __forceinline__ void form(const Args &args)
    {
        const tgi_sums_args &p = find_sums(args);
        tgi_check_body<tgi_piece>();
        tgi_check_sum<tgi_piece>();
        tgi_piece body;
        body.setup(p);
        if (body.row >= p.m || body.col >= p.n)
            return;
        sums sum = {};
        terms own;
        tgi_wait_for_stream();
        if constexpr (Kind == TGI_TERMS_SIMPLE)
            body.request(args, own);
#pragma unroll 1
        for (int k = 0; k < p.k; k++) {
            step next;
            body.load(p, k, next);
            multiply(next, sum);
        }
        body.finish(args, own, sum);
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
#define TGI_SMALL_PIECE_UNITS(type)
#define TGI_SMALL_PIECE(type)
#define TGI_SMALL_PIECE_TERMS(type)
#else
#define TGI_SMALL_PIECE_UNITS(type)                                                                \
    TGI_BODY_KERNEL(tgi_piece_units_##type, tgi_sums_args, (TGI_SMALL_PIECE_THREADS),              \
                    tgi_piece<TGI_TYPE_OF(type), 1>)
#define TGI_SMALL_PIECE(type)                                                                      \
    TGI_BODY_KERNEL(tgi_piece_elements_##type, tgi_sums_args, (TGI_SMALL_PIECE_THREADS),           \
                    tgi_piece<TGI_TYPE_OF(type), 0>)
#define TGI_SMALL_PIECE_TERMS(type)                                                                \
    TGI_BODY_KERNEL(tgi_piece_terms_##type, tgi_short_args, (TGI_SMALL_PIECE_THREADS),             \
                    tgi_piece<TGI_TYPE_OF(type), 0, TGI_TERMS_SIMPLE>)
#endif

#endif
