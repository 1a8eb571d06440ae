/*
 * Wraps the TMA instructions for tensors of four dimensions: PTX ISA, "Data Movement and Conversion
 * Instructions: cp.async.bulk.tensor". tma.cuh has those of three dimensions.
 */
#ifndef TGI_PTX_TMA_HEADS_CUH
#define TGI_PTX_TMA_HEADS_CUH

#include "kernels/ptx/tma.cuh"

/* cp.async.bulk.tensor: copies the TMA box at element x of row y of head z of entry w to shared
 * memory, zeros outside the tensor, and counts its bytes at the barrier. */
static __device__ __forceinline__ void tgi_tma_load_head(uint32_t shared, const tgi_tensor_map *map,
                                                         uint32_t barrier, int x, int y, int z,
                                                         int w)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

/* cp.async.bulk.tensor: copies the TMA box from shared memory. Units of 16 bytes outside the tensor
 * are not stored; one that the tensor ends in is written whole. */
static __device__ __forceinline__ void
tgi_tma_store_head(const tgi_tensor_map *map, uint32_t shared, int x, int y, int z, int w)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}],"
                 " [%1];" ::"l"(map),
                 "r"(shared), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

/* cp.async.bulk.commit_group: closes the group of this thread's tgi_tma_store_head, for which
 * tgi_tma_store_wait waits. */
static __device__ __forceinline__ void tgi_tma_store_commit(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* cp.async.bulk.wait_group: waits until this thread's tgi_tma_store_head have written. */
static __device__ __forceinline__ void tgi_tma_store_finish(void)
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#endif
