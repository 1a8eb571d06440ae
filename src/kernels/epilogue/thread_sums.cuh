/* Declares sums in the workspace in the order in which four warps hold them: 16 bytes of each
 * thread side by side. */
#ifndef TGI_THREAD_SUMS_CUH
#define TGI_THREAD_SUMS_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* Returns the address of this thread's sums at place `index`, if a thread has `Sums` sums. */
template <int Sums>
static __device__ __forceinline__ float4 *tgi_find_sums(void *memory, int64_t index)
{
    return static_cast<float4 *>(memory) + index * (Sums / 4 * 128) + threadIdx.x % 128;
}

template <int Count>
static __device__ __forceinline__ void tgi_write_sums(float4 *target, const float (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i += 4)
        target[i * 32] = make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
}

template <int Count>
static __device__ __forceinline__ void tgi_add_sums(const float4 *source, float (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
        const float4 value = source[i * 32];
        sum[i] += value.x;
        sum[i + 1] += value.y;
        sum[i + 2] += value.z;
        sum[i + 3] += value.w;
    }
}

#endif
