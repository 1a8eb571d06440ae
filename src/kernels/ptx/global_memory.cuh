/* Wraps the PTX instructions for global memory with cache hints or of several elements: PTX ISA,
 * "Data Movement and Conversion Instructions". */
#ifndef TGI_PTX_GLOBAL_MEMORY_CUH
#define TGI_PTX_GLOBAL_MEMORY_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* prefetch: has L2 fetch the cache line that holds this byte. */
static __device__ __forceinline__ void tgi_prefetch(const void *global)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

/* ld.global.nc: reads 16 aligned bytes that nobody writes during the kernel, past L1, as they are
 * read once. */
static __device__ __forceinline__ uint4 tgi_read_once_16(const void *global)
{
    uint4 words;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(global));
    return words;
}

/* ld.global.nc: reads 16 aligned bytes that nobody writes during the kernel, through L1, where
 * other warps find them. */
static __device__ __forceinline__ uint4 tgi_read_cached_16(const void *global)
{
    uint4 words;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(global));
    return words;
}

/* st.global: write some elements to an address that is aligned to all of them. The compiler makes
 * single stores of a structure's elements if the store is conditional. */
static __device__ __forceinline__ void tgi_write_elements_at(float *global, const float (&value)[4])
{
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(global), "f"(value[0]),
                 "f"(value[1]), "f"(value[2]), "f"(value[3])
                 : "memory");
}

static __device__ __forceinline__ void tgi_write_elements_at(double *global,
                                                             const double (&value)[2])
{
    asm volatile("st.global.v2.f64 [%0], {%1, %2};" ::"l"(global), "d"(value[0]), "d"(value[1])
                 : "memory");
}

#endif
