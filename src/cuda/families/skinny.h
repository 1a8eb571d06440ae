/* Declares the planning of the families rank and dot that their launch also uses. */
#ifndef TGI_CUDA_SKINNY_H
#define TGI_CUDA_SKINNY_H

#include "cuda/families/family.h"
#include "cuda/families/operand.h"

/* Returns 1 if D has fewer columns than rows, so that it is formed transposed. */
int tgi_skinny_is_transposed(const tgi_problem *problem);

/* Returns 1 if the kernel reads unaligned lines of B, and A only in lines of whole units. */
int tgi_skinny_is_narrow_rank(const tgi_kernel *kernel);

/* Describes A for kernels of narrow types, which read lines along k by vectors. A is repacked if it
 * does not lie so. */
void tgi_skinny_describe_a(const tgi_problem *problem, tgi_operand *a);

/* Returns the offset of A's copy in the workspace, behind the sums of the splits. */
int64_t tgi_skinny_find_a_place(const tgi_problem *problem, int64_t split_count);

/* Returns the layout of A's copy in the workspace. */
tgi_layout tgi_skinny_find_repacked_layout(const tgi_operand *a);

#endif
