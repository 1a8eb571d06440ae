/* Tells how tiles of the families on wgmma take C and a bias, and how they store D. */
#ifndef TGI_CUDA_WGMMA_TERMS_H
#define TGI_CUDA_WGMMA_TERMS_H

#include "kernels/wgmma/wgmma_shape.h"
#include "plan/backend.h"

/* Returns 1 if the kernel stores D transposed: its TMA boxes run along D's columns, which lie
 * across the tiles' rows. */
int tgi_wgmma_is_d_transposed(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns 1 if TMA can store a D that starts at a multiple of 16 bytes. D's lines must be whole
 * units of 16 bytes, because TMA clips to those. The lines are D's rows or, if it is transposed,
 * its columns. */
int tgi_wgmma_is_d_tma_stored(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns how whole tiles take a C that starts at a multiple of 16 bytes: from the stages if its
 * rows or columns are whole units of 16 bytes. */
tgi_c_source tgi_wgmma_find_c_source(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns 1 if the first split of a tile takes C in the same way, so that the epilogue has none.
 * Batch-invariant sums get C in the same way in all families. */
int tgi_wgmma_is_c_summed(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns 1 if RELU is a part of the conversion to 16 bits with which D is stored. */
int tgi_wgmma_is_relu_stored(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns 1 if tiles may add their bias as a product: it has the operands' type. `is_split` is 1 if
 * k is split. The sums of a batch-invariant problem get it in the same way in all families and for
 * every address. */
int tgi_wgmma_is_bias_staged(const tgi_kernel *kernel, const tgi_problem *p, int is_split);

#endif
