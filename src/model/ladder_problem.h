/* Tells which problems the ladder takes, apart from their sizes (ladder_model.h). */
#ifndef TGI_LADDER_PROBLEM_H
#define TGI_LADDER_PROBLEM_H

#include "core/problem.h"
#include "core/refusal.h"

/* Returns 1 if the ladder takes the problem, else 0 with the refusal filled. The ladder's kernels
 * form D = A B of dense row-major matrices of one type. */
int tgi_model_ladder_takes_problem(const tgi_problem *problem, tgi_refusal *refusal);

#endif
