/*
 * Wraps the PTX instruction for a bulk copy to shared memory (sm_90): PTX ISA, "Data Movement and
 * Conversion Instructions: cp.async.bulk". tma.cuh has the copy from shared memory.
 */
#ifndef TGI_PTX_BULK_LOAD_CUH
#define TGI_PTX_BULK_LOAD_CUH

#include <stdint.h>

/* cp.async.bulk: copies bytes to shared memory, and counts them at the barrier; both addresses and
 * byte_count are multiples of 16. */
static __device__ __forceinline__ void tgi_load_bulk(uint32_t shared, const void *global,
                                                     int byte_count, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(shared),
                 "l"(global), "r"(byte_count), "r"(barrier)
                 : "memory");
}

#endif
