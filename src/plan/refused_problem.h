/* Reports a problem that no row takes. */
#ifndef TGI_REFUSED_PROBLEM_H
#define TGI_REFUSED_PROBLEM_H

#include "plan/backend.h"

/* Returns UNSUPPORTED. The detail has one line for each reason of the rows that `name` (NULL: any)
 * matches, with their families. The reasons that come nearest to taking the problem are first. */
tg_status tgi_plan_report_refusals(const tgi_backend *backend, const tgi_machine *machine,
                                   const tgi_problem *problem, const char *name);

#endif
