/*
 * Slices FP32 operands (slice_args.h): a = a_0 + a_1 + a_2. Each slice is the remainder rounded to
 * 16 bits. A lane has a unit of a line, a warp has a group of lines, and a block has the groups of
 * a task. Lines may have any strides. Neighbouring lanes have neighbouring units of k and lines, so
 * that whole sectors of 32 bytes are used whichever of the two is contiguous.
 */
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/warp_reduce.cuh"
#include "kernels/instances.cuh"
#include "kernels/copy/divide_counts.cuh"
#include "kernels/copy/slice_args.h"

/* For FP16 slices a line's largest magnitude is scaled to 2^TOP .. 2^(TOP + 1). Lines with larger
 * or smaller exponents than the limit are not scaled further, and their sums are repaired. */
#define TGI_TOP_FP16 14
#define TGI_EXPONENT_LIMIT 60

/* A slice place is the place of a lane in the work. */
struct slice_place {
    int64_t batch, line, first_chunk, last_chunk;
    int segment, unit;
    int64_t entry; /* number of the range */
};

static __device__ __forceinline__ slice_place find_place(const tgi_slice_job &job, int64_t task)
{
    const int lane = threadIdx.x % 32;
    slice_place place;
    const int64_t row = tgi_divide_counts(task, job.block_count);
    const int64_t block = task - row * job.block_count;
    place.batch = tgi_divide_counts(row, job.segment_count);
    place.segment = static_cast<int>(row - place.batch * job.segment_count);
    place.line = block * TGI_RANGE_LINES + threadIdx.x / 32 * TGI_GROUP_LINES + lane / 4;
    place.unit = lane % 4;
    place.first_chunk = place.segment * job.chunks_per_segment;
    place.last_chunk = min(place.first_chunk + job.chunks_per_segment, job.chunk_count);
    place.entry = (place.batch * job.block_count + block) * job.segment_count + place.segment;
    /* The place of the first task is found while the kernel ahead still runs. */
    tgi_wait_for_stream();
    return place;
}

/* Reads the eight elements of the lane's unit. Elements outside the operand are 0. */
static __device__ __forceinline__ void read_unit(const tgi_slice_job &job, const slice_place &place,
                                                 int64_t chunk, float (&value)[8])
{
    const int64_t first = chunk * TGI_CHUNK_ELEMS + place.unit * 8;
    const float *source = job.source + place.batch * job.batch_stride +
                          place.line * job.line_stride + first * job.k_stride;
    const int is_line = place.line < job.line_count;
    if (is_line && job.has_vectors && first + 8 <= job.k) {
        const float4 low = *reinterpret_cast<const float4 *>(source);
        const float4 high = *reinterpret_cast<const float4 *>(source + 4);
        value[0] = low.x, value[1] = low.y, value[2] = low.z, value[3] = low.w;
        value[4] = high.x, value[5] = high.y, value[6] = high.z, value[7] = high.w;
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        value[i] = is_line && first + i < job.k ? source[i * job.k_stride] : 0.0f;
}

static __device__ __forceinline__ void widen(tgi_range &range, const float (&value)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint32_t bits = __float_as_uint(value[i]) & 0x7fffffffu;
        range.largest = max(range.largest, bits);
        range.least = min(range.least, bits - 1u); /* 0 becomes UINT32_MAX */
    }
}

/* Returns the next slice of two numbers and subtracts it from them. */
static __device__ __forceinline__ uint32_t take_bf16(float &low, float &high)
{
    const uint32_t pair = tgi_encode_pair(TG_TYPE_BF16, low, high);
    low -= __uint_as_float(pair << 16);
    high -= __uint_as_float(pair & 0xffff0000u);
    return pair;
}

static __device__ __forceinline__ uint32_t take_fp16(float &low, float &high)
{
    const uint32_t pair = tgi_encode_pair(TG_TYPE_FP16, low, high);
    low -= tgi_decode_fp16(static_cast<uint16_t>(pair));
    high -= tgi_decode_fp16(static_cast<uint16_t>(pair >> 16));
    return pair;
}

template <int IsFp16>
static __device__ __forceinline__ void write_unit(const tgi_slice_job &job,
                                                  const slice_place &place, int64_t chunk,
                                                  int slice_count, float (&value)[8])
{
    const int64_t groups = (job.line_count + TGI_GROUP_LINES - 1) / TGI_GROUP_LINES;
    const int64_t group = place.line / TGI_GROUP_LINES;
    const int row = static_cast<int>(place.line % TGI_GROUP_LINES);
    if (group >= groups)
        return;
    char *target =
        job.slices +
        ((place.batch * job.chunk_count + chunk) * slice_count * groups + group) * TGI_GROUP_BYTES +
        row * TGI_CHUNK_BYTES + ((place.unit ^ row / 2) << 4);
    for (int slice = 0; slice < slice_count; slice++, target += groups * TGI_GROUP_BYTES) {
        uint32_t pair[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            pair[i] = IsFp16 ? take_fp16(value[2 * i], value[2 * i + 1])
                             : take_bf16(value[2 * i], value[2 * i + 1]);
        *reinterpret_cast<uint4 *>(target) = {pair[0], pair[1], pair[2], pair[3]};
    }
}

/* Writes the range of the block from the ranges of its lanes, whose `least` is stored less one. */
static __device__ __forceinline__ void write_range(const tgi_slice_job &job,
                                                   const slice_place &place, tgi_range range)
{
    __shared__ tgi_range ranges[TGI_SLICE_THREADS / 32];
    range.largest = __reduce_max_sync(~0u, range.largest);
    range.least = __reduce_min_sync(~0u, range.least);
    if (threadIdx.x % 32 == 0)
        ranges[threadIdx.x / 32] = range;
    __syncthreads(); /* thread 0 must not read ranges that other warps have yet to write */
    if (threadIdx.x == 0) {
        for (int i = 1; i < TGI_SLICE_THREADS / 32; i++) {
            range.largest = max(range.largest, ranges[i].largest);
            range.least = min(range.least, ranges[i].least);
        }
        range.least += range.least != UINT32_MAX;
        job.ranges[place.entry] = range;
    }
    __syncthreads(); /* the next task must not overwrite ranges that are still read */
}

/* Returns the power of two that brings the line's largest magnitude to the top of FP16's range, and
 * the line's range. The line's sums are later multiplied by the inverse. */
static __device__ __forceinline__ float find_scale(const tgi_slice_job &job,
                                                   const slice_place &place, tgi_range &range)
{
    range = {0, UINT32_MAX};
    if (place.line >= job.line_count)
        return 1.0f;
    const int64_t line = place.batch * job.line_count + place.line;
    uint32_t largest = 0;
    for (int i = 0; i < job.segment_count; i++)
        largest = max(largest, job.line_largest[line * job.segment_count + i]);
    range.largest = largest;
    range.least = largest - 1u; /* less by one, as in widen */
    const int limit = TGI_EXPONENT_LIMIT;
    const int exponent =
        largest ? min(max(static_cast<int>(largest >> 23) - 127, -limit), limit) - TGI_TOP_FP16 : 0;
    if (place.segment == 0 && place.unit == 0)
        job.line_scale[line] = __uint_as_float(static_cast<uint32_t>(127 + exponent) << 23);
    return __uint_as_float(static_cast<uint32_t>(127 - exponent) << 23);
}

template <int IsFp16>
static __device__ __forceinline__ void slice_task(const tgi_slice_job &job, int64_t task,
                                                  int slice_count)
{
    const slice_place place = find_place(job, task);
    tgi_range range = {0, UINT32_MAX};
    const float scale = IsFp16 ? find_scale(job, place, range) : 1.0f;
#pragma unroll 2
    for (int64_t chunk = place.first_chunk; chunk < place.last_chunk; chunk++) {
        float value[8];
        read_unit(job, place, chunk, value);
        if (!IsFp16)
            widen(range, value);
#pragma unroll
        for (int i = 0; IsFp16 && i < 8; i++)
            value[i] *= scale;
        write_unit<IsFp16>(job, place, chunk, slice_count, value);
    }
    write_range(job, place, range);
}

/* Finds the largest magnitude of each line of a task. */
static __device__ __forceinline__ void find_line_largest(const tgi_slice_job &job, int64_t task)
{
    const slice_place place = find_place(job, task);
    tgi_range range = {0, UINT32_MAX};
#pragma unroll 2
    for (int64_t chunk = place.first_chunk; chunk < place.last_chunk; chunk++) {
        float value[8];
        read_unit(job, place, chunk, value);
        widen(range, value);
    }
    for (int lanes = 1; lanes < 4; lanes *= 2)
        range.largest = max(range.largest, __shfl_xor_sync(~0u, range.largest, lanes));
    if (place.line < job.line_count && place.unit == 0)
        job.line_largest[(place.batch * job.line_count + place.line) * job.segment_count +
                         place.segment] = range.largest;
}

static __device__ __forceinline__ int64_t count_tasks(const tgi_slice_job &job)
{
    return job.batch_count * job.block_count * job.segment_count;
}

#define TGI_SLICE_KERNEL(name, call)                                                               \
    extern "C" __global__ void __launch_bounds__(TGI_SLICE_THREADS)                                \
        name(const __grid_constant__ tgi_slice_args args)                                          \
    {                                                                                              \
        tgi_start_next();                                                                          \
        const int64_t of_a = count_tasks(args.job[0]), of_b = count_tasks(args.job[1]);            \
        for (int64_t i = blockIdx.x; i < of_a + of_b; i += gridDim.x) {                            \
            const tgi_slice_job &job = args.job[i >= of_a];                                        \
            const int64_t task = i < of_a ? i : i - of_a;                                          \
            call;                                                                                  \
        }                                                                                          \
    }

#if defined(TGI_HAS_sm80)
TGI_SLICE_KERNEL(tgi_slice_bf16, slice_task<0>(job, task, args.slice_count))
#endif
#if defined(TGI_HAS_sm75)
TGI_SLICE_KERNEL(tgi_slice_fp16, slice_task<1>(job, task, args.slice_count))
TGI_SLICE_KERNEL(tgi_find_line_largest, find_line_largest(job, task))
#endif
