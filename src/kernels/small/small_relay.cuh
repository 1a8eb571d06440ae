/*
 * Forms products of family small that are batch invariant and have few elements of D and a short k,
 * by multiply-adds of FP32, in the order of the rows that form large ones. Lanes of a warp share
 * out k, and each loads all of its elements at once. A sum then goes from lane to lane: each adds
 * its products and passes the sum on, so that all are added one after another. Little code and no
 * barriers make a kernel of a microsecond.
 *
 *     setup()      finds the lane's element of D and its share of k
 *     load()       loads the lane's elements of its run of k
 *     multiply()   passes the sum along the lanes
 *     finish()     adds C and a bias, applies the activation, and stores the element
 */
#ifndef TGI_SMALL_RELAY_CUH
#define TGI_SMALL_RELAY_CUH

#include "kernels/body.cuh"
#include "kernels/small/small_relay_sums.cuh"

/* With Has_terms D has C, a bias or an activation, which the functions of sums alone lack. */
template <int Has_terms> struct tgi_relay {
    typedef tgi_short_terms<uint32_t> terms;
    static constexpr int run =
        TGI_SMALL_RELAY_SHORT_RUN; /* values of k that a lane loads at once */

    /* Holds the elements of the lane's run. */
    struct step {
        float a[run], b[run];
    };

    int share, lane_apart; /* the lane's place among those that share out k; their distance */
    int row, col;
    const float *a, *b;

    __device__ __forceinline__ void setup(const tgi_relay_args &args)
    {
        const tgi_sums_args &p = args.sums;
        const int lane = threadIdx.x % 32, elems = 32 >> args.relay_bits;
        /* Lanes that share out k are neighbours, or else those that have neighbouring columns. */
        const int own = args.is_across ? lane % elems : lane >> args.relay_bits;
        const int at = threadIdx.x / 32 * elems + own, cols = 1 << args.col_bits;
        share = args.is_across ? lane / elems : lane & ((1 << args.relay_bits) - 1);
        lane_apart = args.is_across ? elems : 1;
        col = blockIdx.x * cols + (at & (cols - 1));
        row = blockIdx.y * (blockDim.x >> args.relay_bits >> args.col_bits) + (at >> args.col_bits);
        a = static_cast<const float *>(p.a) + blockIdx.z * p.a_batch + min(row, p.m - 1) * p.a_row;
        b = static_cast<const float *>(p.b) + blockIdx.z * p.b_batch + min(col, p.n - 1) * p.b_col;
    }

    /* Loads a run, of which `left` elements exist: the others are 0. */
    static __device__ __forceinline__ void load_run(const float *from, int64_t stride, int left,
                                                    float (&to)[run])
    {
#pragma unroll
        for (int i = 0; i < run; i++) {
            to[i] = i < left ? *from : 0.0f;
            from += i + 1 < left ? stride : 0;
        }
    }

    /* Addresses of elements that do not exist are those of others, since a load behind a branch
     * would wait for the one before. */
    __device__ __forceinline__ void load(const tgi_sums_args &p, int k, step &next) const
    {
        const int left = p.k - k, at = left > 0 ? k : 0;
        load_run(a + at * p.a_k, p.a_k, left, next.a);
        load_run(b + at * p.b_k, p.b_k, left, next.b);
    }

    /* Adds the runs of all lanes to the sum. `left` values of k remain from the first lane's on. */
    __device__ __forceinline__ void multiply(const tgi_relay_args &args, const step &one, int left,
                                             float &sum) const
    {
        const int first = threadIdx.x % 32 - share * lane_apart;
#pragma unroll 1
        for (int i = 0; i < 1 << args.relay_bits && left > 0; i++, left -= run) {
            float own = sum;
#pragma unroll
            for (int k = 0; k < run; k++)
                own = fma(one.a[k], one.b[k], own);
            sum = __shfl_sync(~0u, own, first + i * lane_apart);
        }
    }

    /* Returns 1 if the lane stores an element of D. */
    __device__ __forceinline__ int is_storing(const tgi_relay_args &args) const
    {
        return share == 0 && row < args.sums.m && col < args.sums.n;
    }

    /* A sum that is zero is +0. */
    __device__ __forceinline__ void finish(const tgi_relay_short_args &all, const terms &own,
                                           float sum) const
    {
        sum += 0.0f;
        if (!is_storing(all.relay))
            return;
        if (Has_terms)
            sum = tgi_apply_terms(all, TG_TYPE_FP32, own, sum);
        tgi_relay_store<TG_TYPE_FP32>(all.relay, row, col, sum);
    }

    static __device__ __forceinline__ void form(const tgi_relay_short_args &all)
    {
        const tgi_relay_args &args = all.relay;
        tgi_check_body<tgi_relay>();
        tgi_check_sum<tgi_relay>();
        tgi_relay body;
        body.setup(args);
        float sum = 0;
        terms own = {};
        tgi_wait_for_stream();
        if (Has_terms && body.is_storing(args))
            own = tgi_request_terms<uint32_t>(all, TG_TYPE_FP32, body.row, body.col);
#pragma unroll 1
        for (int k = 0; k < args.sums.k; k += run << args.relay_bits) {
            step one;
            body.load(args.sums, k + body.share * run, one);
            body.multiply(args, one, args.sums.k - k, sum);
        }
        body.finish(all, own, sum);
    }
};

#define TGI_SMALL_RELAY(name, has_terms)                                                           \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_RELAY_SHORT_THREADS)                    \
        name(const __grid_constant__ tgi_relay_short_args args)                                    \
    {                                                                                              \
        tgi_relay<has_terms>::form(args);                                                          \
    }

#endif
