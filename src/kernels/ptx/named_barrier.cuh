/*
 * Wraps the PTX instructions for named barriers that a warp reaches without waiting: PTX ISA,
 * "Parallel Synchronization and Communication Instructions: bar". tgi_named_barrier_sync of
 * barrier.cuh waits.
 */
#ifndef TGI_PTX_NAMED_BARRIER_CUH
#define TGI_PTX_NAMED_BARRIER_CUH

#include "kernels/ptx/barrier.cuh"

/* bar.arrive: arrives at named barrier 1..15 of thread_count threads, a multiple of 32, those that
 * wait included. */
static __device__ __forceinline__ void tgi_named_barrier_arrive(int barrier, int thread_count)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(thread_count) : "memory");
}

/* fence.acq_rel.cta: threads of the block that see what this one writes behind the fence see what
 * it wrote before, once they have passed a fence too. */
static __device__ __forceinline__ void tgi_fence_block(void)
{
    asm volatile("fence.acq_rel.cta;" ::: "memory");
}

#endif
