/* Tensor maps tell TMA where its boxes lie in global memory. */
#ifndef TGI_CUDA_TENSOR_MAP_H
#define TGI_CUDA_TENSOR_MAP_H

#include <stdatomic.h>

#include "cuda/runtime/launch.h"
#include "cuda/tensor.h"

/* A tensor slot describes a tensor map among the arguments of a kernel. */
typedef struct tgi_tensor_slot {
    tgi_tensor tensor;
    int operand;            /* index of the base address that the launch passes */
    int64_t operand_offset; /* bytes from the base address to the tensor */
    /* 1: the tensor may begin between units of 16 bytes. The map then begins at the unit, and its
     * runs are longer by the elements in front. */
    int is_shifted;
    int64_t argument_offset;   /* bytes from the start of the argument to the map */
    uintptr_t encoded_address; /* address in the plan's map; 0: the map is not encoded */
} tgi_tensor_slot;

/* Tensor slots are the tensor maps of a kernel's argument. The plan keeps an argument with the
 * members that all calls have in common. */
typedef struct tgi_tensor_slots {
    tgi_tensor_slot *slot;
    int count;
    atomic_int is_encoded; /* 1: the plan's maps are encoded, and do not change any more */
} tgi_tensor_slots;

/* Returns the bytes from the last multiple of 16 bytes to `address`. */
static inline unsigned tgi_tensor_shift(const void *address)
{
    return (unsigned)((uintptr_t)address % TGI_TENSOR_UNIT_BYTES);
}

/* Copies the plan's `argument` to `target`, with maps of the operands at base[0..]. A map whose
 * base is NULL is left out. The first call encodes the plan's maps. Later calls replace addresses
 * that differ. They encode a map again only if its shift differs or the first call left it out.
 * Errors: DEVICE_FAILURE. */
tg_status tgi_tensor_fill(tgi_cuda_device *device, tgi_tensor_slots *slots,
                          const void *const base[], void *argument, void *target,
                          size_t argument_bytes);

#endif
