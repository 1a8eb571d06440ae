/*
 * Wraps the PTX instructions for shared memory of other blocks of a cluster (sm_90): PTX ISA, "Data
 * Movement and Conversion Instructions: ld" and "Parallel Synchronization and Communication
 * Instructions: barrier.cluster". Addresses are those of tgi_find_remote.
 */
#ifndef TGI_PTX_CLUSTER_MEMORY_CUH
#define TGI_PTX_CLUSTER_MEMORY_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* barrier.cluster: waits for all threads of the cluster that have not ended, and for what they
 * wrote before. */
static __device__ __forceinline__ void tgi_cluster_meet(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* mapa: returns a pointer to the same place in the shared memory of block `rank` of the cluster. */
template <typename T> static __device__ __forceinline__ T *tgi_find_remote_pointer(T *own, int rank)
{
    T *remote;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(own), "r"(rank));
    return remote;
}

/* ld.shared::cluster: reads 8 aligned bytes. */
static __device__ __forceinline__ void tgi_read_remote_8(float (&value)[2], uint32_t remote)
{
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
                 : "=f"(value[0]), "=f"(value[1])
                 : "r"(remote)
                 : "memory");
}

/* ld.shared::cluster: reads 16 aligned bytes. */
static __device__ __forceinline__ void tgi_read_remote_16(float (&value)[4], uint32_t remote)
{
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value[0]), "=f"(value[1]), "=f"(value[2]), "=f"(value[3])
                 : "r"(remote)
                 : "memory");
}

#endif
