/* Declares the backend's functions that allocate, release, copy and identify device memory, and
 * that find the owner of a block of workspace. */
#ifndef TGI_CUDA_DEVICE_MEMORY_H
#define TGI_CUDA_DEVICE_MEMORY_H

#include "plan/backend.h"

tg_status tgi_cuda_allocate(const tgi_machine *machine, int64_t size_bytes, void **memory);
void tgi_cuda_release(const tgi_machine *machine, void *memory);
tgi_owner tgi_cuda_find_owner(const tgi_machine *machine, void *stream);
tg_status tgi_cuda_copy_to_device(const tgi_machine *machine, void *device, const void *host,
                                  int64_t size_bytes);
tg_status tgi_cuda_copy_from_device(const tgi_machine *machine, void *host, const void *device,
                                    int64_t size_bytes);

/* Returns where the memory is. The driver need not have a current context. */
tgi_memory tgi_cuda_find_memory(const tgi_machine *machine, const void *memory);

#endif
