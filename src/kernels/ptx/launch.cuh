/*
 * Wraps the PTX instructions for a kernel's place in its stream, its registers and its threads: PTX
 * ISA, "Parallel Synchronization and Communication Instructions: griddepcontrol, elect.sync",
 * "Miscellaneous Instructions: setmaxnreg" and "Special Registers".
 */
#ifndef TGI_PTX_LAUNCH_CUH
#define TGI_PTX_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* griddepcontrol.wait: waits until the kernel before this one in the stream has ended and all that
 * it wrote is visible. Every thread of a kernel that is launched early (tgi_cuda_kernel) calls it
 * before it accesses global memory, so that the next kernel can rely on all kernels before. */
static __device__ __forceinline__ void tgi_wait_for_stream(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* griddepcontrol.launch_dependents: lets the next kernel of the stream start where there is room,
 * once every block has called this or ended. It suits kernels with one block for each
 * multiprocessor, or with little work. In other kernels, blocks of the next kernel would take the
 * places of blocks that have yet to start. A kernel without the call lets the next one start when
 * all its blocks have ended. */
static __device__ __forceinline__ void tgi_start_next(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* setmaxnreg.inc (sm_90a): raises the registers of each thread of this warpgroup to Count, a
 * multiple of 8, and waits until the others have given them back. */
template <int Count> static __device__ __forceinline__ void tgi_raise_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

/* setmaxnreg.dec (sm_90a): gives registers back, down to Count a thread. */
template <int Count> static __device__ __forceinline__ void tgi_lower_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

/* Returns threadIdx.x as int, because the compiler keeps more values in registers for unsigned
 * indices. */
static __device__ __forceinline__ int tgi_thread(void)
{
    return static_cast<int>(threadIdx.x);
}

/* Reads threadIdx.x at the place of this call. Values that are derived from it take no registers in
 * loops before the call. */
static __device__ __forceinline__ int tgi_reread_thread(void)
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/* elect.sync (sm_90): returns 1 in one lane of a converged warp. The compiler knows that it is a
 * single lane, and passes arguments of TMA in uniform registers without a loop over lanes. */
static __device__ __forceinline__ int tgi_elect(void)
{
    int is_elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }"
                 : "=r"(is_elected));
    return is_elected;
}

/* Returns the first lane's value, for a warp whose lanes agree. The compiler then knows that they
 * agree, and keeps derived values in uniform registers, from which matrix instructions and TMA read
 * them. */
static __device__ __forceinline__ int tgi_make_uniform(int value)
{
    return __shfl_sync(~0u, value, 0);
}

#endif
