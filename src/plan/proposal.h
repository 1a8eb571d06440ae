/* A proposal is the answer of one row of the kernel table to a problem. */
#ifndef TGI_PROPOSAL_H
#define TGI_PROPOSAL_H

#include "plan/backend.h"

/* Returns 1 if the backend has the row. */
int tgi_plan_has_row(const tgi_backend *backend, const tgi_kernel *kernel);

/* Checks the row's device, type and instruction set, then asks the backend. Fills *proposal, which
 * has a refusal exactly if the row is not legal. */
void tgi_plan_propose(const tgi_backend *backend, const tgi_machine *machine,
                      const tgi_problem *problem, const tgi_kernel *kernel, tgi_proposal *proposal);

#endif
