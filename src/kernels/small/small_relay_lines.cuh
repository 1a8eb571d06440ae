/*
 * Forms products of family small that are batch invariant, have few elements of D and a long k, by
 * matrix instructions of 16-bit types, in the order of the rows that form large ones. A block forms
 * up to 16 x 8 of D: fewer lines are copied sooner. Its threads copy the lines of A and B to shared
 * memory, along k, by units of 16 bytes or else by elements. A warp then forms a split of k, one
 * instruction after another, and the sums of splits are added in order at the end
 * (small_relay_sums.cuh). The code is kept small (small_short.cuh).
 *
 *     setup()      finds the lines of the block, and where they go
 *     copy_units() copies an operand's lines by units
 *     load()       copies lines of both operands by elements (small_relay_copies.cuh)
 *     multiply()   adds the products of a split
 */
#ifndef TGI_SMALL_RELAY_LINES_CUH
#define TGI_SMALL_RELAY_LINES_CUH

#include "kernels/body.cuh"
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/small/small_relay_copies.cuh"
#include "kernels/small/small_relay_sums.cuh"

template <tg_type Type> struct tgi_relay_lines : tgi_relay_copies<uint16_t> {
    typedef tgi_short_terms<uint32_t> terms;
    typedef tgi_relay_copies<uint16_t>::line line;
    static constexpr int rows = 16, cols = 8; /* a tile of D that an instruction forms */
    static constexpr int unit = 16;           /* bytes */
    static constexpr int stage = 64;          /* values of k that are multiplied at once */

    /* Lines of an operand of which the block has some values of k. */
    struct lines {
        const char *from; /* its value of k of 0 */
        int64_t apart;    /* bytes from a line in memory to the next */
        int count;
        int has_units; /* 1: they are whole units of 16 bytes along k */
        int to;        /* the first line's place in the memory */
    };

    int row, col;            /* the tile's first ones */
    int first_split, splits; /* the splits that a block forms */
    lines a, b;
    char *memory; /* the block's, and its address */
    uint32_t shared;

    __device__ __forceinline__ lines describe(int bits, int left, const uint16_t *data,
                                              int64_t line_stride, int64_t k_stride, int to) const
    {
        lines own;
        own.from = reinterpret_cast<const char *>(data);
        own.apart = line_stride * 2;
        own.count = depth > 0 ? min(left, 1 << bits) : 0;
        const uintptr_t places =
            reinterpret_cast<uintptr_t>(data) | static_cast<uintptr_t>(left > 1 ? own.apart : 0);
        own.has_units = k_stride == 1 && places % unit == 0;
        own.to = to;
        return own;
    }

    __device__ __forceinline__ void setup(const tgi_relay_args &args, char *all, int used)
    {
        const tgi_sums_args &p = args.sums;
        const int block_elems = args.block_splits * args.split_elems;
        memory = all;
        shared = tgi_shared_address(all);
        row = blockIdx.y << args.relay_bits;
        col = blockIdx.x >> args.cluster_bits << args.col_bits;
        first_split = tgi_relay_find_rank(args) * args.block_splits;
        splits = min(args.block_splits, args.split_count - first_split);
        first_k = first_split * args.split_elems;
        depth = max(0, min(block_elems, p.k - first_k));
        padded = (depth + stage - 1) & -stage;
        pitch = TGI_SMALL_RELAY_PITCH(block_elems, 2) / 2;
        a = describe(args.relay_bits, p.m - row,
                     static_cast<const uint16_t *>(p.a) + blockIdx.z * p.a_batch + row * p.a_row,
                     p.a_row, p.a_k, used);
        b = describe(args.col_bits, p.n - col,
                     static_cast<const uint16_t *>(p.b) + blockIdx.z * p.b_batch + col * p.b_col,
                     p.b_col, p.b_k, used + (pitch * 2 << args.relay_bits));
    }

    /* Copies lines by units. What follows the last value of k are zeros. */
    __device__ __forceinline__ void copy_units(const lines &own) const
    {
        if (!own.has_units)
            return;
#pragma unroll 1
        for (int i = threadIdx.x / 32; i < own.count; i += blockDim.x / 32) {
            const char *const from = own.from + i * own.apart + first_k * 2;
            const uint32_t to = shared + own.to + i * pitch * 2;
#pragma unroll 1
            for (int at = threadIdx.x % 32 * unit; at < padded * 2; at += 32 * unit)
                tgi_copy_async<16>(to + at, from + at, max(0, min(unit, depth * 2 - at)));
        }
    }

    /* Finds what the thread copies of an operand by elements. */
    __device__ __forceinline__ line find_elements(const tgi_relay_args &args, const lines &own,
                                                  int bits, int64_t k_stride) const
    {
        line found = find_line(args, bits, 0, own.count - 1, own.from, own.apart / 2, k_stride,
                               reinterpret_cast<uint16_t *>(memory + own.to));
        if (own.has_units)
            found.rounds = 0;
        return found;
    }

    /* Adds the products of `count` values of k from the block's value `from` on. Lines that the
     * block lacks stand for others, whose sums nobody takes. */
    __device__ __forceinline__ void multiply(int from, int count, float (&sum)[4]) const
    {
        const int lane = threadIdx.x % 32, steps = (count + stage - 1) / stage;
        const int low = lane & 7, high = lane >> 4, middle = lane >> 3 & 1;
        uint32_t a_at =
            shared + a.to + min(low + middle * 8, a.count - 1) * pitch * 2 + from * 2 + high * unit;
        uint32_t b_at =
            shared + b.to + min(low, b.count - 1) * pitch * 2 + from * 2 + lane / 8 * unit;
#pragma unroll 1
        for (int i = 0; i < steps; i++, a_at += stage * 2, b_at += stage * 2) {
            uint32_t own_a[4][4], own_b[2][4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                tgi_read_matrices(own_a[j], a_at + j * 32);
                if (j % 2 == 0)
                    tgi_read_matrices(own_b[j / 2], b_at + j * 32);
            }
#pragma unroll
            for (int j = 0; j < 4; j++)
                tgi_multiply_16x8x16<Type>(sum, own_a[j], own_b[j / 2][j % 2 * 2],
                                           own_b[j / 2][j % 2 * 2 + 1]);
        }
    }

    /* Waits until all blocks of the cluster have begun. They then send their sums to the first,
     * where the barrier `met` counts the bytes: writes before a barrier of the cluster would wait
     * for all that a thread has written. */
    static __device__ __forceinline__ void meet(uint32_t met, int sum_bytes)
    {
        if (threadIdx.x == 0) {
            tgi_barrier_init(met, 1);
            tgi_fence_barrier_init();
            tgi_barrier_expect(met, sum_bytes);
        }
        tgi_cluster_barrier();
    }

    /* Forms the warp's splits, and keeps their sums in the first block: those of a lane are
     * neighbours. */
    __device__ __forceinline__ void form_splits(const tgi_relay_args &args, float *kept,
                                                uint32_t met) const
    {
#pragma unroll 1
        for (int i = threadIdx.x / 32; i < splits; i += blockDim.x / 32) {
            const int from = i * args.split_elems;
            float sum[4] = {};
            multiply(from, min(args.split_elems, depth - from), sum);
            float *const to = kept + (first_split + i) * rows * cols + threadIdx.x % 32 * 4;
            if (args.cluster_bits > 0)
                tgi_send_16(tgi_find_remote(tgi_shared_address(to), 0), sum,
                            tgi_find_remote(met, 0));
            else
                *reinterpret_cast<float4 *>(to) = make_float4(sum[0], sum[1], sum[2], sum[3]);
        }
    }

    /* Adds the splits of the thread's element of the tile, and stores it. */
    static __device__ __forceinline__ void finish(const tgi_relay_short_args &all, int row, int col,
                                                  const terms &own, const float *kept)
    {
        const tgi_relay_args &args = all.relay;
        float sum = kept[0];
        if (args.split_count > 1)
            sum = tgi_relay_add_splits<1>(args, kept, rows * cols);
        if (tgi_has_short_terms(args.sums))
            sum = tgi_apply_terms(all, tgi_find_short_d_type(args.sums), own, sum);
        tgi_relay_store<Type>(args, row, col, sum);
    }

    static __device__ __forceinline__ void form(const tgi_relay_short_args &all)
    {
        const tgi_relay_args &args = all.relay;
        const tgi_sums_args &p = args.sums;
        extern __shared__ __align__(16) char memory[];
        float *const kept = reinterpret_cast<float *>(memory + unit);
        const uint32_t met = tgi_shared_address(memory);
        const int thread = threadIdx.x, sum_bytes = args.split_count * rows * cols * 4;
        tgi_check_body<tgi_relay_lines>();
        tgi_check_sum<tgi_relay_lines>();
        tgi_relay_lines body;
        body.setup(args, memory, unit + sum_bytes);
        /* The thread's element is one of those that lane `thread` / 4 has of the sums. */
        const int own_row = thread / 16 + thread / 2 % 2 * 8, row = body.row + own_row;
        const int own_col = thread / 4 % 4 * 2 + thread % 2, col = body.col + own_col;
        const int is_mine = tgi_relay_find_rank(args) == 0 && thread < rows * cols &&
                            own_row < 1 << args.relay_bits && own_col < 1 << args.col_bits &&
                            row < p.m && col < p.n;
        terms own = {};
        const line own_a = body.find_elements(args, body.a, args.relay_bits, p.a_k);
        const line own_b = body.find_elements(args, body.b, args.col_bits, p.b_k);
        tgi_wait_for_stream();
        body.copy_units(body.a);
        body.copy_units(body.b);
        tgi_copy_async_commit();
        if (is_mine && tgi_has_short_terms(p))
            own = tgi_request_terms<uint32_t>(all, tgi_find_short_d_type(p), row, col);
        body.load(own_a, own_b);
        if (args.cluster_bits > 0)
            meet(met, sum_bytes);
        tgi_copy_async_wait<0>();
        /* Without this barrier a warp would multiply what others have yet to copy. */
        __syncthreads();
        body.form_splits(args, kept, met);
        if (args.cluster_bits == 0)
            __syncthreads();
        if (!is_mine)
            return;
        if (args.cluster_bits > 0)
            tgi_barrier_wait(met, 0);
        finish(all, row, col, own, kept + thread);
    }
};

#define TGI_SMALL_RELAY_LINES(name, type)                                                          \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_RELAY_THREADS)                          \
        name(const __grid_constant__ tgi_relay_short_args args)                                    \
    {                                                                                              \
        tgi_relay_lines<TGI_TYPE_OF(type)>::form(args);                                            \
    }

#endif
