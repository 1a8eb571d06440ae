/*
 * Wraps the PTX instructions for TMA, the copies that an engine of the chip makes by itself
 * (sm_90): PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk,
 * cp.async.bulk.tensor, prefetch.tensormap" and "Parallel Synchronization and Communication
 * Instructions: fence.proxy.async". A TMA box is the part of a tensor that one instruction copies;
 * (x, y, z) is its first element.
 */
#ifndef TGI_PTX_TMA_CUH
#define TGI_PTX_TMA_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/tma_map.h"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define TGI_HAS_TMA 1
#else
#define TGI_HAS_TMA 0
#endif

/* prefetch.tensormap: prefetches a tensor map before its first use. */
static __device__ __forceinline__ void tgi_prefetch_map(const tgi_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* cp.async.bulk.tensor: copies a TMA box to shared memory, zeros outside the tensor, and counts its
 * bytes at the barrier. */
static __device__ __forceinline__ void tgi_tma_load(uint32_t shared, const tgi_tensor_map *map,
                                                    uint32_t barrier, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* cp.async.bulk.tensor.multicast: copies a TMA box to this address in every block of the cluster
 * whose bit of `ranks` is set, and counts its bytes at each block's barrier. */
static __device__ __forceinline__ void tgi_tma_load_multicast(uint16_t ranks, uint32_t shared,
                                                              const tgi_tensor_map *map,
                                                              uint32_t barrier, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(ranks)
                 : "memory");
}

/* cp.async.bulk.tensor: copies a TMA box from shared memory, as a group of its own. Units of 16
 * bytes outside the tensor are not stored; one that the tensor ends in is written whole. */
static __device__ __forceinline__ void tgi_tma_store(const tgi_tensor_map *map, uint32_t shared,
                                                     int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(shared), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* cp.async.bulk.wait_group.read: waits until at most Pending of this thread's tgi_tma_store still
 * read shared memory. */
template <int Pending> static __device__ __forceinline__ void tgi_tma_store_wait(void)
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

/* cp.async.bulk: copies bytes from shared to global memory; both addresses and byte_count are
 * multiples of 16. */
static __device__ __forceinline__ void tgi_copy_bulk(void *global, uint32_t shared, int byte_count)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
                 "r"(shared), "r"(byte_count)
                 : "memory");
}

/* cp.async.bulk.commit_group, wait_group: waits until this thread's tgi_copy_bulk have read their
 * shared memory. */
static __device__ __forceinline__ void tgi_copy_bulk_wait(void)
{
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* fence.proxy.async: makes what this thread has written to shared memory visible to TMA and to
 * warpgroup matrix instructions that start after the next barrier. */
static __device__ __forceinline__ void tgi_fence_async_proxy(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
