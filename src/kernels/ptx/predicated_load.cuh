/* Declares loads under a predicate, which replace a branch around a load. Addresses are global. */
#ifndef TGI_PTX_PREDICATED_LOAD_CUH
#define TGI_PTX_PREDICATED_LOAD_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* Reads a word of 4 bytes if the condition holds, else returns 0. */
static __device__ __forceinline__ uint32_t tgi_load_4_if(const void *global, int condition)
{
    uint32_t word;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; mov.u32 %0, 0; @p ld.global.u32 %0, [%1]; }"
                 : "=r"(word)
                 : "l"(global), "r"(condition)
                 : "memory");
    return word;
}

/* Reads a word of 2 bytes if the condition holds, else returns 0. */
static __device__ __forceinline__ uint32_t tgi_load_2_if(const void *global, int condition)
{
    uint32_t word;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; mov.u32 %0, 0; @p ld.global.u16 %0, [%1]; }"
                 : "=r"(word)
                 : "l"(global), "r"(condition)
                 : "memory");
    return word;
}

#endif
