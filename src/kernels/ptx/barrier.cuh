/*
 * Wraps the PTX instructions for barriers of a block: PTX ISA, "Parallel Synchronization and
 * Communication Instructions: mbarrier, bar". An mbarrier is 8 bytes of shared memory; its phase
 * ends after a number of arrivals and after TMA has copied all bytes that were expected. All but
 * the named barrier need sm_90.
 */
#ifndef TGI_PTX_BARRIER_CUH
#define TGI_PTX_BARRIER_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* mbarrier.init: a phase ends after `count` arrivals and all bytes that were expected. */
static __device__ __forceinline__ void tgi_barrier_init(uint32_t barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* fence.mbarrier_init: makes initialized barriers visible to TMA and to the cluster after the next
 * barrier of the cluster. */
static __device__ __forceinline__ void tgi_fence_barrier_init(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* mbarrier.arrive.expect_tx: arrives, and adds bytes that the phase waits for. */
static __device__ __forceinline__ void tgi_barrier_expect(uint32_t barrier, int byte_count)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(byte_count)
                 : "memory");
}

/* mbarrier.arrive: arrives at a barrier of this block. */
static __device__ __forceinline__ void tgi_barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* mbarrier.arrive: arrives at the barrier of the same address in block `rank` of the cluster. The
 * instruction names no scope. With the cluster's scope it would wait for everything that the thread
 * has written, which no reader needs here. */
static __device__ __forceinline__ void tgi_barrier_arrive_remote(uint32_t barrier, int rank)
{
    asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* mbarrier.try_wait: waits for the end of the phase of this parity (0, 1, 0, ...). */
static __device__ __forceinline__ void tgi_barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{ .reg .pred done;"
                 "again: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;"
                 "@done bra.uni end; bra.uni again; end: }" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* bar.sync: waits at named barrier 1..15 for thread_count threads, a multiple of 32. */
static __device__ __forceinline__ void tgi_named_barrier_sync(int barrier, int thread_count)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(thread_count) : "memory");
}

/* bar.red.or: waits as bar.sync does, and returns 1 if any of the threads passes 1. */
static __device__ __forceinline__ int tgi_named_barrier_any(int barrier, int thread_count,
                                                            int is_set)
{
    int is_any;
    asm volatile("{ .reg .pred set, any; setp.ne.s32 set, %3, 0;"
                 "bar.red.or.pred any, %1, %2, set; selp.s32 %0, 1, 0, any; }"
                 : "=r"(is_any)
                 : "r"(barrier), "r"(thread_count), "r"(is_set)
                 : "memory");
    return is_any;
}

#endif
