/* Maps by which the copy engine finds its boxes. */
#include <stdio.h>

#include "cuda/runtime/device.h"
#include "cuda/families/operand.h"

tg_status tgi_tensor_encode(const tgi_cuda_queue *queue, const tgi_tensor *tensor, int elems,
                            int runs, tgi_tensor_map *map)
{
    const tgi_driver *driver = queue->device->driver;
    const int64_t *count = tensor->count, *stride_bytes = tensor->stride_bytes;
    const uint64_t counts[3] = {(uint64_t)count[0], (uint64_t)count[1], (uint64_t)count[2]};
    const uint64_t strides[2] = {(uint64_t)stride_bytes[0], (uint64_t)stride_bytes[1]};
    const uint32_t box[3] = {(uint32_t)elems, (uint32_t)runs, 1}, steps[3] = {1, 1, 1};
    const int type = tensor->is_rounded        ? TGI_CUDA_TENSOR_TF32
                     : tensor->elem_bytes == 1 ? TGI_CUDA_TENSOR_UINT8
                     : tensor->elem_bytes == 2 ? TGI_CUDA_TENSOR_UINT16
                                               : TGI_CUDA_TENSOR_UINT32;
    int error = driver->encode_map(map, type, 3, (void *)(uintptr_t)tensor->data, counts, strides,
                                   box, steps, TGI_CUDA_TENSOR_NO_INTERLEAVE,
                                   tensor->is_swizzled ? TGI_CUDA_TENSOR_SWIZZLE_128
                                                       : TGI_CUDA_TENSOR_NO_SWIZZLE,
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

tg_status tgi_tensor_encode_operand(const tgi_cuda_queue *queue, const tgi_tensor *tensor,
                                    int elems, int group_lines, tgi_wgmma_operand *operand)
{
    tg_status status =
        tgi_tensor_encode(queue, tensor, elems, operand->box_lines / group_lines, &operand->map);
    return status || operand->edge_lines == 0
               ? status
               : tgi_tensor_encode(queue, tensor, elems, operand->edge_lines / group_lines,
                                   &operand->edge_map);
}
