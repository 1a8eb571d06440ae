/*
 * Family small for products of a very short k, or of few elements of D, without an epilogue. A
 * thread forms one element of D, or threads that share out k form it together. The code is kept
 * small: a kernel of a microsecond takes most of its time to fetch instructions and arguments.
 */
#ifndef TGI_SMALL_SHORT_CUH
#define TGI_SMALL_SHORT_CUH

#include "kernels/small/small_direct.cuh"
#include "kernels/small/small_shape.h"

/* Type is the type of A and B. If Along is 1, threads that share out k are neighbours along x, and
 * the block's other dimensions are columns and rows of D. Otherwise its dimensions are columns,
 * rows and the threads that share out k. */
template <tg_type Type, int Along> struct tgi_short {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum_type;

    /* Adds the products of the next Loads values of k, `lanes` apart, of which those with `left` >
     * 0 exist. All their loads are under way at once. */
    template <int Loads>
    static __device__ __forceinline__ void add(const elem *&a, const elem *&b, int64_t a_stride,
                                               int64_t b_stride, int left, int lanes, sum_type &sum)
    {
        elem a_value[Loads], b_value[Loads];
#pragma unroll
        for (int i = 0; i < Loads; i++) {
            a_value[i] = left > i * lanes ? *a : elem(0);
            b_value[i] = left > i * lanes ? *b : elem(0);
            a += a_stride;
            b += b_stride;
        }
#pragma unroll
        for (int i = 0; i < Loads; i++)
            sum += tgi_direct<Type>::decode(a_value[i]) * tgi_direct<Type>::decode(b_value[i]);
    }

    /* Returns the sum over the threads that share out k, to the first of them. */
    static __device__ __forceinline__ sum_type add_lanes(int lane, int lanes, int group,
                                                         sum_type *shared, sum_type sum)
    {
        constexpr int added = Along ? 32 : 1; /* lanes whose sums shuffles have added */
        if (Along) {
#pragma unroll 1
            for (int distance = min(lanes, 32) / 2; distance > 0; distance /= 2)
                sum += __shfl_xor_sync(~0u, sum, distance);
        }
        if (lanes <= added)
            return sum;
        const int groups = TGI_SMALL_DIRECT_THREADS / lanes;
        shared[lane * groups + group] = sum;
        /* Without this barrier the first lane would read sums that others have yet to put. */
        __syncthreads();
        if (lane == 0) {
#pragma unroll 4
            for (int i = added; i < lanes; i += added)
                sum += shared[i * groups + group];
        }
        return sum;
    }

    static __device__ __forceinline__ void multiply(const tgi_short_args &args, sum_type *shared)
    {
        const int lane = Along ? threadIdx.x : threadIdx.z;
        const int lanes = Along ? blockDim.x : blockDim.z;
        const int cols = Along ? blockDim.y : blockDim.x, rows = Along ? blockDim.z : blockDim.y;
        const int own_col = Along ? threadIdx.y : threadIdx.x;
        const int own_row = Along ? threadIdx.z : threadIdx.y;
        const int col = blockIdx.x * cols + own_col, row = blockIdx.y * rows + own_row;
        const int is_inside = row < args.m && col < args.n;
        const elem *a = static_cast<const elem *>(args.a) + blockIdx.z * args.a_batch +
                        row * args.a_row + lane * args.a_k;
        const elem *b = static_cast<const elem *>(args.b) + blockIdx.z * args.b_batch +
                        col * args.b_col + lane * args.b_k;
        const int64_t a_stride = lanes * args.a_k, b_stride = lanes * args.b_k;
        int left = is_inside ? args.k - lane : 0;
        sum_type sum = 0;
        tgi_wait_for_stream();
#pragma unroll 1
        for (; left > lanes; left -= TGI_SMALL_DIRECT_LOADS * lanes)
            add<TGI_SMALL_DIRECT_LOADS>(a, b, a_stride, b_stride, left, lanes, sum);
        if (left > 0)
            add<1>(a, b, a_stride, b_stride, left, lanes, sum);
        if (lanes > 1)
            sum = add_lanes(lane, lanes, own_row * cols + own_col, shared, sum);
        if (lane > 0 || !is_inside)
            return;
        const int64_t place = blockIdx.z * args.d_batch + row * args.d_row + col * args.d_col;
        if constexpr (Type == TG_TYPE_FP64)
            static_cast<double *>(args.d)[place] = sum;
        else
            tgi_write_element(args.d, place, args.d_type, sum);
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
#define TGI_SMALL_SHORT(type)
#else
#define TGI_SMALL_SHORT(type)                                                                      \
    TGI_SMALL_SHORT_ONE(tgi_short_along_##type, type, 1)                                           \
    TGI_SMALL_SHORT_ONE(tgi_short_across_##type, type, 0)
#endif
#define TGI_SMALL_SHORT_ONE(name, type, along)                                                     \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_DIRECT_THREADS)                         \
        name(const __grid_constant__ tgi_short_args args)                                          \
    {                                                                                              \
        typedef tgi_short<TGI_TYPE_OF(type), along> body;                                          \
        __shared__ body::sum_type shared[TGI_SMALL_DIRECT_THREADS];                                \
        body::multiply(args, shared);                                                              \
    }

#endif
