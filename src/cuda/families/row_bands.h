/* Splits D of a batch-invariant problem into bands of rows if its splits would need too much
 * workspace. The number of splits cannot be lowered, since it may not depend on m. */
#ifndef TGI_CUDA_ROW_BANDS_H
#define TGI_CUDA_ROW_BANDS_H

#include "cuda/families/family.h"

/* Returns the rows of the caller's D. */
int64_t tgi_bands_count_rows(const tgi_problem *problem);

/* Returns the band of the problem with `row_count` rows of the caller's D. */
tgi_problem tgi_bands_make_band(const tgi_problem *problem, int64_t row_count);

/* Proposes as the planner does for all rows, or, if their workspace exceeds the machine's limit,
 * for the largest band that keeps it. A band has 256 rows at least, whatever the limit. */
void tgi_bands_propose(const tgi_machine *machine, const tgi_problem *problem,
                       const tgi_cuda_planner *planner, tgi_proposal *proposal);

#endif
