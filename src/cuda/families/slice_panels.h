/* Products whose slices would need too much workspace: D in panels, each a call of its own. */
#ifndef TGI_CUDA_PANELS_H
#define TGI_CUDA_PANELS_H

#include "cuda/cuda.h"

/* Makes *panel the largest part of the problem whose workspace keeps the machine's limit: all of
 * it, else one entry of the batch, else rows and columns of that, which blocking->mc and nc then
 * say, and are 0 otherwise. Returns the number of panels; 0, with the reason, where none is small
 * enough. */
double tgi_panels_choose(const tgi_machine *machine, const tgi_problem *problem,
                         tgi_proposal *proposal, tgi_problem *panel);

/* Runs the call panel by panel. */
tg_status tgi_panels_launch(const tgi_cuda_queue *queue, const tgi_call *call,
                            tgi_cuda_launch_call *launch);

#endif
