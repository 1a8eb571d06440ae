/*
 * Repacks operands of 1, 2 and 4 bytes an element. The copy has lines that begin at multiples of 16
 * bytes, as TMA and vector copies need them. FP32 may be rounded to TF32 on the way. Lines of
 * contiguous elements are read in aligned units of 16 bytes, which are shifted if lines begin
 * between them. Other lines are read side by side and transposed in shared memory. Zeros follow the
 * lines' ends and the last line.
 */
#include "kernels/ptx/launch.cuh"
#include "kernels/copy/divide_counts.cuh"
#include "kernels/copy/repack_args.h"
#include "kernels/copy/shifted_unit.cuh"
#include "kernels/instances.cuh"
#include "kernels/ptx/convert.cuh"

#define TGI_WARPS (TGI_REPACK_THREADS / 32)

/* Rounds a word to TF32 if it is a whole element, and elements are rounded. */
template <typename T>
static __device__ __forceinline__ uint32_t round_word(uint32_t word, int is_rounded)
{
    return sizeof(T) == 4 && is_rounded ? tgi_round_tf32(word) : word;
}

template <typename T>
static __device__ __forceinline__ uint4 round_unit(const uint4 &unit, int is_rounded)
{
    return make_uint4(round_word<T>(unit.x, is_rounded), round_word<T>(unit.y, is_rounded),
                      round_word<T>(unit.z, is_rounded), round_word<T>(unit.w, is_rounded));
}

/* A place is the part of the lines that a warp copies at once. Bytes count from the task's first
 * one. */
struct task_place {
    const char *source; /* the task's first byte of its first line */
    char *target;
    int64_t stride, pitch;           /* bytes from line to line */
    int line_count, copy_line_count; /* lines that are read and that are written */
    int begin, end;                  /* where the lines begin, 0 or less, and end */
    int copy_bytes;                  /* bytes of each line that are written */
    int is_rounded;                  /* 1: FP32 is rounded to TF32 */
};

/* Returns 1 if the aligned units of memory that hold the unit at `offset` of a line lie inside the
 * line. The unit begins in_unit bytes after the start of the first of them. */
static __device__ __forceinline__ int is_whole(const task_place &place, int offset, int in_unit)
{
    return offset - in_unit >= place.begin && offset + (in_unit ? 32 - in_unit : 16) <= place.end;
}

static __device__ __forceinline__ int find_in_unit(const char *address)
{
    return static_cast<int>(reinterpret_cast<uintptr_t>(address)) & 15;
}

/* Copies the units at the ends of the lines that are not whole, by elements, a unit a lane: the
 * first one of a line, and the last two. All loads of a lane are under way at once. */
template <typename T> static __device__ __forceinline__ void move_ends(const task_place &place)
{
    constexpr int elem_bytes = sizeof(T), per_word = 4 / elem_bytes;
    const int line = threadIdx.x % TGI_REPACK_TASK_LINES;
    const int end = threadIdx.x % 32 / TGI_REPACK_TASK_LINES;
    const int last = (min(place.end, TGI_REPACK_TASK_BYTES) - 1) / TGI_REPACK_UNIT_BYTES;
    const int unit = end < 2 ? last - end : 0, offset = unit * TGI_REPACK_UNIT_BYTES;
    const char *from = place.source + line * place.stride + offset;
    if (end > 2 || (end == 2 && last < 2) || unit < 0 || line >= place.line_count ||
        is_whole(place, offset, find_in_unit(from)))
        return;
    uint32_t word[4] = {};
#pragma unroll
    for (int i = 0; i < 16 / elem_bytes; i++)
        if (offset + i * elem_bytes < place.end)
            word[i / per_word] |= static_cast<uint32_t>(reinterpret_cast<const T *>(from)[i])
                                  << i % per_word * 8 * elem_bytes;
    *reinterpret_cast<uint4 *>(place.target + line * place.pitch + offset) =
        round_unit<T>(make_uint4(word[0], word[1], word[2], word[3]), place.is_rounded);
}

/* Copies a unit of 16 bytes of each line by a lane, from the one or two aligned units of memory
 * that hold it, with zeros behind the lines' ends. No access reaches past a line. */
template <typename T> static __device__ __forceinline__ void move_task(const task_place &place)
{
    const int offset = threadIdx.x % 32 * TGI_REPACK_UNIT_BYTES;
    const char *from = place.source + offset;
    char *to = place.target + offset;
    uint4 first[TGI_REPACK_TASK_LINES] = {}, second[TGI_REPACK_TASK_LINES] = {};
#pragma unroll
    for (int i = 0; i < TGI_REPACK_TASK_LINES; i++) {
        const int in_unit = find_in_unit(from + i * place.stride);
        const uint4 *units = reinterpret_cast<const uint4 *>(from + i * place.stride - in_unit);
        if (i < place.line_count && is_whole(place, offset, in_unit)) {
            first[i] = units[0];
            if (in_unit)
                second[i] = units[1];
        }
    }
    if (place.begin == 0 || place.end < TGI_REPACK_TASK_BYTES + TGI_REPACK_UNIT_BYTES)
        move_ends<T>(place);
#pragma unroll
    for (int i = 0; i < TGI_REPACK_TASK_LINES; i++) {
        const int in_unit = find_in_unit(from + i * place.stride);
        const int is_behind = offset >= place.end || i >= place.line_count;
        if (i < place.copy_line_count && offset < place.copy_bytes &&
            (is_behind || is_whole(place, offset, in_unit)))
            *reinterpret_cast<uint4 *>(to + i * place.pitch) =
                round_unit<T>(tgi_cut_unit(first[i], second[i], in_unit), place.is_rounded);
    }
}

static __device__ __forceinline__ int clamp_count(int64_t count, int most)
{
    return static_cast<int>(min(count, static_cast<int64_t>(most)));
}

/* Copies task number `task` of lines of contiguous elements by a warp. */
template <typename T>
static __device__ __forceinline__ void copy_task(const tgi_repack_job &job, int is_rounded,
                                                 int64_t task)
{
    constexpr int elem_bytes = sizeof(T);
    const int64_t across =
        tgi_divide_counts(job.copy_bytes + TGI_REPACK_TASK_BYTES - 1, TGI_REPACK_TASK_BYTES);
    const int64_t down =
        tgi_divide_counts(job.copy_line_count + TGI_REPACK_TASK_LINES - 1, TGI_REPACK_TASK_LINES);
    const int64_t row = tgi_divide_counts(task, across);
    const int64_t batch = job.batch_count > 1 ? tgi_divide_counts(row, down) : 0;
    const int64_t line = (row - batch * down) * TGI_REPACK_TASK_LINES;
    const int64_t byte = (task - row * across) * TGI_REPACK_TASK_BYTES;
    task_place place;
    place.source = static_cast<const char *>(job.source) + byte +
                   (batch * job.batch_stride + line * job.line_stride) * elem_bytes;
    place.target = static_cast<char *>(job.target) +
                   (batch * job.copy_line_count + line) * job.pitch_bytes + byte;
    place.stride = job.line_stride * elem_bytes;
    place.pitch = job.pitch_bytes;
    place.line_count = clamp_count(job.line_count - line, TGI_REPACK_TASK_LINES);
    place.copy_line_count = clamp_count(job.copy_line_count - line, TGI_REPACK_TASK_LINES);
    place.begin = byte ? -TGI_REPACK_UNIT_BYTES : 0;
    place.end = clamp_count(job.elem_count * elem_bytes - byte,
                            TGI_REPACK_TASK_BYTES + TGI_REPACK_UNIT_BYTES);
    place.copy_bytes = clamp_count(job.copy_bytes - byte, TGI_REPACK_TASK_BYTES);
    place.is_rounded = is_rounded;
    /* The place of the first task is found while the kernel ahead still runs. */
    tgi_wait_for_stream();
    move_task<T>(place);
}

/* Transposes a tile of lines whose elements are not contiguous by a block. */
template <typename T>
static __device__ __forceinline__ void
transpose_tile(const tgi_repack_job &job, int is_rounded, int64_t task,
               T (&tile)[TGI_REPACK_TILE][TGI_REPACK_TILE + 4 / sizeof(T)])
{
    const int64_t padded = job.copy_bytes / static_cast<int>(sizeof(T));
    const int64_t across = (padded + TGI_REPACK_TILE - 1) / TGI_REPACK_TILE;
    const int64_t down = (job.copy_line_count + TGI_REPACK_TILE - 1) / TGI_REPACK_TILE;
    const int64_t row = tgi_divide_counts(task, across), batch = tgi_divide_counts(row, down);
    const int64_t first_line = (row - batch * down) * TGI_REPACK_TILE;
    const int64_t first_elem = (task - row * across) * TGI_REPACK_TILE;
    const T *source = static_cast<const T *>(job.source) + batch * job.batch_stride;
    tgi_wait_for_stream();
    const int along = threadIdx.x % TGI_REPACK_TILE, slow = threadIdx.x / TGI_REPACK_TILE;
    constexpr int stride = TGI_REPACK_THREADS / TGI_REPACK_TILE;
#pragma unroll 8
    for (int i = slow; i < TGI_REPACK_TILE; i += stride) {
        const int64_t line = first_line + along, elem = first_elem + i;
        const int is_inside = line < job.line_count && elem < job.elem_count;
        tile[along][i] =
            is_inside ? source[line * job.line_stride + elem * job.elem_stride] : static_cast<T>(0);
    }
    __syncthreads(); /* a thread must not read elements that others have yet to write */
#pragma unroll 8
    for (int i = slow; i < TGI_REPACK_TILE; i += stride) {
        const int64_t line = first_line + i, elem = first_elem + along;
        if (line < job.copy_line_count && elem < padded)
            reinterpret_cast<T *>(static_cast<char *>(job.target) +
                                  (batch * job.copy_line_count + line) * job.pitch_bytes)[elem] =
                static_cast<T>(round_word<T>(tile[i][along], is_rounded));
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
        copy_task<T>(args.job[i >= first], args.is_rounded, i >= first ? i - first : i);
#pragma unroll
    for (int j = 0; j < 2; j++)
        for (int64_t i = blockIdx.x; i < count_tasks(args.job[j], 0); i += gridDim.x)
            transpose_tile<T>(args.job[j], args.is_rounded, i, tile);
    tgi_wait_for_stream(); /* also in threads that have no task */
}

#define TGI_REPACK(name, type)                                                                     \
    extern "C" __global__ void __launch_bounds__(TGI_REPACK_THREADS, 3)                            \
        name(const __grid_constant__ tgi_repack_args args)                                         \
    {                                                                                              \
        tgi_start_next();                                                                          \
        repack<type>(args);                                                                        \
    }

#if defined(TGI_HAS_sm75)
TGI_REPACK(tgi_repack_1, uint8_t)
TGI_REPACK(tgi_repack_2, uint16_t)
TGI_REPACK(tgi_repack_4, uint32_t)
#endif
