/* Splits D into bands of rows that have a launch each. A batch-invariant problem has bands if its
 * splits would need too much workspace: the number of splits cannot be lowered, since it may not
 * depend on m. It has them too if the kernel does not count its rows. Another problem has two if
 * the tiles of its last rows would leave multiprocessors idle in the last round of blocks: their k
 * is split, so that all have work. */
#ifndef TGI_CUDA_ROW_BANDS_H
#define TGI_CUDA_ROW_BANDS_H

#include "cuda/families/family.h"

/* Returns 1 if bands are columns of the canonical D: those of a batch-invariant problem are rows of
 * the caller's. */
int tgi_bands_are_cols(const tgi_problem *problem);

/* Returns the rows of D, or its columns if bands have them. */
int64_t tgi_bands_count_rows(const tgi_problem *problem);

/* Returns the band of the problem with `row_count` of them. */
tgi_problem tgi_bands_make_band(const tgi_problem *problem, int64_t row_count);

/* Proposes as the planner does for all rows, or for bands. If the workspace of a batch-invariant
 * problem exceeds the machine's limit, it has the largest bands that keep it, of 256 rows at least,
 * whatever the limit. */
void tgi_bands_propose(const tgi_machine *machine, const tgi_problem *problem,
                       const tgi_cuda_planner *planner, tgi_proposal *proposal);

#endif
