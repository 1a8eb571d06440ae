/*
 * Forms products of family small that are batch invariant and have few elements of D, as sums
 * alone, by matrix instructions of 16-bit types in steps of 16 of k. A block forms 16 x 8 of D. A
 * warp loads its elements of 64 of k at once, straight to registers. The sums then go from warp to
 * warp, and each adds its steps, so that all are added in order of k. The code is kept small
 * (small_short.cuh).
 *
 *     setup()      finds the lane's rows and column, and the warp's first k
 *     load()       loads the lane's words of 64 of k
 *     multiply()   adds their products to the sums
 *     finish()     stores the sums
 */
#ifndef TGI_SMALL_RELAY_MMA_CUH
#define TGI_SMALL_RELAY_MMA_CUH

#include "kernels/body.cuh"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/small/small_shape.h"

template <tg_type Type> struct tgi_relay_mma {
    static constexpr int steps = TGI_SMALL_RELAY_DEPTH / 16;

    /* Holds the words of a lane: those of rows g and g + 8 and of column g, two in each step. */
    struct step {
        uint32_t word[3][2 * steps];
    };

    int row, col; /* the lane's first row, and its column */
    int warp, quad;
    const uint16_t *line[3];
    int has_line[3];

    __device__ __forceinline__ void setup(const tgi_relay_args &args)
    {
        const tgi_sums_args &p = args.sums;
        const int lane = threadIdx.x % 32;
        warp = threadIdx.x / 32;
        quad = lane % 4 * 2;
        row = blockIdx.y * 16 + lane / 4;
        col = blockIdx.x * 8 + lane / 4;
        has_line[0] = row < p.m;
        has_line[1] = row + 8 < p.m;
        has_line[2] = col < p.n;
        line[0] = static_cast<const uint16_t *>(p.a) + blockIdx.z * p.a_batch + row * p.a_row;
        line[1] = line[0] + 8 * p.a_row;
        line[2] = static_cast<const uint16_t *>(p.b) + blockIdx.z * p.b_batch + col * p.b_col;
    }

    /* Loads the words from k on, of which `left` elements exist. */
    __device__ __forceinline__ void load(const tgi_relay_args &args, int k, int left,
                                         step &next) const
    {
#pragma unroll
        for (int i = 0; i < 3; i++) {
            const int64_t stride = i < 2 ? args.sums.a_k : args.sums.b_k;
            const uint16_t *const from = line[i] + k * stride;
            const int count = has_line[i] ? left : 0;
            if (i < 2 ? args.has_a_pairs : args.has_b_pairs) {
#pragma unroll
                for (int j = 0; j < 2 * steps; j++)
                    next.word[i][j] =
                        8 * j < count ? *reinterpret_cast<const uint32_t *>(from + 8 * j) : 0;
                continue;
            }
#pragma unroll
            for (int j = 0; j < 2 * steps; j++) {
                const uint32_t low = 8 * j < count ? from[8 * j * stride] : 0;
                const uint32_t high = 8 * j + 1 < count ? from[(8 * j + 1) * stride] : 0;
                next.word[i][j] = low | high << 16;
            }
        }
    }

    /* Adds the products of the steps that begin before the end. */
    static __device__ __forceinline__ void multiply(const step &one, int left, float (&sum)[4])
    {
#pragma unroll
        for (int i = 0; i < steps; i++) {
            const uint32_t a[4] = {one.word[0][2 * i], one.word[1][2 * i], one.word[0][2 * i + 1],
                                   one.word[1][2 * i + 1]};
            if (16 * i < left)
                tgi_multiply_16x8x16<Type>(sum, a, one.word[2][2 * i], one.word[2][2 * i + 1]);
        }
    }

    __device__ __forceinline__ void finish(const tgi_relay_args &args, const float (&sum)[4]) const
    {
        const tgi_sums_args &p = args.sums;
        const int first = blockIdx.x * 8 + quad;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (row + i / 2 * 8 < p.m && first + i % 2 < p.n)
                tgi_write_element(p.d,
                                  blockIdx.z * p.d_batch + (row + i / 2 * 8) * p.d_row +
                                      (first + i % 2) * p.d_col,
                                  static_cast<tg_type>(p.d_type), sum[i]);
    }

    /* Passes the sums of a round of k from warp to warp, of which `left` values exist. */
    __device__ __forceinline__ void pass(const step &one, int left, float4 *shared,
                                         float (&sum)[4]) const
    {
        const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
        for (int i = 0; i < warps && left > 0; i++, left -= TGI_SMALL_RELAY_DEPTH) {
            if (i == warp) {
                multiply(one, left, sum);
                shared[lane] = make_float4(sum[0], sum[1], sum[2], sum[3]);
            }
            if (warps == 1)
                return;
            /* Without this barrier the next warp would read sums that are not put yet. */
            __syncthreads();
            const float4 all = shared[lane];
            sum[0] = all.x;
            sum[1] = all.y;
            sum[2] = all.z;
            sum[3] = all.w;
            /* Without this barrier the next warp would overwrite sums that others still read. */
            __syncthreads();
        }
    }

    static __device__ __forceinline__ void form(const tgi_relay_args &args)
    {
        __shared__ float4 shared[32];
        tgi_check_body<tgi_relay_mma>();
        tgi_check_sum<tgi_relay_mma>();
        tgi_relay_mma body;
        body.setup(args);
        const int k = args.sums.k, first = body.warp * TGI_SMALL_RELAY_DEPTH;
        const int round = blockDim.x / 32 * TGI_SMALL_RELAY_DEPTH;
        const float zero = args.split_elems >= k ? -0.0f : 0.0f;
        float total[4] = {zero, zero, zero, zero};
        tgi_wait_for_stream();
#pragma unroll 1
        for (int begin = 0; begin < k; begin += args.split_elems) {
            const int end = min(begin + args.split_elems, k);
            float sum[4] = {};
#pragma unroll 1
            for (int at = begin; at < end; at += round) {
                step one;
                const int own = at + first + body.quad;
                body.load(args, own, end - own, one);
                body.pass(one, end - at, shared, sum);
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
                total[i] += sum[i];
        }
        if (body.warp == 0)
            body.finish(args, total);
    }
};

#define TGI_SMALL_RELAY_MMA(type)                                                                  \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_RELAY_WARPS * 32)                       \
        tgi_relay_##type(const __grid_constant__ tgi_relay_args args)                              \
    {                                                                                              \
        tgi_relay_mma<TGI_TYPE_OF(type)>::form(args);                                              \
    }

#endif
