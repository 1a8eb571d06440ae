/* Families rank and dot: what their planning tells their launch. */
#ifndef TGI_CUDA_SKINNY_H
#define TGI_CUDA_SKINNY_H

#include "cuda/families/family.h"
#include "cuda/families/operand.h"

/* Returns 1 if the columns of D are the few, so that D is formed transposed. */
int tgi_skinny_is_transposed(const tgi_problem *problem);

/* Returns 1 if the kernel takes B's lines wherever they begin, and A in lines of whole units
 * alone. */
int tgi_skinny_is_narrow_rank(const tgi_kernel *kernel);

/* Describes A for kernels of narrow types, which read lines along k: in vectors as it lies, or
 * repacked. */
void tgi_skinny_describe_a(const tgi_problem *problem, tgi_operand *a);

/* Returns the offset of A's copy in the workspace, behind the sums of the split-K parts. */
int64_t tgi_skinny_find_a_place(const tgi_problem *problem, int64_t part_count);

/* Returns the layout of that copy. */
tgi_layout tgi_skinny_find_repacked_layout(const tgi_operand *a);

#endif
