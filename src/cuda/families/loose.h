/* Family loose: lines of A that begin between units of 16 bytes, read where they lie. */
#ifndef TGI_CUDA_LOOSE_H
#define TGI_CUDA_LOOSE_H

#include "core/kernels.h"
#include "cuda/families/operand.h"

/* Returns 1 if the kernel moves unaligned lines of A on the way. */
int tgi_loose_is(const tgi_kernel *kernel);

/* Sets is_unaligned of an operand that would be repacked, in place of is_repacked, where its
 * elements lie in lines and their strides are fit for maps. */
void tgi_loose_describe(tgi_operand *operand);

#endif
