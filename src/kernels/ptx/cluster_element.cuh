/*
 * Wraps the PTX instruction that reads an element of another block's shared memory (sm_90): PTX
 * ISA, "Data Movement and Conversion Instructions: ld". Addresses are those of tgi_find_remote.
 */
#ifndef TGI_PTX_CLUSTER_ELEMENT_CUH
#define TGI_PTX_CLUSTER_ELEMENT_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* ld.shared::cluster: reads an element. */
static __device__ __forceinline__ void tgi_read_remote(float &value, uint32_t remote)
{
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(remote) : "memory");
}

static __device__ __forceinline__ void tgi_read_remote(double &value, uint32_t remote)
{
    asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(value) : "r"(remote) : "memory");
}

#endif
