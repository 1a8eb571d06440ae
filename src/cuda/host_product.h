/* Multiplies matrices in the processor's memory, which may be larger than the device's memory. */
#ifndef TGI_CUDA_HOST_PRODUCT_H
#define TGI_CUDA_HOST_PRODUCT_H

#include "plan/backend.h"

tg_status tgi_cuda_multiply_host(tg_context *context, const tgi_machine *machine,
                                 const tg_problem *problem, int64_t memory_bytes, void *stream,
                                 tg_panel_run *run);

#endif
