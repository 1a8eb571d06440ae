/*
 * Wraps the PTX instructions for copies from global to shared memory in the background: PTX ISA,
 * "Data Movement and Conversion Instructions: Non-bulk copy". A chip before sm_80 has no cp.async:
 * the same functions then load and store, and the data have arrived when they return.
 */
#ifndef TGI_PTX_ASYNC_COPY_CUH
#define TGI_PTX_ASYNC_COPY_CUH

#include "kernels/ptx/shared_memory.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* cp.async: copies the first byte_count (0..Bytes) of Bytes = 4, 8 or 16 bytes, and writes zeros
 * after them. Both addresses are multiples of Bytes. 16 bytes bypass L1. */
template <int Bytes>
static __device__ __forceinline__ void tgi_copy_async(uint32_t shared, const void *global,
                                                      int byte_count)
{
    if constexpr (Bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
                     "r"(byte_count)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(shared), "l"(global),
                     "r"(byte_count), "n"(Bytes)
                     : "memory");
}

/* cp.async under a predicate: copies Bytes = 4, 8 or 16 bytes if is_on, else does nothing. */
template <int Bytes>
static __device__ __forceinline__ void tgi_copy_async_if(uint32_t shared, const void *global,
                                                         int is_on)
{
    if constexpr (Bytes == 16)
        asm volatile("{ .reg .pred on; setp.ne.s32 on, %2, 0;"
                     "@on cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(shared),
                     "l"(global), "r"(is_on)
                     : "memory");
    else
        asm volatile("{ .reg .pred on; setp.ne.s32 on, %2, 0;"
                     "@on cp.async.ca.shared.global [%0], [%1], %3; }" ::"r"(shared),
                     "l"(global), "r"(is_on), "n"(Bytes)
                     : "memory");
}

/* cp.async.commit_group: closes the group of copies that this thread has issued. */
static __device__ __forceinline__ void tgi_copy_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* cp.async.wait_group: waits until at most Pending of this thread's groups are still copied. */
template <int Pending> static __device__ __forceinline__ void tgi_copy_async_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
#else
template <int Bytes>
static __device__ __forceinline__ void tgi_copy_async(uint32_t shared, const void *global,
                                                      int byte_count)
{
    uint32_t word[Bytes / 4] = {};
    if (byte_count == Bytes) {
        if constexpr (Bytes == 16)
            *reinterpret_cast<uint4 *>(word) = *static_cast<const uint4 *>(global);
        else if constexpr (Bytes == 8)
            *reinterpret_cast<uint2 *>(word) = *static_cast<const uint2 *>(global);
        else
            word[0] = *static_cast<const uint32_t *>(global);
    } else {
#pragma unroll
        for (int i = 0; i < Bytes; i++)
            if (i < byte_count)
                word[i / 4] |= static_cast<const uint8_t *>(global)[i] << i % 4 * 8;
    }
    void *target = __cvta_shared_to_generic(shared);
    if constexpr (Bytes == 16)
        *static_cast<uint4 *>(target) = {word[0], word[1], word[2], word[3]};
    else if constexpr (Bytes == 8)
        *static_cast<uint2 *>(target) = {word[0], word[1]};
    else
        *static_cast<uint32_t *>(target) = word[0];
}

template <int Bytes>
static __device__ __forceinline__ void tgi_copy_async_if(uint32_t shared, const void *global,
                                                         int is_on)
{
    if (is_on)
        tgi_copy_async<Bytes>(shared, global, Bytes);
}

static __device__ __forceinline__ void tgi_copy_async_commit(void)
{
}

template <int Pending> static __device__ __forceinline__ void tgi_copy_async_wait(void)
{
}
#endif

/* Copies 4 bytes, or writes zero if is_inside is 0. This function and the next serve the ladder,
 * whose listings have no templates. */
static __device__ __forceinline__ void tgi_copy_async_4(uint32_t shared, const void *global,
                                                        int is_inside)
{
    tgi_copy_async<4>(shared, global, is_inside ? 4 : 0);
}

/* Copies the first byte_count (0..16) of 16 bytes, and writes zeros after them. */
static __device__ __forceinline__ void tgi_copy_async_16(uint32_t shared, const void *global,
                                                         int byte_count)
{
    tgi_copy_async<16>(shared, global, byte_count);
}

#endif
