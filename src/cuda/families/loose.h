/* Family loose: lines of A that begin between units of 16 bytes, read where they lie. */
#ifndef TGI_CUDA_LOOSE_H
#define TGI_CUDA_LOOSE_H

#include "cuda/families/operand.h"

/* 1: the kernel moves lines of A on the way. */
int tgi_loose_is(const tgi_kernel *kernel);

/* Sets is_loose of an operand that would be repacked, in place of is_repacked, where its elements
 * lie in lines and their strides are fit for maps. */
void tgi_loose_describe(tgi_operand *operand);

/* Encodes the maps of A, whose first element is at `data`. */
tg_status tgi_loose_map(const tgi_cuda_queue *queue, const tgi_operand *operand, const void *data,
                        tgi_wgmma_loose *loose);

#endif
