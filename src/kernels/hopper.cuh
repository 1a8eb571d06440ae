/*
 * PTX wrappers for what capability 9.0 brought: barriers that count bytes, bulk tensor copies; what
 * sm_90a alone has is in wgmma/instruction.cuh. "PTX" is the PTX ISA manual; the section names are
 * its own. Shared memory is named by tgi_shared_address.
 */
#ifndef TGI_HOPPER_CUH
#define TGI_HOPPER_CUH

#include "kernels/ptx.cuh"
#include "kernels/tensor_map.h"

/* PTX mbarrier.init: a phase ends after `count` arrivals and all bytes that were expected. */
static __device__ __forceinline__ void tgi_barrier_init(uint32_t barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* PTX fence.mbarrier_init: barriers are there for the copy engine and for the cluster after the
 * next barrier of the cluster. */
static __device__ __forceinline__ void tgi_fence_barrier_init(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* PTX mbarrier.arrive.expect_tx: arrives and adds bytes that the phase waits for. */
static __device__ __forceinline__ void tgi_barrier_expect(uint32_t barrier, int byte_count)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(byte_count)
                 : "memory");
}

/* PTX mbarrier.arrive. */
static __device__ __forceinline__ void tgi_barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* The same at the barrier of this name in block `rank` of the cluster. Without a scope: one that
 * names the cluster waits for all that the thread has written, which nobody asks for here. */
static __device__ __forceinline__ void tgi_barrier_arrive_at(uint32_t barrier, int rank)
{
    asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* PTX mbarrier.try_wait: waits for the end of the phase of this parity (0, 1, 0, ...). */
static __device__ __forceinline__ void tgi_barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{ .reg .pred done;"
                 "again: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;"
                 "@done bra.uni end; bra.uni again; end: }" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* PTX barrier.cluster: all threads of the cluster that have not ended. Relaxed: what they wrote
 * before it they do not wait for, which would take a microsecond. */
static __device__ __forceinline__ void tgi_cluster_barrier(void)
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* The first lane's value, of a warp whose lanes agree: so the compiler knows that they do, and
 * keeps what follows from it in registers of the warp, from which matrix instructions take the
 * places of their operands. */
static __device__ __forceinline__ int tgi_make_uniform(int value)
{
    return __shfl_sync(~0u, value, 0);
}

/* PTX elect.sync: 1 in one lane of a warp all of which are here. The compiler knows that it is one,
 * and takes what the copy engine needs from its registers without asking lane after lane. */
static __device__ __forceinline__ int tgi_elect(void)
{
    int is_elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }"
                 : "=r"(is_elected));
    return is_elected;
}

static __device__ __forceinline__ int tgi_cluster_rank(void)
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}

/* Number of this cluster, and of clusters, along the grid's first dimension. */
static __device__ __forceinline__ int tgi_cluster_index(void)
{
    uint32_t index;
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(index));
    return static_cast<int>(index);
}

static __device__ __forceinline__ int tgi_cluster_count(void)
{
    uint32_t count;
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
    return static_cast<int>(count);
}

/* Address of the same place in block `rank` of the cluster. */
static __device__ __forceinline__ uint32_t tgi_find_remote(uint32_t shared, int rank)
{
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared), "r"(rank));
    return remote;
}

/* PTX st.async: writes 16 bytes there, which are counted at the barrier, one of that block's. */
static __device__ __forceinline__ void tgi_send_16(uint32_t remote, const float *value,
                                                   uint32_t remote_barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"
                 " [%0], {%1, %2, %3, %4}, [%5];" ::"r"(remote),
                 "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(remote_barrier)
                 : "memory");
}

/* PTX bar.sync: `thread_count` threads, a multiple of 32, meet at barrier 1..15. */
static __device__ __forceinline__ void tgi_meet(int barrier, int thread_count)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(thread_count) : "memory");
}

/* PTX prefetch.tensormap. */
static __device__ __forceinline__ void tgi_prefetch_map(const tgi_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* PTX cp.async.bulk.tensor: copies the box at (x, y, z) to shared memory, zero outside the tensor,
 * and counts its bytes at the barrier. */
static __device__ __forceinline__ void tgi_load_box(uint32_t shared, const tgi_tensor_map *map,
                                                    uint32_t barrier, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* The same to this address in every block of the cluster whose bit is set, each at its barrier. */
static __device__ __forceinline__ void tgi_load_box_to(uint16_t ranks, uint32_t shared,
                                                       const tgi_tensor_map *map, uint32_t barrier,
                                                       int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(ranks)
                 : "memory");
}

/* PTX cp.async.bulk.tensor: copies a box from shared memory; what lies outside the tensor is left
 * out. */
static __device__ __forceinline__ void tgi_store_box(const tgi_tensor_map *map, uint32_t shared,
                                                     int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(shared), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

/* PTX cp.async.bulk.wait_group.read: waits until at most `Pending` of this thread's stores still
 * read shared memory. */
template <int Pending> static __device__ __forceinline__ void tgi_store_box_wait(void)
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

/* PTX setmaxnreg: registers of each thread of this warpgroup from here on, a multiple of 8. */
template <int Count> static __device__ __forceinline__ void tgi_raise_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

template <int Count> static __device__ __forceinline__ void tgi_lower_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

/* PTX stmatrix: each eight lanes give the addresses of the 16-byte rows of one 8 x 8 matrix of 16
 * bits; lane 4 r + c holds elements (r, 2 c) and (r, 2 c + 1) of all four. */
static __device__ __forceinline__ void tgi_store_matrices(uint32_t shared,
                                                          const uint32_t (&pair)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
                 "r"(pair[0]), "r"(pair[1]), "r"(pair[2]), "r"(pair[3])
                 : "memory");
}

/* The same with .trans: the matrices' columns are written as rows. */
static __device__ __forceinline__ void tgi_store_turned_matrices(uint32_t shared,
                                                                 const uint32_t (&pair)[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
        "r"(pair[0]), "r"(pair[1]), "r"(pair[2]), "r"(pair[3])
        : "memory");
}

#endif
