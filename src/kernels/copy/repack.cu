/*
 * Repacks operands of 1, 2 and 4 bytes an element. The copy has lines that begin at multiples of 16
 * bytes, as TMA and vector copies need them. Lines of contiguous elements are read in words,
 * shifted if they begin between two words, and written in units of 16 bytes. Other lines, and lines
 * that overlap, are read side by side and transposed in shared memory. The last unit of a line has
 * zeros behind the line's end.
 */
#include "kernels/ptx/launch.cuh"
#include "kernels/copy/repack_args.h"
#include "kernels/instances.cuh"

#define TGI_WARPS (TGI_REPACK_THREADS / 32)

/* Divides counts. Few counts need 64 bits, whose division is slow. */
static __device__ __forceinline__ int64_t divide(int64_t count, int64_t by)
{
    return (count | by) >> 32 ? count / by
                              : static_cast<uint32_t>(count) / static_cast<uint32_t>(by);
}

/* The aligned words that hold 16 bytes at any address: five if the bytes begin between two
 * words. */
struct words {
    uint32_t word[5];

    __device__ __forceinline__ void read(const char *from)
    {
        const int shift = static_cast<int>(reinterpret_cast<uintptr_t>(from)) & 3;
        const uint32_t *source = reinterpret_cast<const uint32_t *>(from - shift);
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[i] = source[i];
        word[4] = shift ? source[4] : 0;
    }

    __device__ __forceinline__ uint4 read_shifted(const char *from) const
    {
        const int bits = (static_cast<int>(reinterpret_cast<uintptr_t>(from)) & 3) * 8;
        return make_uint4(
            __funnelshift_r(word[0], word[1], bits), __funnelshift_r(word[1], word[2], bits),
            __funnelshift_r(word[2], word[3], bits), __funnelshift_r(word[3], word[4], bits));
    }
};

/* The place of a task: the first byte of its first line, the bytes from line to line, the number of
 * lines, and the bytes of a line from there on, at most a word more than the task copies. */
struct task_place {
    const char *source;
    char *target;
    int64_t stride, pitch;
    int line_count, byte_count;
    int is_lowest; /* 1: nothing before the first byte may be read */
};

/* Copies bytes first .. end - 1 of each line by elements, with zeros behind them to the end of the
 * last unit, a lane for each line. Words there would reach past the line, or before the source. */
template <typename T>
static __device__ __forceinline__ void move_ends(const task_place &place, int first, int end)
{
    constexpr int most = 32 / sizeof(T);
    const int line = threadIdx.x % 32;
    const T *from = reinterpret_cast<const T *>(place.source + line * place.stride + first);
    T *to = reinterpret_cast<T *>(place.target + line * place.pitch + first);
    constexpr int elem_bytes = sizeof(T);
    const int count = line < place.line_count ? (end - first) / elem_bytes : 0;
    const int padded = line < place.line_count ? ((end + 15) / 16 * 16 - first) / elem_bytes : 0;
    T value[most];
#pragma unroll
    for (int i = 0; i < most; i++)
        value[i] = i < count ? from[i] : 0;
#pragma unroll
    for (int i = 0; i < most; i++)
        if (i < padded)
            to[i] = value[i];
}

template <typename T> static __device__ __forceinline__ void move_task(const task_place &place)
{
    constexpr int needed = 16 + 4 - sizeof(T); /* bytes that a read of words touches */
    const int offset = threadIdx.x % 32 * 16;
    const int has_words = offset + needed <= place.byte_count && (offset > 0 || !place.is_lowest);
    const char *from = place.source + offset;
    char *to = place.target + offset;
    words own[TGI_REPACK_TASK_LINES];
#pragma unroll
    for (int i = 0; i < TGI_REPACK_TASK_LINES; i++)
        if (has_words && i < place.line_count)
            own[i].read(from + i * place.stride);
#pragma unroll
    for (int i = 0; i < TGI_REPACK_TASK_LINES; i++)
        if (has_words && i < place.line_count)
            *reinterpret_cast<uint4 *>(to + i * place.pitch) =
                own[i].read_shifted(from + i * place.stride);
    const int end = min(place.byte_count, TGI_REPACK_TASK_BYTES);
    const int first = (place.byte_count - needed + 16) / 16 * 16;
    if (first < end)
        move_ends<T>(place, first, end);
    if (place.is_lowest && first > 0)
        move_ends<T>(place, 0, 16);
}

/* Copies task number `task` of lines of contiguous elements by a warp. */
template <typename T>
static __device__ __forceinline__ void copy_task(const tgi_repack_job &job, int64_t task)
{
    constexpr int elem_bytes = sizeof(T);
    const int64_t byte_count = job.elem_count * elem_bytes;
    const int64_t across = divide(byte_count + TGI_REPACK_TASK_BYTES - 1, TGI_REPACK_TASK_BYTES);
    const int64_t down = divide(job.line_count + TGI_REPACK_TASK_LINES - 1, TGI_REPACK_TASK_LINES);
    const int64_t row = divide(task, across);
    const int64_t batch = job.batch_count > 1 ? divide(row, down) : 0;
    const int64_t line = (row - batch * down) * TGI_REPACK_TASK_LINES;
    const int64_t byte = (task - row * across) * TGI_REPACK_TASK_BYTES;
    task_place place;
    place.source = static_cast<const char *>(job.source) + byte +
                   (batch * job.batch_stride + line * job.line_stride) * elem_bytes;
    place.target =
        static_cast<char *>(job.target) + (batch * job.line_count + line) * job.pitch_bytes + byte;
    place.stride = job.line_stride * elem_bytes;
    place.pitch = job.pitch_bytes;
    place.line_count =
        static_cast<int>(min(job.line_count - line, static_cast<int64_t>(TGI_REPACK_TASK_LINES)));
    place.byte_count =
        static_cast<int>(min(byte_count - byte, static_cast<int64_t>(TGI_REPACK_TASK_BYTES + 4)));
    place.is_lowest =
        byte == 0 && (job.line_stride < 0 ? line + place.line_count == job.line_count : line == 0);
    move_task<T>(place);
}

/* Transposes a tile of lines whose elements are not contiguous by a block. */
template <typename T>
static __device__ __forceinline__ void
transpose_tile(const tgi_repack_job &job, int64_t task,
               T (&tile)[TGI_REPACK_TILE][TGI_REPACK_TILE + 4 / sizeof(T)])
{
    const int64_t across = (job.elem_count + TGI_REPACK_TILE - 1) / TGI_REPACK_TILE;
    const int64_t down = (job.line_count + TGI_REPACK_TILE - 1) / TGI_REPACK_TILE;
    const int64_t batch = task / (across * down), in_batch = task % (across * down);
    const int64_t first_line = in_batch / across * TGI_REPACK_TILE;
    const int64_t first_elem = in_batch % across * TGI_REPACK_TILE;
    const T *source = static_cast<const T *>(job.source) + batch * job.batch_stride;
    const int along = threadIdx.x % TGI_REPACK_TILE, slow = threadIdx.x / TGI_REPACK_TILE;
    constexpr int step = TGI_REPACK_THREADS / TGI_REPACK_TILE, unit = 16 / sizeof(T);
    const int64_t padded = (job.elem_count + unit - 1) / unit * unit;
#pragma unroll 8
    for (int i = slow; i < TGI_REPACK_TILE; i += step) {
        const int64_t line = first_line + along, elem = first_elem + i;
        if (line < job.line_count && elem < job.elem_count)
            tile[along][i] = source[line * job.line_stride + elem * job.elem_stride];
    }
    __syncthreads(); /* a thread must not read elements that others have yet to write */
#pragma unroll 8
    for (int i = slow; i < TGI_REPACK_TILE; i += step) {
        const int64_t line = first_line + i, elem = first_elem + along;
        if (line < job.line_count && elem < padded)
            reinterpret_cast<T *>(static_cast<char *>(job.target) +
                                  (batch * job.line_count + line) * job.pitch_bytes)[elem] =
                elem < job.elem_count ? tile[i][along] : 0;
    }
    __syncthreads(); /* the next tile must not overwrite elements that are still read */
}

static __device__ __forceinline__ int64_t count_tasks(const tgi_repack_job &job, int in_lines)
{
    return job.is_in_lines == in_lines ? job.task_count : 0;
}

/* Repacks both operands at once, so that the tasks of both are spread evenly over the warps. */
template <typename T> static __device__ __forceinline__ void repack(const tgi_repack_args &args)
{
    __shared__ T tile[TGI_REPACK_TILE][TGI_REPACK_TILE + 4 / sizeof(T)];
    const int64_t first = count_tasks(args.job[0], 1);
    const int64_t both = first + count_tasks(args.job[1], 1);
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * TGI_WARPS + threadIdx.x / 32; i < both;
         i += static_cast<int64_t>(gridDim.x) * TGI_WARPS)
        copy_task<T>(args.job[i >= first], i >= first ? i - first : i);
#pragma unroll
    for (int j = 0; j < 2; j++)
        for (int64_t i = blockIdx.x; i < count_tasks(args.job[j], 0); i += gridDim.x)
            transpose_tile<T>(args.job[j], i, tile);
}

#define TGI_REPACK(name, type)                                                                     \
    extern "C" __global__ void __launch_bounds__(TGI_REPACK_THREADS)                               \
        name(const __grid_constant__ tgi_repack_args args)                                         \
    {                                                                                              \
        tgi_start_next();                                                                          \
        tgi_wait_for_stream();                                                                     \
        repack<type>(args);                                                                        \
    }

#if defined(TGI_HAS_sm75)
TGI_REPACK(tgi_repack_1, uint8_t)
TGI_REPACK(tgi_repack_2, uint16_t)
TGI_REPACK(tgi_repack_4, uint32_t)
#endif
