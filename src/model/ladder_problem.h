/* What the ladder asks of a problem besides its sizes (ladder_model.h). */
#ifndef TGI_LADDER_PROBLEM_H
#define TGI_LADDER_PROBLEM_H

#include "core/problem.h"

/* Why the ladder, whose kernels form D = A B of dense row-major matrices, does not take this; NULL
 * where it does. */
const char *tgi_model_ladder_refuse(const tgi_problem *problem);

#endif
