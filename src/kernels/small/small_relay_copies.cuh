/* Copies lines of operands to shared memory, for relays of family small: one by one those elements
 * that do not lie in units of 16 bytes, or not along k. All loads of a round are under way at
 * once. */
#ifndef TGI_SMALL_RELAY_COPIES_CUH
#define TGI_SMALL_RELAY_COPIES_CUH

#include "kernels/small/small_relay_args.h"

template <typename Elem> struct tgi_relay_copies {
    static constexpr int once_bits = TGI_SMALL_RELAY_ONCE_BITS, at_once = 1 << once_bits;

    /* Describes a thread's copies of an operand: every `step`-th value of k of one line, from
     * `first` on, in so many rounds of at_once loads. */
    struct line {
        const char *from;
        int stride; /* in bytes */
        Elem *to;
        int first, step, rounds;
    };

    int first_k;       /* the first value of k that the block has */
    int depth, padded; /* the values of k that it has, and with zeros behind them */
    int pitch;         /* elements from a line to the next */

    /* Finds what the thread copies of the 1 << line_bits lines from `begin` on. Those behind line
     * `last` are copies of it. Lanes are neighbours along k if lines are. */
    __device__ __forceinline__ line find_line(const tgi_relay_args &args, int line_bits, int begin,
                                              int last, const void *data, int64_t apart,
                                              int64_t stride, Elem *to) const
    {
        const int thread_bits = args.warp_bits + 5 - line_bits, thread = threadIdx.x;
        const int is_along = stride == 1;
        const int number = is_along ? thread >> thread_bits : thread & ((1 << line_bits) - 1);
        line own;
        own.from = static_cast<const char *>(data) +
                   min(begin + number, last) * apart * static_cast<int>(sizeof(Elem));
        own.stride = static_cast<int>(stride * static_cast<int>(sizeof(Elem)));
        own.to = to + number * pitch;
        own.first = is_along ? thread & ((1 << thread_bits) - 1) : thread >> line_bits;
        own.step = 1 << thread_bits;
        own.rounds = (padded + (own.step << once_bits) - 1) >> (thread_bits + once_bits);
        return own;
    }

    /* Requests the values of a round. Addresses of those that do not exist are those of others. */
    __device__ __forceinline__ void request(const line &own, int round, Elem (&some)[at_once]) const
    {
        int k = own.first + round * at_once * own.step;
#pragma unroll
        for (int i = 0; i < at_once; i++, k += own.step)
            some[i] = *reinterpret_cast<const Elem *>(
                own.from + static_cast<int64_t>(first_k + min(k, depth - 1)) * own.stride);
    }

    __device__ __forceinline__ void put(const line &own, int round,
                                        const Elem (&some)[at_once]) const
    {
        int k = own.first + round * at_once * own.step;
        Elem *to = own.to + k;
#pragma unroll
        for (int i = 0; i < at_once; i++, k += own.step, to += own.step)
            if (k < padded)
                *to = k < depth ? some[i] : Elem(0);
    }

    /* Copies lines of both operands at once. */
    __device__ __forceinline__ void load(const line &own_a, const line &own_b) const
    {
#pragma unroll 1
        for (int i = 0; i < max(own_a.rounds, own_b.rounds); i++) {
            Elem some_a[at_once], some_b[at_once];
            if (i < own_a.rounds)
                request(own_a, i, some_a);
            if (i < own_b.rounds)
                request(own_b, i, some_b);
            if (i < own_a.rounds)
                put(own_a, i, some_a);
            if (i < own_b.rounds)
                put(own_b, i, some_b);
        }
    }
};

#endif
