/*
 * Copies operands to lines that begin at multiples of 16 bytes, for elements of 1, 2 and 4 bytes:
 * as the copy engine reads them, and kernels in vectors. Lines whose elements are contiguous are
 * moved in units of 16 bytes, shifted where they start between two; others are read along their
 * shorter stride and transposed in shared memory.
 */
#include "kernels/ptx.cuh"
#include "kernels/repack/args.h"
#include "kernels/rows.cuh"
#include "kernels/units.cuh"

#define TGI_WARPS (TGI_REPACK_THREADS / 32)

/* The unit of the source at this multiple of 16, in which a line has bytes: of the others, which
 * nobody needs, those between the source's first and last are read too. */
static __device__ __forceinline__ uint4 read_unit(const tgi_repack_job &job, const char *unit)
{
    if (unit >= job.begin && unit + 16 <= job.end)
        return *reinterpret_cast<const uint4 *>(unit);
    uint32_t word[4] = {};
    for (int i = 0; i < 16; i++)
        if (unit + i >= job.begin && unit + i < job.end)
            word[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(unit[i])) << i % 4 * 8;
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* A quotient of counts, which seldom need the 64 bits that the chip has no quick division for. */
static __device__ __forceinline__ int64_t divide(int64_t count, int64_t by)
{
    return (count | by) >> 32 ? count / by
                              : static_cast<uint32_t>(count) / static_cast<uint32_t>(by);
}

/* A span of a line with contiguous elements, by a warp. */
template <int ElemBytes>
static __device__ __forceinline__ void copy_span(const tgi_repack_job &job, int64_t piece)
{
    const int64_t byte_count = job.elem_count * ElemBytes;
    const int64_t spans = (byte_count + TGI_REPACK_SPAN_BYTES - 1) / TGI_REPACK_SPAN_BYTES;
    const int64_t line = divide(piece, spans);
    const int64_t first = (piece - line * spans) * TGI_REPACK_SPAN_BYTES;
    const int64_t batch = job.batch_count > 1 ? divide(line, job.line_count) : 0;
    const char *source =
        static_cast<const char *>(job.source) +
        (batch * job.batch_stride + (line - batch * job.line_count) * job.line_stride) * ElemBytes;
    char *target = static_cast<char *>(job.target) + line * job.pitch_bytes;
    const int shift = static_cast<int>(reinterpret_cast<uintptr_t>(source) & 15);
    source -= shift;
    constexpr int count = TGI_REPACK_SPAN_BYTES / 512;
    const int64_t own = first + threadIdx.x % 32 * 16;
    uint4 unit[count], next[count];
#pragma unroll
    for (int i = 0; i < count; i++)
        if (own + i * 512 < byte_count) {
            unit[i] = read_unit(job, source + own + i * 512);
            /* Where the line ends before it, it may not be there. */
            next[i] = shift && own + i * 512 + 16 - shift < byte_count
                          ? read_unit(job, source + own + i * 512 + 16)
                          : unit[i];
        }
#pragma unroll
    for (int i = 0; i < count; i++)
        if (own + i * 512 < byte_count)
            *reinterpret_cast<uint4 *>(target + own + i * 512) =
                tgi_cut_unit(unit[i], next[i], shift);
}

/* A tile of lines whose elements are not contiguous, by a block. */
template <typename T>
static __device__ __forceinline__ void
transpose_tile(const tgi_repack_job &job, int64_t piece,
               T (&tile)[TGI_REPACK_TILE][TGI_REPACK_TILE + 4 / sizeof(T)])
{
    const int64_t across = (job.elem_count + TGI_REPACK_TILE - 1) / TGI_REPACK_TILE;
    const int64_t down = (job.line_count + TGI_REPACK_TILE - 1) / TGI_REPACK_TILE;
    const int64_t batch = piece / (across * down), in_batch = piece % (across * down);
    const int64_t first_line = in_batch / across * TGI_REPACK_TILE;
    const int64_t first_elem = in_batch % across * TGI_REPACK_TILE;
    const T *source = static_cast<const T *>(job.source) + batch * job.batch_stride;
    const int along = threadIdx.x % TGI_REPACK_TILE, slow = threadIdx.x / TGI_REPACK_TILE;
    constexpr int step = TGI_REPACK_THREADS / TGI_REPACK_TILE;
#pragma unroll 8
    for (int i = slow; i < TGI_REPACK_TILE; i += step) {
        const int64_t line = first_line + along, elem = first_elem + i;
        if (line < job.line_count && elem < job.elem_count)
            tile[along][i] = source[line * job.line_stride + elem * job.elem_stride];
    }
    __syncthreads(); /* the tile is full */
#pragma unroll 8
    for (int i = slow; i < TGI_REPACK_TILE; i += step) {
        const int64_t line = first_line + i, elem = first_elem + along;
        if (line < job.line_count && elem < job.elem_count)
            reinterpret_cast<T *>(static_cast<char *>(job.target) +
                                  (batch * job.line_count + line) * job.pitch_bytes)[elem] =
                tile[i][along];
    }
    __syncthreads(); /* the tile may be filled again */
}

template <typename T> static __device__ __forceinline__ void repack(const tgi_repack_args &args)
{
    __shared__ T tile[TGI_REPACK_TILE][TGI_REPACK_TILE + 4 / sizeof(T)];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const tgi_repack_job &job = args.job[j];
        if (job.elem_stride == 1) {
            const int64_t warp = static_cast<int64_t>(blockIdx.x) * TGI_WARPS + threadIdx.x / 32;
            for (int64_t i = warp; i < job.piece_count;
                 i += static_cast<int64_t>(gridDim.x) * TGI_WARPS)
                copy_span<sizeof(T)>(job, i);
        } else {
            for (int64_t i = blockIdx.x; i < job.piece_count; i += gridDim.x)
                transpose_tile<T>(job, i, tile);
        }
    }
}

#define TGI_REPACK(name, type)                                                                     \
    extern "C" __global__ void __launch_bounds__(TGI_REPACK_THREADS)                               \
        name(const __grid_constant__ tgi_repack_args args)                                         \
    {                                                                                              \
        tgi_start_next();                                                                          \
        tgi_wait_for_stream();                                                                     \
        repack<type>(args);                                                                        \
    }

#if defined(TGI_HAS_sm80)
TGI_REPACK(tgi_repack_1, uint8_t)
TGI_REPACK(tgi_repack_2, uint16_t)
TGI_REPACK(tgi_repack_4, uint32_t)
#endif
