/* Declares what the planners of family small share. */
#ifndef TGI_CUDA_SMALL_H
#define TGI_CUDA_SMALL_H

#include "cuda/families/family.h"

/* Returns 1 for the rows of FP8, which are strips alone. */
int tgi_small_is_strip(const tgi_kernel *kernel);

/* Returns how many pieces a row of D has, in the form by units or by elements. */
int64_t tgi_small_count_pieces(const tgi_problem *p, int has_units);

/* Proposes pieces and strips, if they are predicted to be faster than what was proposed before. */
void tgi_small_propose_strips(const tgi_machine *machine, const tgi_problem *given,
                              tgi_proposal *proposal);

/* Proposes outer products of FP32, likewise. */
void tgi_small_propose_outer(const tgi_machine *machine, const tgi_problem *p,
                             tgi_proposal *proposal);

/* Proposes a row of FP8, or refuses the problem. */
void tgi_small_propose_strip_row(const tgi_machine *machine, const tgi_problem *p,
                                 tgi_proposal *proposal);

#endif
