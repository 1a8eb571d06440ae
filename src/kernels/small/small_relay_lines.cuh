/*
 * Forms products of family small that are batch invariant, have few elements of D and a long k, by
 * matrix instructions of 16-bit types, in the order of the rows that form large ones. A block forms
 * 16 x 8 of D. Its threads copy the lines of A and B to shared memory, all at once, by the units of
 * 16 bytes in which they lie, and move those that begin between units. A warp then forms a split of
 * k, one instruction after another, and the sums of splits are added in order at the end
 * (small_relay_sums.cuh). The code is kept small (small_short.cuh).
 *
 *     setup()      finds the lines of the block, and where they go
 *     load()       copies the units of an operand's lines
 *     move()       moves lines that begin between units
 *     multiply()   adds the products of a split
 */
#ifndef TGI_SMALL_RELAY_LINES_CUH
#define TGI_SMALL_RELAY_LINES_CUH

#include "kernels/body.cuh"
#include "kernels/copy/shifted_unit.cuh"
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/small/small_relay_sums.cuh"

template <tg_type Type> struct tgi_relay_lines {
    typedef typename tgi_element_of<Type>::type elem;
    typedef tgi_short_terms<uint32_t> terms;
    static constexpr int rows = 16, cols = 8; /* a tile of D */
    static constexpr int unit = 16;           /* bytes */
    static constexpr int stage = 64;          /* values of k that are multiplied at once */

    /* Lines of an operand run along k, or across it: then each value of k has one. Those behind
     * `real` are zeros, as is what follows `bytes` of a line. */
    struct lines {
        const char *from;
        int64_t apart; /* bytes from a line in memory to the next */
        int count, real, bytes;
        int units, lane_bits; /* units of a line that are multiplied; lanes that share them out */
        int pitch;            /* bytes from a line to the next */
        int is_moved;         /* 1: lines begin between units */
        int to;               /* the first line's place in the memory */
    };

    int row, col;            /* the tile's first ones */
    int first_split, splits; /* the splits that a block forms */
    int depth;               /* values of k that they have */
    lines a, b;
    char *memory; /* the block's, and its address */
    uint32_t shared;

    /* Describes an operand whose lines that the tile takes are `most`, of which `left` exist. */
    __device__ __forceinline__ lines describe(int most, int left, int is_across, const elem *data,
                                              int64_t line_stride, int64_t k_stride,
                                              int block_elems, int to) const
    {
        lines own;
        const int here = depth > 0 ? min(left, most) : 0;
        const int padded = (depth + stage - 1) / stage * stage;
        own.from = reinterpret_cast<const char *>(data);
        own.apart = (is_across ? k_stride : line_stride) * 2;
        own.count = is_across ? padded : here;
        own.real = is_across ? depth : here;
        own.bytes = (is_across ? here : depth) * 2;
        own.units = (is_across ? most : padded) * 2 / unit;
        own.pitch = is_across ? TGI_SMALL_RELAY_PITCH_ACROSS : TGI_SMALL_RELAY_PITCH(block_elems);
        own.is_moved = ((reinterpret_cast<uintptr_t>(own.from) | own.apart) & (unit - 1)) != 0;
        own.lane_bits = is_across ? 32 - __clz(own.units + own.is_moved - 1) : 5;
        own.to = to;
        return own;
    }

    __device__ __forceinline__ void setup(const tgi_relay_args &args, char *all, int used)
    {
        const tgi_sums_args &p = args.sums;
        const int block_elems = args.block_splits * args.split_elems;
        memory = all;
        shared = tgi_shared_address(all);
        row = blockIdx.y * rows;
        col = (blockIdx.x >> args.cluster_bits) * cols;
        first_split = tgi_relay_find_rank(args) * args.block_splits;
        splits = min(args.block_splits, args.split_count - first_split);
        const int begin = first_split * args.split_elems;
        depth = max(0, min(block_elems, p.k - begin));
        a = describe(rows, p.m - row, args.is_a_across,
                     static_cast<const elem *>(p.a) + blockIdx.z * p.a_batch + row * p.a_row +
                         begin * p.a_k,
                     p.a_row, p.a_k, block_elems, used);
        b = describe(cols, p.n - col, args.is_b_across,
                     static_cast<const elem *>(p.b) + blockIdx.z * p.b_batch + col * p.b_col +
                         begin * p.b_k,
                     p.b_col, p.b_k, block_elems,
                     used + TGI_SMALL_RELAY_LINE_BYTES(rows, block_elems, args.is_a_across));
    }

    /* Returns A's lines or B's. The code that follows stands once for both. */
    __device__ __forceinline__ lines pick(int is_b) const
    {
        return {is_b ? b.from : a.from,           is_b ? b.apart : a.apart,
                is_b ? b.count : a.count,         is_b ? b.real : a.real,
                is_b ? b.bytes : a.bytes,         is_b ? b.units : a.units,
                is_b ? b.lane_bits : a.lane_bits, is_b ? b.pitch : a.pitch,
                is_b ? b.is_moved : a.is_moved,   is_b ? b.to : a.to};
    }

    /* Copies the units that hold the lines. */
    __device__ __forceinline__ void load(const lines &own) const
    {
        const int lane = threadIdx.x & ((1 << own.lane_bits) - 1);
        const int units = own.units + own.is_moved, step = unit << own.lane_bits;
#pragma unroll 1
        for (int line = threadIdx.x >> own.lane_bits; line < own.count;
             line += blockDim.x >> own.lane_bits) {
            const char *from = own.from + line * own.apart;
            const int shift = static_cast<int>(reinterpret_cast<uintptr_t>(from) & (unit - 1));
            int left = (line < own.real ? shift + own.bytes : 0) - lane * unit;
            uint32_t to = shared + own.to + line * own.pitch + lane * unit;
            from += lane * unit - shift;
#pragma unroll 1
            for (int i = lane; i < units; i += 1 << own.lane_bits) {
                tgi_copy_async<16>(to, from, max(0, min(unit, left)));
                from += step;
                to += step;
                left -= step;
            }
        }
    }

    /* Moves the lines that begin between units to their places. */
    __device__ __forceinline__ void move(const lines &own) const
    {
        const int lane = threadIdx.x & ((1 << own.lane_bits) - 1);
        if (!own.is_moved)
            return;
#pragma unroll 1
        for (int first = (threadIdx.x & ~31) >> own.lane_bits; first < own.count;
             first += blockDim.x >> own.lane_bits) {
            const int line = first + (threadIdx.x % 32 >> own.lane_bits);
            const int shift = static_cast<int>(
                reinterpret_cast<uintptr_t>(own.from + line * own.apart) & (unit - 1));
            uint4 *const to = reinterpret_cast<uint4 *>(memory + own.to + line * own.pitch);
#pragma unroll 1
            for (int at = lane; at - lane < own.units; at += 1 << own.lane_bits) {
                const int has = at < own.units && line < own.count;
                uint4 some = {};
                if (has)
                    some = tgi_cut_unit(to[at], to[at + 1], shift);
                /* Without this barrier a unit would be overwritten that another lane has yet to
                 * read. */
                __syncwarp();
                if (has)
                    to[at] = some;
                __syncwarp();
            }
        }
    }

    /* Adds the products of `steps` times four instructions, whose units are at a_at and b_at. */
    template <int A_across, int B_across>
    static __device__ __forceinline__ void add(uint32_t a_at, int a_step, uint32_t b_at, int b_step,
                                               int steps, float (&sum)[4])
    {
#pragma unroll 1
        for (int i = 0; i < steps; i++) {
            uint32_t own_a[4][4], own_b[2][4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (A_across)
                    tgi_read_matrices_transposed(own_a[j], a_at + j * a_step);
                else
                    tgi_read_matrices(own_a[j], a_at + j * a_step);
                if (j % 2)
                    continue;
                if (B_across)
                    tgi_read_matrices_transposed(own_b[j / 2], b_at + j * b_step);
                else
                    tgi_read_matrices(own_b[j / 2], b_at + j * b_step);
            }
            a_at += a_step * 4;
            b_at += b_step * 4;
#pragma unroll
            for (int j = 0; j < 4; j++)
                tgi_multiply_16x8x16<Type>(sum, own_a[j], own_b[j / 2][j % 2 * 2],
                                           own_b[j / 2][j % 2 * 2 + 1]);
        }
    }

    /* Adds the products of `count` values of k from the block's value `from` on. */
    __device__ __forceinline__ void multiply(const tgi_relay_args &args, int from, int count,
                                             float (&sum)[4]) const
    {
        const int lane = threadIdx.x % 32, steps = (count + stage - 1) / stage;
        const int a_step = args.is_a_across ? 16 * a.pitch : 32;
        const int b_step = args.is_b_across ? 16 * b.pitch : 32;
        const int low = lane & 7, high = lane >> 4, middle = lane >> 3 & 1;
        const uint32_t a_at = shared + a.to + from / 16 * a_step +
                              (args.is_a_across ? (low + high * 8) * a.pitch + middle * unit
                                                : (low + middle * 8) * a.pitch + high * unit);
        const uint32_t b_at = shared + b.to + from / 16 * b_step +
                              (args.is_b_across ? lane * b.pitch : low * b.pitch + lane / 8 * unit);
        if (!args.is_a_across && !args.is_b_across)
            add<0, 0>(a_at, a_step, b_at, b_step, steps, sum);
        else if (!args.is_a_across)
            add<0, 1>(a_at, a_step, b_at, b_step, steps, sum);
        else if (!args.is_b_across)
            add<1, 0>(a_at, a_step, b_at, b_step, steps, sum);
        else
            add<1, 1>(a_at, a_step, b_at, b_step, steps, sum);
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
            multiply(args, from, min(args.split_elems, depth - from), sum);
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
            sum = tgi_relay_add_splits(args, kept, rows * cols);
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
        const int row = body.row + thread / 16 + thread / 2 % 2 * 8;
        const int col = body.col + thread / 4 % 4 * 2 + thread % 2;
        const int is_mine =
            tgi_relay_find_rank(args) == 0 && thread < rows * cols && row < p.m && col < p.n;
        terms own = {};
        tgi_wait_for_stream();
#pragma unroll 1
        for (int i = 0; i < 2; i++)
            body.load(body.pick(i));
        tgi_copy_async_commit();
        if (is_mine && tgi_has_short_terms(p))
            own = tgi_request_terms<uint32_t>(all, tgi_find_short_d_type(p), row, col);
        if (args.cluster_bits > 0)
            meet(met, sum_bytes);
        tgi_copy_async_wait<0>();
        /* Without this barrier a lane would move units that others have yet to receive. */
        __syncwarp();
#pragma unroll 1
        for (int i = 0; i < 2; i++)
            body.move(body.pick(i));
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
