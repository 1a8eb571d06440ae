/* Products whose slices would need too much workspace: D in panels, each launched by itself. */
#ifndef TGI_CUDA_PANELS_H
#define TGI_CUDA_PANELS_H

#include "plan/backend.h"

/* Makes *panel the largest part of the problem whose workspace keeps the machine's limit: all of
 * it, else one entry of the batch, else rows and columns of that, which the decision's panel_rows
 * and panel_cols then say; they are 0 otherwise. Returns the number of panels; 0, with the reason,
 * where none is small enough. */
double tgi_panels_choose(const tgi_machine *machine, const tgi_problem *problem,
                         tgi_proposal *proposal, tgi_problem *panel);

#endif
