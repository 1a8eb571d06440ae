/* Family small and batch-invariant problems. */
#ifndef TGI_CUDA_SMALL_H
#define TGI_CUDA_SMALL_H

#include "plan/backend.h"

/* Returns 1 if the problem is batch invariant and of such n and k that family small takes it for
 * every m, and no other family does. */
int tgi_small_takes_invariant(const tgi_machine *machine, const tgi_problem *problem);

/* Returns 1 if the row is the one of its type that then takes it. */
int tgi_small_is_invariant(const tgi_kernel *kernel);

#endif
