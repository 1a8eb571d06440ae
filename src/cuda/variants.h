/* Symbols of rows that have several kernels, one for each way in which operands may lie. */
#ifndef TGI_CUDA_VARIANTS_H
#define TGI_CUDA_VARIANTS_H

#include "core/kernels.h"

/* The row's name with "_<suffix>" behind it, which lives as long as the process; the row's name
 * where no kernel has that suffix. */
const char *tgi_cuda_find_variant(const tgi_kernel *kernel, const char *suffix);

#endif
