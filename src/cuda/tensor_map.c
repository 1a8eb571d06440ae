/* Maps by which the copy engine finds its boxes. */
#include <stdio.h>

#include "cuda/device.h"
#include "cuda/operand.h"

tg_status tgi_operand_encode(const tgi_cuda_queue *queue, tgi_tensor_map *map, const void *data,
                             int64_t elem_bytes, const int64_t count[3],
                             const int64_t stride_bytes[2], const int box[2], int is_swizzled)
{
    const tgi_driver *driver = queue->device->driver;
    const uint64_t counts[3] = {(uint64_t)count[0], (uint64_t)count[1], (uint64_t)count[2]};
    const uint64_t strides[2] = {(uint64_t)stride_bytes[0], (uint64_t)stride_bytes[1]};
    const uint32_t boxes[3] = {(uint32_t)box[0], (uint32_t)box[1], 1}, steps[3] = {1, 1, 1};
    const int type = elem_bytes == 1   ? TGI_CUDA_TENSOR_UINT8
                     : elem_bytes == 2 ? TGI_CUDA_TENSOR_UINT16
                                       : TGI_CUDA_TENSOR_UINT32;
    int error =
        driver->encode_map(map, type, 3, (void *)(uintptr_t)data, counts, strides, boxes, steps,
                           TGI_CUDA_TENSOR_NO_INTERLEAVE,
                           is_swizzled ? TGI_CUDA_TENSOR_SWIZZLE_128 : TGI_CUDA_TENSOR_NO_SWIZZLE,
                           TGI_CUDA_TENSOR_PROMOTE_128, TGI_CUDA_TENSOR_FILL_ZERO);
    if (!error)
        return TG_STATUS_OK;
    char what[200];
    snprintf(what, sizeof what,
             "cuTensorMapEncodeTiled of %lld x %lld x %lld elements, %lld bytes from run to run",
             (long long)count[2], (long long)count[1], (long long)count[0],
             (long long)stride_bytes[0]);
    return tgi_driver_fail(driver, error, what);
}
