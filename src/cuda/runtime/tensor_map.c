#include "cuda/runtime/tensor_map.h"

#include <stdio.h>
#include <string.h>

#include "core/checked.h"
#include "core/status.h"

/* Encodes the map of a tensor at `address`. The map begins `shift` bytes before the tensor. */
static tg_status encode(const tgi_driver *driver, const tgi_tensor *tensor, uintptr_t address,
                        unsigned shift, void *map)
{
    const int64_t *count = tensor->count, *stride_bytes = tensor->stride_bytes;
    const int64_t elems = count[0] + tgi_divide_up(shift, tensor->elem_bytes);
    const uint64_t counts[4] = {(uint64_t)elems, (uint64_t)count[1], (uint64_t)count[2],
                                (uint64_t)count[3]};
    const uint64_t strides[3] = {(uint64_t)stride_bytes[0], (uint64_t)stride_bytes[1],
                                 (uint64_t)stride_bytes[2]};
    const uint32_t box[4] = {(uint32_t)tensor->tma_box_elems, (uint32_t)tensor->tma_box_runs, 1, 1};
    const uint32_t element_strides[4] = {1, 1, 1, 1};
    const int type = tensor->is_rounded        ? TGI_CUDA_TENSOR_TF32
                     : tensor->elem_bytes == 1 ? TGI_CUDA_TENSOR_UINT8
                     : tensor->elem_bytes == 2 ? TGI_CUDA_TENSOR_UINT16
                     : tensor->elem_bytes == 4 ? TGI_CUDA_TENSOR_UINT32
                                               : TGI_CUDA_TENSOR_UINT64;
    const int error = driver->encode_map(
        map, type, count[3] > 0 ? 4 : 3, (void *)(address - shift), counts, strides, box,
        element_strides, TGI_CUDA_TENSOR_NO_INTERLEAVE,
        tensor->is_swizzled ? TGI_CUDA_TENSOR_SWIZZLE_128 : TGI_CUDA_TENSOR_NO_SWIZZLE,
        TGI_CUDA_TENSOR_PROMOTE_128, TGI_CUDA_TENSOR_FILL_ZERO);
    if (!error)
        return TG_STATUS_OK;
    char what[200];
    snprintf(what, sizeof what,
             "cuTensorMapEncodeTiled of %lld x %lld x %lld elements, %lld bytes from run to run",
             (long long)count[2], (long long)count[1], (long long)elems,
             (long long)stride_bytes[0]);
    return tgi_driver_fail(driver, error, what);
}

static uintptr_t find_address(const tgi_tensor_slot *slot, const void *const base[])
{
    const uintptr_t address = (uintptr_t)base[slot->operand];
    return address ? address + (uintptr_t)slot->operand_offset : 0;
}

static unsigned find_shift(const tgi_tensor_slot *slot, uintptr_t address)
{
    return slot->is_shifted ? (unsigned)(address % TGI_TENSOR_UNIT_BYTES) : 0;
}

static void *find_map(const tgi_tensor_slot *slot, void *argument)
{
    return (char *)argument + slot->argument_offset;
}

/* Encodes the plan's maps unless another thread has done so. */
static tg_status encode_all(tgi_cuda_device *device, tgi_tensor_slots *slots,
                            const void *const base[], void *argument)
{
    tg_status status = TG_STATUS_OK;
    pthread_mutex_lock(&device->lock);
    const int is_encoded = atomic_load_explicit(&slots->is_encoded, memory_order_relaxed);
    for (int i = 0; i < slots->count && !is_encoded && !status; i++) {
        tgi_tensor_slot *slot = &slots->slot[i];
        const uintptr_t address = find_address(slot, base);
        if (!address)
            continue;
        status = encode(device->driver, &slot->tensor, address, find_shift(slot, address),
                        find_map(slot, argument));
        slot->encoded_address = status ? 0 : address;
    }
    if (!status)
        atomic_store_explicit(&slots->is_encoded, 1, memory_order_release);
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Replaces the address of the map, or encodes the map again if more than the address changes. */
static tg_status move_map(const tgi_driver *driver, const tgi_tensor_slot *slot, uintptr_t address,
                          void *map)
{
    const unsigned shift = find_shift(slot, address);
    if (slot->encoded_address == 0 || find_shift(slot, slot->encoded_address) != shift)
        return encode(driver, &slot->tensor, address, shift, map);
    const int error = driver->replace_address(map, (void *)(address - shift));
    return error ? tgi_driver_fail(driver, error, "cuTensorMapReplaceAddress") : TG_STATUS_OK;
}

tg_status tgi_tensor_fill(tgi_cuda_device *device, tgi_tensor_slots *slots,
                          const void *const base[], void *argument, void *target,
                          size_t argument_bytes)
{
    tg_status status = TG_STATUS_OK;
    if (!atomic_load_explicit(&slots->is_encoded, memory_order_acquire) &&
        (status = encode_all(device, slots, base, argument)))
        return status;
    memcpy(target, argument, argument_bytes);
    for (int i = 0; i < slots->count && !status; i++) {
        const tgi_tensor_slot *slot = &slots->slot[i];
        const uintptr_t address = find_address(slot, base);
        if (address && address != slot->encoded_address)
            status = move_map(device->driver, slot, address, find_map(slot, target));
    }
    return status;
}
