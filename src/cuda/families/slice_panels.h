/* Splits D into panels, each launched by itself, if the slices would need too much workspace. */
#ifndef TGI_CUDA_PANELS_H
#define TGI_CUDA_PANELS_H

#include "plan/backend.h"

/* Makes *panel the largest part of the problem whose workspace stays within the machine's limit:
 * all of it, one batch entry, or rows and columns of one entry. Sets *size, whose members are 0 if
 * *panel is the whole problem. Returns the number of panels. Refuses the problem and returns 0 if
 * no panel is small enough. */
double tgi_panels_choose(const tgi_machine *machine, const tgi_problem *problem,
                         tgi_proposal *proposal, tgi_slice_panel *size, tgi_problem *panel);

/* Returns 1 if a row of family bf16x has panels for every number of rows, columns and batch entries
 * at the problem's k, whose workspace stays within the limit. */
int tgi_panels_fit(const tgi_machine *machine, const tgi_problem *problem);

/* Returns the most bytes of workspace that a panel may take. */
int64_t tgi_panels_find_limit(const tgi_machine *machine);

#endif
