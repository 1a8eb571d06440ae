/*
 * Forms products of family small that have a very short k, or few elements of D. A thread forms one
 * element of D, or threads that share out k form it together. The code is kept small: a kernel of a
 * microsecond takes most of its time to fetch instructions and arguments. C and the bias are
 * requested before the products, so that nothing waits for them alone.
 *
 *     setup()      finds the thread's element of D and its first k
 *     load()       loads the thread's elements of some values of k, all at once
 *     multiply()   adds their products to the thread's sum
 *     finish()     adds the sums of the threads that share out k, and stores the element
 */
#ifndef TGI_SMALL_SHORT_CUH
#define TGI_SMALL_SHORT_CUH

#include "kernels/small/small_direct.cuh"
#include "kernels/small/small_shape.h"
#include "kernels/small/small_terms.cuh"

/* Type is the type of A and B. If Along is 1, threads that share out k are neighbours along x, and
 * the block's other dimensions are columns and rows of D. Otherwise its dimensions are columns,
 * rows and the threads that share out k. */
template <tg_type Type, int Along, tgi_terms_kind Kind> struct tgi_short {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum_type;
    typedef tgi_direct<Type, 0> direct;

    /* Holds the elements of Loads values of k. */
    template <int Loads> struct step {
        elem a[Loads], b[Loads];
    };

    /* FP32 has no batch-invariant problems here: with code for them others take longer. */
    static constexpr int may_pair = Type != TG_TYPE_FP32;
    typedef typename tgi_terms_of<Type>::bits bits;
    typedef tgi_short_terms<bits> terms;

    int lanes, lane; /* how many threads share out k, and this one */
    int row, col;    /* the thread's element of D */
    int is_inside;
    const elem *a, *b; /* at the thread's next k */
    int64_t a_stride, b_stride;

    __device__ __forceinline__ void setup(const tgi_sums_args &args)
    {
        lane = Along ? threadIdx.x : threadIdx.z;
        lanes = Along ? blockDim.x : blockDim.z;
        const int cols = Along ? blockDim.y : blockDim.x, rows = Along ? blockDim.z : blockDim.y;
        const int own_col = Along ? threadIdx.y : threadIdx.x;
        const int own_row = Along ? threadIdx.z : threadIdx.y;
        col = blockIdx.x * cols + own_col;
        row = blockIdx.y * rows + own_row;
        is_inside = row < args.m && col < args.n;
        a = static_cast<const elem *>(args.a) + blockIdx.z * args.a_batch + row * args.a_row +
            lane * args.a_k;
        b = static_cast<const elem *>(args.b) + blockIdx.z * args.b_batch + col * args.b_col +
            lane * args.b_k;
        a_stride = lanes * args.a_k;
        b_stride = lanes * args.b_k;
    }

    /* Loads the elements of the next values of k, `lanes` apart, of which those with `left` > 0
     * exist. */
    template <int Loads> __device__ __forceinline__ void load(int left, step<Loads> &next)
    {
#pragma unroll
        for (int i = 0; i < Loads; i++) {
            next.a[i] = left > i * lanes ? *a : elem(0);
            next.b[i] = left > i * lanes ? *b : elem(0);
            a += a_stride;
            b += b_stride;
        }
    }

    template <int Loads>
    static __device__ __forceinline__ void multiply(sum_type &sum, const step<Loads> &next)
    {
#pragma unroll
        for (int i = 0; i < Loads; i++)
            sum += direct::decode(next.a[i]) * direct::decode(next.b[i]);
    }

    template <int Loads> __device__ __forceinline__ void add(int left, sum_type &sum)
    {
        step<Loads> next;
        load(left, next);
        multiply(sum, next);
    }

    /* Returns the sum over threads that are no neighbours, to the first of them, in the order in
     * which those of neighbours are added. */
    __device__ __forceinline__ sum_type add_pairs(sum_type *own, int groups) const
    {
        constexpr int pairs = 32;
#pragma unroll 1
        for (int distance = min(lanes, pairs) / 2; distance > 0; distance /= 2) {
            /* Without this barrier a thread would add a sum that another has yet to put. */
            __syncthreads();
            if (lane % pairs < distance)
                *own += own[distance * groups];
        }
        /* Without this barrier the first lane would read a sum that its partner has yet to put. */
        __syncthreads();
        sum_type sum = *own;
        if (lane == 0) {
#pragma unroll 1
            for (int i = pairs; i < lanes; i += pairs)
                sum += own[i * groups];
        }
        return sum;
    }

    /* Returns the sum over the threads that share out k, to the first of them. Neighbours are added
     * in pairs, 32 of them, and then in order. Other threads are added in order, or for a
     * batch-invariant problem as neighbours are, which takes longer. */
    __device__ __forceinline__ sum_type add_lanes(sum_type *shared, int is_paired,
                                                  sum_type sum) const
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
        const int group =
            Along ? threadIdx.z * blockDim.y + threadIdx.y : threadIdx.y * blockDim.x + threadIdx.x;
        shared[lane * groups + group] = sum;
        if (may_pair && !Along && is_paired)
            return add_pairs(shared + lane * groups + group, groups);
        /* Without this barrier the first lane would read sums that others have yet to put. */
        __syncthreads();
        if (lane == 0) {
#pragma unroll 4
            for (int i = added; i < lanes; i += added)
                sum += shared[i * groups + group];
        }
        return sum;
    }

    /* A sum of -0 becomes +0, as in other rows of the order of one lane. */
    __device__ __forceinline__ void finish(const tgi_short_args &args, sum_type *shared,
                                           const terms &own, sum_type sum) const
    {
        const tgi_sums_args &p = args.sums;
        if (lanes > 1)
            sum = add_lanes(shared, p.d_type & TGI_SHORT_PAIRS, sum);
        if (lane > 0 || !is_inside)
            return;
        const int64_t place = blockIdx.z * p.d_batch + row * p.d_row + col * p.d_col;
        sum += 0;
        if (tgi_has_short_terms<Kind>(p))
            sum = tgi_apply_terms<Kind>(args, tgi_find_short_d_type(p), own, sum);
        if constexpr (Type == TG_TYPE_FP64)
            static_cast<double *>(p.d)[place] = sum;
        else
            tgi_write_element(p.d, place, tgi_find_short_d_type(p), sum);
    }

    /* Forms the thread's element. */
    static __device__ __forceinline__ void form(const tgi_short_args &args)
    {
        __shared__ sum_type shared[TGI_SMALL_DIRECT_THREADS];
        tgi_check_body<tgi_short>();
        tgi_check_sum<tgi_short>();
        tgi_short body;
        body.setup(args.sums);
        int left = body.is_inside ? args.sums.k - body.lane : 0;
        sum_type sum = 0;
        terms own = {};
        tgi_wait_for_stream();
        if (tgi_has_short_terms<Kind>(args.sums))
            if (body.lane == 0 && body.is_inside)
                own = tgi_request_terms<bits>(args, tgi_find_short_d_type(args.sums), body.row,
                                              body.col);
#pragma unroll 1
        for (; left > body.lanes; left -= TGI_SMALL_DIRECT_LOADS * body.lanes)
            body.template add<TGI_SMALL_DIRECT_LOADS>(left, sum);
        if (left > 0)
            body.template add<1>(left, sum);
        body.finish(args, shared, own, sum);
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
#define TGI_SMALL_SHORT(name, type, kind)
#else
#define TGI_SMALL_SHORT(name, type, kind)                                                          \
    TGI_BODY_KERNEL(tgi_##name##_along_##type, tgi_short_args, (TGI_SMALL_DIRECT_THREADS),         \
                    tgi_short<TGI_TYPE_OF(type), 1, kind>)                                         \
    TGI_BODY_KERNEL(tgi_##name##_across_##type, tgi_short_args, (TGI_SMALL_DIRECT_THREADS),        \
                    tgi_short<TGI_TYPE_OF(type), 0, kind>)
#endif

#endif
