/*
 * Wraps the PTX instructions for clusters of blocks (sm_90): PTX ISA, "Parallel Synchronization and
 * Communication Instructions: barrier.cluster", "Data Movement and Conversion Instructions: mapa,
 * st.async" and "Special Registers".
 */
#ifndef TGI_PTX_CLUSTER_CUH
#define TGI_PTX_CLUSTER_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* barrier.cluster: waits for all threads of the cluster that have not ended. The arrival is
 * relaxed: it does not wait for earlier writes of the thread, which would take a microsecond. */
static __device__ __forceinline__ void tgi_cluster_barrier(void)
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* Returns the number of this block in its cluster. */
static __device__ __forceinline__ int tgi_cluster_rank(void)
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}

/* Returns the number of this cluster along the grid's first dimension. */
static __device__ __forceinline__ int tgi_cluster_index(void)
{
    uint32_t index;
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(index));
    return static_cast<int>(index);
}

/* Returns how many clusters the grid's first dimension has. */
static __device__ __forceinline__ int tgi_cluster_count(void)
{
    uint32_t count;
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
    return static_cast<int>(count);
}

/* mapa: returns the address of the same place in block `rank` of the cluster. */
static __device__ __forceinline__ uint32_t tgi_find_remote(uint32_t shared, int rank)
{
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(rank));
    return remote;
}

/* st.async: writes 16 bytes to a remote address and counts them at a barrier of the same block. */
static __device__ __forceinline__ void tgi_send_16(uint32_t remote, const float *value,
                                                   uint32_t remote_barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"
                 " [%0], {%1, %2, %3, %4}, [%5];" ::"r"(remote),
                 "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(remote_barrier)
                 : "memory");
}

#endif
