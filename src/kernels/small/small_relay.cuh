/*
 * Forms products of family small that are batch invariant and have few elements of D, by
 * multiply-adds of FP32, in the order of the rows that form large ones. Lanes of a warp share out
 * k, and each loads all of its elements at once. A sum then goes from lane to lane: each adds its
 * products and passes the sum on, so that all are added one after another. There are teams
 * (kernels.def) of such lanes. Groups of warps form splits of k at the same time, whose sums are
 * added in order at the end (small_relay_sums.cuh). Little code and few barriers make a kernel of a
 * microsecond.
 *
 *     setup()      finds the lane's element of D and its share of k
 *     load()       loads the lane's elements of its runs of k
 *     multiply()   passes the sums along the lanes
 *     finish()     adds the sums of splits, and stores the element
 */
#ifndef TGI_SMALL_RELAY_CUH
#define TGI_SMALL_RELAY_CUH

#include "kernels/body.cuh"
#include "kernels/small/small_relay_sums.cuh"

/* A lane loads Runs runs of Run values of k at once. With Has_vectors both operands are read by 16
 * bytes along k. With May_have_terms D may have C, a bias and an activation. */
template <int Run, int Runs, int Has_vectors, int May_have_terms> struct tgi_relay {
    static constexpr int run = Run, runs = Runs;
    static constexpr int may_split = Runs > 1; /* 0: for a short k, which is not split */

    /* Holds the elements of the lane's runs. */
    struct step {
        float a[runs][run], b[runs][run];
    };

    int share, lane_apart; /* the lane's place among those that share out k; their distance */
    int at, count;         /* the lane's element among those of its group of warps */
    int group, groups;     /* the group of warps, and how many the cluster has */
    int row, col, is_inside;
    const float *a, *b;

    __device__ __forceinline__ void find_place(const tgi_relay_args &args, int element)
    {
        const int cols = 1 << args.col_bits;
        col = (blockIdx.x >> args.cluster_bits) * cols + (element & (cols - 1));
        row = blockIdx.y * (count >> args.col_bits) + (element >> args.col_bits);
        is_inside = row < args.sums.m && col < args.sums.n;
    }

    __device__ __forceinline__ void setup(const tgi_relay_args &args)
    {
        const tgi_sums_args &p = args.sums;
        const int share_bits = args.relay_bits + args.team_bits;
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, elems = 32 >> share_bits;
        /* Lanes that share out k are neighbours, or else those that have neighbouring columns. */
        const int own = args.is_across ? lane % elems : lane >> share_bits;
        share = args.is_across ? lane / elems : lane & ((1 << share_bits) - 1);
        lane_apart = args.is_across ? elems : 1;
        at = (warp & ((1 << args.warp_bits) - 1)) * elems + own;
        count = elems << args.warp_bits;
        groups = blockDim.x / 32 >> args.warp_bits;
        group = (warp >> args.warp_bits) + groups * tgi_relay_find_rank(args);
        groups <<= args.cluster_bits;
        find_place(args, at);
        a = static_cast<const float *>(p.a) + blockIdx.z * p.a_batch + min(row, p.m - 1) * p.a_row;
        b = static_cast<const float *>(p.b) + blockIdx.z * p.b_batch + min(col, p.n - 1) * p.b_col;
    }

    /* Loads a run, of which `left` elements exist: the others are 0. */
    static __device__ __forceinline__ void load_run(const float *from, int64_t stride, int left,
                                                    float (&to)[run])
    {
        constexpr int width = Has_vectors ? 4 : 1;
#pragma unroll
        for (int i = 0; i < run; i += width) {
            const auto some = *reinterpret_cast<const tgi_row_piece<float, width> *>(from);
#pragma unroll
            for (int j = 0; j < width; j++)
                to[i + j] = i < left ? some.element[j] : 0.0f;
            from += i + width < left ? stride * width : 0;
        }
    }

    /* Addresses of elements that do not exist are those of others, since a load behind a branch
     * would wait for the one before. */
    __device__ __forceinline__ void load(const tgi_relay_args &args, int k, int end,
                                         step &next) const
    {
        const tgi_sums_args &p = args.sums;
        const int apart = run << args.team_bits;
#pragma unroll
        for (int i = 0; i < runs; i++) {
            const int from = k + i * apart, left = end - from, at = left > 0 ? from : 0;
            load_run(a + at * p.a_k, Has_vectors ? 1 : p.a_k, left, next.a[i]);
            load_run(b + at * p.b_k, Has_vectors ? 1 : p.b_k, left, next.b[i]);
        }
    }

    /* Adds the runs of all lanes of the team to its sum. `left` values of k remain from the first
     * lane's on. */
    __device__ __forceinline__ void multiply(const tgi_relay_args &args, const step &one, int left,
                                             float &sum) const
    {
        const int team = share & ((1 << args.team_bits) - 1), apart = run << args.team_bits;
        const int lane = threadIdx.x % 32 - (share - team) * lane_apart;
#pragma unroll 1
        for (int i = 0; i < 1 << args.relay_bits && left > 0; i++, left -= runs * apart) {
            float own = sum;
#pragma unroll
            for (int j = 0; j < runs; j++) {
                float some = own;
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
    __device__ __forceinline__ float add_teams(const tgi_relay_args &args, float sum) const
    {
        const int lane = threadIdx.x % 32 - share * lane_apart;
        float all = __shfl_sync(~0u, sum, lane);
#pragma unroll 1
        for (int team = 1; team < 1 << args.team_bits; team++)
            all += __shfl_sync(~0u, sum, lane + team * lane_apart);
        return all;
    }

    /* Returns the sum of the split that begins at `begin`. The lane's first run of a split begins
     * `first` behind that. */
    __device__ __forceinline__ float sum_split(const tgi_relay_args &args, int begin,
                                               int first) const
    {
        const int end = min(begin + args.split_elems, args.sums.k);
        float sum = 0;
#pragma unroll 1
        for (int k = begin; k < end; k += runs * run << args.team_bits << args.relay_bits) {
            step one;
            load(args, k + first, end, one);
            multiply(args, one, end - k, sum);
        }
        return add_teams(args, sum);
    }

    /* A sum that is zero is +0, except where one team after another is added to the first. */
    __device__ __forceinline__ void finish(const tgi_relay_short_args &all, float *shared,
                                           float sum)
    {
        const tgi_relay_args &args = all.relay;
        int is_mine = share == 0;
        if (!may_split || args.split_count == 1) {
            sum += args.team_bits > 0 ? -0.0f : 0.0f;
        } else {
            is_mine = tgi_relay_wait_for_sums(args) && threadIdx.x < count;
            if (is_mine)
                sum = tgi_relay_add_splits(args, shared + threadIdx.x, count);
            find_place(args, threadIdx.x);
        }
        if (!is_mine || !is_inside)
            return;
        if (May_have_terms && tgi_has_short_terms(args.sums))
            sum = tgi_apply_terms(all, TG_TYPE_FP32,
                                  tgi_request_terms<uint32_t>(all, TG_TYPE_FP32, row, col), sum);
        tgi_relay_store(args, row, col, sum);
    }

    static __device__ __forceinline__ void form(const tgi_relay_short_args &all)
    {
        const tgi_relay_args &args = all.relay;
        extern __shared__ __align__(16) char memory[];
        float *shared = reinterpret_cast<float *>(memory);
        tgi_check_body<tgi_relay>();
        tgi_check_sum<tgi_relay>();
        tgi_relay body;
        body.setup(args);
        const int team = body.share & ((1 << args.team_bits) - 1), apart = run << args.team_bits;
        const int first = (body.share >> args.team_bits) * runs * apart + team * run;
        float sum = 0, *const kept_at =
                           may_split ? tgi_relay_find_first(args, shared + body.at) : nullptr;
        tgi_wait_for_stream();
#pragma unroll 1
        for (int split = body.group; split < args.split_count; split += body.groups) {
            sum = body.sum_split(args, split * args.split_elems, first);
            if (may_split && args.split_count > 1 && body.share == 0)
                tgi_relay_keep(args, shared + body.at, kept_at, body.count, split, sum);
        }
        body.finish(all, shared, sum);
    }
};

#define TGI_SMALL_RELAY(name, run, runs, has_vectors, may_have_terms)                              \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_RELAY_THREADS)                          \
        name(const __grid_constant__ tgi_relay_short_args args)                                    \
    {                                                                                              \
        tgi_relay<run, runs, has_vectors, may_have_terms>::form(args);                             \
    }

#endif
