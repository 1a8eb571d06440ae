/*
 * Forms products of family small that are batch invariant and have few elements of D, as sums
 * alone, in the order of the rows that form large ones. Lanes of a warp share out k, and each loads
 * all of its elements at once. A sum then goes from lane to lane: each adds its products and passes
 * the sum on, so that all are added one after another. There are teams (kernels.def) of such
 * lanes. Little code and no barrier make a kernel of a microsecond.
 *
 *     setup()      finds the lane's element of D and its first k
 *     load()       loads the lane's elements of two runs of k
 *     multiply()   passes the sums along the lanes
 *     finish()     adds the sums of teams, and stores the element
 */
#ifndef TGI_SMALL_RELAY_CUH
#define TGI_SMALL_RELAY_CUH

#include "kernels/body.cuh"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/small/small_shape.h"

/* Lanes that share out k are neighbours if Form is not TGI_RELAY_ACROSS; otherwise neighbours have
 * neighbouring columns. With TGI_RELAY_VECTORS both operands are read by 16 bytes along k. */
template <tg_type Type, tgi_relay_form Form> struct tgi_relay {
    typedef typename tgi_element_of<Type>::type elem;
    static constexpr int run = TGI_SMALL_RELAY_RUN, runs = TGI_SMALL_RELAY_RUNS;
    static constexpr int width = 16 / static_cast<int>(sizeof(elem));

    /* Holds the elements of the lane's runs. */
    struct step {
        elem a[runs][run], b[runs][run];
    };

    int share, lane_apart; /* the lane's place among those that share out k; their distance */
    int row, col, is_inside;
    const elem *a, *b;

    __device__ __forceinline__ void setup(const tgi_relay_args &args)
    {
        const tgi_sums_args &p = args.sums;
        const int share_bits = args.relay_bits + args.team_bits;
        const int lane = threadIdx.x % 32, elems = 32 >> share_bits;
        const int own = Form == TGI_RELAY_ACROSS ? lane % elems : lane >> share_bits;
        const int at = threadIdx.x / 32 * elems + own;
        share = Form == TGI_RELAY_ACROSS ? lane / elems : lane & ((1 << share_bits) - 1);
        lane_apart = Form == TGI_RELAY_ACROSS ? elems : 1;
        col = (blockIdx.x << args.col_bits) + (at & ((1 << args.col_bits) - 1));
        row = blockIdx.y * (blockDim.x >> (share_bits + args.col_bits)) + (at >> args.col_bits);
        is_inside = row < p.m && col < p.n;
        a = static_cast<const elem *>(p.a) + blockIdx.z * p.a_batch + row * p.a_row;
        b = static_cast<const elem *>(p.b) + blockIdx.z * p.b_batch + col * p.b_col;
    }

    /* Loads a run from k on, of which `count` elements exist. */
    static __device__ __forceinline__ void load_run(const elem *from, int64_t stride, int count,
                                                    elem (&to)[run])
    {
        if (Form == TGI_RELAY_VECTORS && count >= run) {
#pragma unroll
            for (int i = 0; i < run; i += width) {
                typedef tgi_row_piece<elem, width> piece;
                const piece some = *reinterpret_cast<const piece *>(from + i);
#pragma unroll
                for (int j = 0; j < width; j++)
                    to[i + j] = some.element[j];
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < run; i++)
            to[i] = i < count ? from[i * stride] : elem(0);
    }

    __device__ __forceinline__ void load(const tgi_relay_args &args, int k, int end,
                                         step &next) const
    {
        const tgi_sums_args &p = args.sums;
        const int apart = run << args.team_bits;
#pragma unroll
        for (int i = 0; i < runs; i++) {
            const int from = k + i * apart, count = is_inside ? end - from : 0;
            load_run(a + from * p.a_k, Form == TGI_RELAY_VECTORS ? 1 : p.a_k, count, next.a[i]);
            load_run(b + from * p.b_k, Form == TGI_RELAY_VECTORS ? 1 : p.b_k, count, next.b[i]);
        }
    }

    /* Adds the runs of all lanes of the team to its sum. `left` values of k remain from the first
     * lane's on. */
    __device__ __forceinline__ void multiply(const tgi_relay_args &args, const step &one, int left,
                                             elem &sum) const
    {
        const int team = share & ((1 << args.team_bits) - 1), apart = run << args.team_bits;
        const int lane = threadIdx.x % 32 - (share - team) * lane_apart;
#pragma unroll 1
        for (int i = 0; i < 1 << args.relay_bits && left > 0; i++, left -= runs * apart) {
            elem own = sum;
#pragma unroll
            for (int j = 0; j < runs; j++) {
                elem some = own;
#pragma unroll
                for (int k = 0; k < run; k++)
                    some = fma(one.a[j][k], one.b[j][k], some);
                /* Runs of all teams begin behind the end: other rows do not add their zeros. */
                own = left > j * apart ? some : own;
            }
            sum = __shfl_sync(~0u, own, lane + (i << args.team_bits) * lane_apart);
        }
    }

    /* Returns the sum over the teams, in order. */
    __device__ __forceinline__ elem add_teams(const tgi_relay_args &args, elem sum) const
    {
        const int lane = threadIdx.x % 32 - share * lane_apart;
        elem all = __shfl_sync(~0u, sum, lane);
#pragma unroll 1
        for (int team = 1; team < 1 << args.team_bits; team++)
            all += __shfl_sync(~0u, sum, lane + team * lane_apart);
        return all;
    }

    /* Returns the sum of the split that begins at `begin`. The lane's first run of a split begins
     * `first` behind that. */
    __device__ __forceinline__ elem sum_split(const tgi_relay_args &args, int begin,
                                              int first) const
    {
        const int end = min(begin + args.split_elems, args.sums.k);
        elem sum = 0;
#pragma unroll 1
        for (int k = begin; k < end; k += runs * run << args.team_bits << args.relay_bits) {
            step one;
            load(args, k + first, end, one);
            multiply(args, one, end - k, sum);
        }
        return add_teams(args, sum);
    }

    __device__ __forceinline__ void finish(const tgi_relay_args &args, elem sum) const
    {
        const tgi_sums_args &p = args.sums;
        if (share == 0 && is_inside)
            static_cast<elem *>(p.d)[blockIdx.z * p.d_batch + row * p.d_row + col * p.d_col] = sum;
    }

    static __device__ __forceinline__ void form(const tgi_relay_args &args)
    {
        tgi_check_body<tgi_relay>();
        tgi_check_sum<tgi_relay>();
        tgi_relay body;
        body.setup(args);
        const int team = body.share & ((1 << args.team_bits) - 1), apart = run << args.team_bits;
        const int first = (body.share >> args.team_bits) * runs * apart + team * run;
        /* A sum that is zero is +0, except where one team after another is added to the first. */
        elem total = args.split_count == 1 && args.team_bits > 0 ? elem(-0.0) : elem(0);
        tgi_wait_for_stream();
#pragma unroll 1
        for (int y = 0; y < args.add_rows; y++) {
            elem some = y == 0 ? total : elem(0);
#pragma unroll 1
            for (int split = y; split < args.split_count; split += args.add_rows)
                some += body.sum_split(args, split * args.split_elems, first);
            total = y == 0 ? some : total + some;
        }
        body.finish(args, total);
    }
};

#define TGI_SMALL_RELAY(type)                                                                      \
    TGI_SMALL_RELAY_ONE(tgi_relay_across_##type, type, TGI_RELAY_ACROSS)                           \
    TGI_SMALL_RELAY_ONE(tgi_relay_along_##type, type, TGI_RELAY_ALONG)                             \
    TGI_SMALL_RELAY_ONE(tgi_relay_vectors_##type, type, TGI_RELAY_VECTORS)
#define TGI_SMALL_RELAY_ONE(name, type, kind)                                                      \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_RELAY_THREADS)                          \
        name(const __grid_constant__ tgi_relay_args args)                                          \
    {                                                                                              \
        tgi_relay<TGI_TYPE_OF(type), kind>::form(args);                                            \
    }

#endif
