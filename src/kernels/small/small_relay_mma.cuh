/*
 * Forms products of family small that are batch invariant and have few elements of D, by matrix
 * instructions of FP64 and of 16-bit types, in the order of the rows that form large ones. A block
 * forms 16 x 8 of D. A warp loads its elements of a piece of k at once, straight to registers. The
 * sums then go from warp to warp of a group, and each adds its products, so that all are added in
 * order of k. Groups form splits of k at the same time, whose sums are added in order at the end
 * (small_relay_sums.cuh). The code is kept small (small_short.cuh).
 *
 *     setup()      finds the lane's rows and column, and the warp's group
 *     load()       loads the lane's words of a piece of k
 *     multiply()   adds their products to the sums
 *     finish()     adds the sums of splits, and stores the elements
 */
#ifndef TGI_SMALL_RELAY_MMA_CUH
#define TGI_SMALL_RELAY_MMA_CUH

#include "kernels/body.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/ptx/warp_mma_fp64.cuh"
#include "kernels/small/small_relay_sums.cuh"
#include "kernels/small/small_terms.cuh"

/* A lane has words of one element of FP64, or of two elements of 16 bits that are neighbours along
 * k. An instruction multiplies two words of each line, of four lanes. */
template <tg_type Type> struct tgi_relay_words {
    typedef uint32_t type;
    static constexpr int elems = 2;
};
template <> struct tgi_relay_words<TG_TYPE_FP64> {
    typedef double type;
    static constexpr int elems = 1;
};

/* Pieces have Steps instructions. With May_have_terms D may have C, a bias and an activation. With
 * Is_short all of k is one piece: each warp of a block forms 16 x 8 of D of its own, or with terms
 * the same, of which it stores a quarter. Teams have every Teams-th 8 values of k, in FP64. */
template <tg_type Type, int Steps, int Is_short, int May_have_terms, int Teams>
struct tgi_relay_mma {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum_type;
    typedef typename tgi_relay_words<Type>::type word;
    typedef tgi_short_terms<word> terms;
    static constexpr int word_elems = tgi_relay_words<Type>::elems;
    static constexpr int stride = 4 * word_elems; /* from a lane's word to its next */
    static constexpr int step_k = 2 * stride;     /* k of an instruction */
    /* From the k of an instruction to that of the next, and of a piece to that of the next. */
    static constexpr int apart = step_k * Teams, depth = Steps * apart;
    static constexpr int is_alone = Is_short && !May_have_terms; /* a warp stores its tile */

    /* Holds the words of a lane: those of rows g and g + 8 and of column g, two in each step. */
    struct step {
        word value[3][2 * Steps];
    };

    int row, col; /* the lane's first row, and its column */
    int lane, member, members, group, groups;
    const elem *line[3];

    __device__ __forceinline__ void setup(const tgi_relay_args &args)
    {
        const tgi_sums_args &p = args.sums;
        const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
        lane = threadIdx.x % 32;
        members = 1 << args.relay_bits;
        member = warp & (members - 1);
        group = Is_short ? 0 : warp >> args.relay_bits;
        groups = warps >> args.relay_bits;
        row = blockIdx.y * 16 + lane / 4;
        const int tile = is_alone ? blockIdx.x * warps + warp : blockIdx.x >> args.cluster_bits;
        col = tile * 8 + lane / 4;
        line[0] = static_cast<const elem *>(p.a) + blockIdx.z * p.a_batch;
        line[1] = line[0] + min(row + 8, p.m - 1) * p.a_row;
        line[0] += min(row, p.m - 1) * p.a_row;
        line[2] =
            static_cast<const elem *>(p.b) + blockIdx.z * p.b_batch + min(col, p.n - 1) * p.b_col;
    }

    /* Loads the words of a line from `from` on, of FP64 or two of 16 bits at once. The second one
     * of an instruction is `move` elements behind the first. */
    template <typename Load>
    static __device__ __forceinline__ void load_words(const Load *from, int64_t move, int left,
                                                      word (&to)[2 * Steps])
    {
        const int64_t further = (apart / stride - 1) * move;
#pragma unroll
        for (int j = 0; j < 2 * Steps; j++) {
            const int next = j % 2 ? (j / 2 + 1) * apart : j / 2 * apart + stride;
            to[j] = j / 2 * apart + j % 2 * stride < left ? *from : Load(0);
            from += next < left ? j % 2 ? further : move : 0;
        }
    }

    /* Loads the words from k on, of which `left` elements exist; the others are 0. Addresses of
     * these are those of others, since a load behind a branch would wait for the one before. */
    __device__ __forceinline__ void load(const tgi_relay_args &args, int k, int left,
                                         step &next) const
    {
        const int at = left > 0 ? k : 0;
#pragma unroll
        for (int i = 0; i < 3; i++) {
            const int64_t k_stride = i < 2 ? args.sums.a_k : args.sums.b_k;
            const elem *const from = line[i] + at * k_stride;
            auto &to = next.value[i];
            if constexpr (word_elems == 1) {
                load_words(from, stride * k_stride, left, to);
            } else if (Steps > 1 && (i < 2 ? args.has_a_pairs : args.has_b_pairs)) {
                load_words(reinterpret_cast<const word *>(from), stride / 2, left, to);
            } else {
                word high[2 * Steps];
                load_words(from, stride * k_stride, left, to);
                load_words(from + (left > 1 ? k_stride : 0), stride * k_stride, left - 1, high);
#pragma unroll
                for (int j = 0; j < 2 * Steps; j++)
                    to[j] |= high[j] << 16;
            }
        }
    }

    /* Adds the products of the steps that begin before the end. */
    static __device__ __forceinline__ void multiply(const step &one, int left, sum_type (&sum)[4])
    {
#pragma unroll
        for (int i = 0; i < Steps; i++) {
            if (apart * i >= left)
                continue;
            const auto &value = one.value;
            if constexpr (word_elems == 1) {
                const double a[2][2] = {{value[0][2 * i], value[0][2 * i + 1]},
                                        {value[1][2 * i], value[1][2 * i + 1]}};
                const double b[2] = {value[2][2 * i], value[2][2 * i + 1]};
                tgi_multiply_fp64_16x8x8(sum, a, b);
            } else {
                const word a[4] = {value[0][2 * i], value[1][2 * i], value[0][2 * i + 1],
                                   value[1][2 * i + 1]};
                tgi_multiply_16x8x16<Type>(sum, a, value[2][2 * i], value[2][2 * i + 1]);
            }
        }
    }

    /* The row and the column of element `i` of those of a lane. */
    struct place {
        int row, col;
    };

    __device__ __forceinline__ place find_place(int of_lane, int i) const
    {
        return {static_cast<int>(blockIdx.y) * 16 + of_lane / 4 + i / 2 * 8,
                col - lane / 4 + of_lane % 4 * 2 + i % 2};
    }

    static __device__ __forceinline__ int is_inside(const tgi_relay_args &args, const place &at)
    {
        return at.row < args.sums.m && at.col < args.sums.n;
    }

    /* Returns 1 if D has C, a bias or an activation. */
    static __device__ __forceinline__ int has_terms(const tgi_relay_args &args)
    {
        return May_have_terms && tgi_has_short_terms(args.sums);
    }

    /* Requests C and the bias of element `i` of those of a lane. */
    __device__ __forceinline__ terms request(const tgi_relay_short_args &all, int of_lane,
                                             int i) const
    {
        const place at = find_place(of_lane, i);
        return is_inside(all.relay, at)
                   ? tgi_request_terms<word>(all, tgi_find_short_d_type(all.relay.sums), at.row,
                                             at.col)
                   : terms{};
    }

    /* Stores element `i` of those of a lane. */
    __device__ __forceinline__ void store(const tgi_relay_args &args, int of_lane, int i,
                                          sum_type sum) const
    {
        const place at = find_place(of_lane, i);
        if (is_inside(args, at))
            tgi_relay_store<Type>(args, at.row, at.col, sum);
    }

    /* Returns 1 if the sums are stored from registers. */
    static __device__ __forceinline__ int is_stored_whole(const tgi_relay_args &args)
    {
        return !has_terms(args) && args.split_count == 1 && Teams == 1;
    }

    /* Waits for the sums of the warp before, at its `turn`, which is even or odd. */
    __device__ __forceinline__ void take(uint32_t ready, uint32_t turn, const sum_type *handed,
                                         sum_type (&sum)[4]) const
    {
        const int warp = threadIdx.x / 32;
        tgi_barrier_wait(ready + warp * 8, turn % 2);
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] = handed[(warp * 4 + i) * 32 + lane];
    }

    /* Hands the sums to the next warp of the group. */
    __device__ __forceinline__ void hand(uint32_t ready, sum_type *handed,
                                         const sum_type (&sum)[4]) const
    {
        const int next = group * members + (member + 1) % members;
#pragma unroll
        for (int i = 0; i < 4; i++)
            handed[(next * 4 + i) * 32 + lane] = sum[i];
        __syncwarp();
        if (lane == 0)
            tgi_barrier_arrive(ready + next * 8);
    }

    /* Stores the sums of a k that is not split. In FP64 one that is zero is +0. */
    __device__ __forceinline__ void store_whole(const tgi_relay_args &args,
                                                const sum_type (&sum)[4]) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            store(args, lane, i, word_elems == 1 ? sum[i] + 0 : sum[i]);
    }

    /* Forms a split, or the part of one that is a team's. The last warp keeps the sums, or stores
     * them if D is the sums of one split alone. A team without any value of k has zeros. */
    __device__ __forceinline__ void form_split(const tgi_relay_args &args, int part, uint32_t ready,
                                               uint32_t &turn, sum_type *handed, sum_type *kept,
                                               sum_type *first) const
    {
        const int split = part / Teams;
        const int begin = split * args.split_elems + part % Teams * step_k;
        const int end = min((split + 1) * args.split_elems, args.sums.k);
        sum_type sum[4] = {};
#pragma unroll 1
        for (int at = begin + member * depth; (Teams > 1 && at == begin) || at < end;
             at += members * depth) {
            step one;
            const int own = at + lane % 4 * word_elems;
            load(args, own, end - own, one);
            if (at > begin && members > 1)
                take(ready, turn++, handed, sum);
            multiply(one, end - at, sum);
            if (at + depth < end) {
                if (members > 1)
                    hand(ready, handed, sum);
                continue;
            }
            if (is_stored_whole(args)) {
                store_whole(args, sum);
                return;
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
                if constexpr (Teams > 1)
                    first[part * 128 + lane * 4 + i] = sum[i] + 0;
                else
                    tgi_relay_keep(args, kept + lane * 4 + i, first + lane * 4 + i, 128, split,
                                   sum[i]);
        }
    }

    static __device__ __forceinline__ void form(const tgi_relay_short_args &all)
    {
        const tgi_relay_args &args = all.relay;
        tgi_check_sum<tgi_relay_mma>();
        tgi_relay_mma body;
        body.setup(args);
        if constexpr (Is_short) {
            const int own = body.lane % 4 * word_elems;
            step one;
            sum_type sum[4] = {};
            const int i = threadIdx.x / 32;
            terms some;
            tgi_wait_for_stream();
            if (!is_alone)
                some = body.request(all, body.lane, i);
            body.load(args, own, args.sums.k - own, one);
            multiply(one, args.sums.k, sum);
            if (is_alone) {
                body.store_whole(args, sum);
                return;
            }
            const sum_type low = i == 0 ? sum[0] : sum[1], high = i == 2 ? sum[2] : sum[3];
            sum_type own_sum = i < 2 ? low : high;
            if constexpr (word_elems == 1)
                own_sum += 0; /* a sum of FP64 that is zero is +0 */
            body.store(args, body.lane, i,
                       tgi_apply_terms(all, tgi_find_short_d_type(args.sums), some, own_sum));
        } else {
            __shared__ uint64_t barriers[TGI_SMALL_RELAY_THREADS / 32];
            extern __shared__ __align__(16) char memory[];
            sum_type *const kept = reinterpret_cast<sum_type *>(memory);
            const int places = min(args.split_count, TGI_SMALL_RELAY_PLACES);
            sum_type *const handed = kept + places * Teams * 128;
            const uint32_t ready = tgi_shared_address(barriers);
            uint32_t turn = 0;
            if (body.members > 1) {
                if (threadIdx.x < blockDim.x / 32)
                    tgi_barrier_init(ready + threadIdx.x * 8, 1);
                /* Without this barrier a warp could arrive before the next one's barrier is made.
                 */
                __syncthreads();
            }
            sum_type *const first = tgi_relay_find_first(args, kept);
            const int at_once = body.groups << args.cluster_bits;
            const int parts = args.split_count * Teams;
            int part = body.groups * tgi_relay_find_rank(args) + body.group;
            tgi_wait_for_stream();
#pragma unroll 1
            for (int i = 0; i < parts; i += at_once, part += at_once) {
                if (part < parts)
                    body.form_split(args, part, ready, turn, handed, kept, first);
                if (is_stored_whole(args))
                    return;
                /* Without this barrier the next split's first warp would hand its sums on before
                 * those of this one are taken, and sums be added that are not kept yet. */
                __syncthreads();
            }
            if (args.cluster_bits == 0 || tgi_relay_wait_for_sums(args))
                body.finish(all, kept);
        }
    }

    /* A sum that is zero is +0. */
    __device__ __forceinline__ void finish(const tgi_relay_short_args &all,
                                           const sum_type *kept) const
    {
        const tgi_relay_args &args = all.relay;
#pragma unroll 1
        for (int i = threadIdx.x; i < 128; i += blockDim.x) {
            terms own;
            if (has_terms(args))
                own = request(all, i / 4, i % 4);
            sum_type sum = tgi_relay_add_splits<Teams>(args, kept + i, 128);
            if (has_terms(args))
                sum = tgi_apply_terms(all, tgi_find_short_d_type(args.sums), own, sum);
            store(args, i / 4, i % 4, sum);
        }
    }
};

#define TGI_SMALL_RELAY_MMA(name, type, steps, is_short, may_have_terms, teams)                    \
    extern "C" __global__ void __launch_bounds__((is_short) ? TGI_SMALL_RELAY_SHORT_THREADS        \
                                                            : TGI_SMALL_RELAY_THREADS)             \
        name(const __grid_constant__ tgi_relay_short_args args)                                    \
    {                                                                                              \
        tgi_relay_mma<TGI_TYPE_OF(type), steps, is_short, may_have_terms, teams>::form(args);      \
    }

#endif
