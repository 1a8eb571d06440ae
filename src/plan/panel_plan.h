/* The choice of panels and the panels themselves read a problem in the same way. */
#ifndef TGI_PANEL_PLAN_H
#define TGI_PANEL_PLAN_H

#include "core/problem.h"

/* Validates the caller's problem. *q is its canonical form with the caller's A and B, and *problem
 * a copy of this version's size where the caller's struct is of another. */
tg_status tgi_panels_read_problem(const tg_problem **problem, tg_problem *converted,
                                  tgi_problem *q);

#endif
