/* Predicts the time of the families on wgmma by closed formulas. */
#ifndef TGI_WGMMA_MODEL_H
#define TGI_WGMMA_MODEL_H

#include "core/problem.h"
#include "model/machine.h"
#include "model/wgmma_work.h"

/* Returns the seconds of a call. */
double tgi_model_wgmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_wgmma_work *work);

#endif
