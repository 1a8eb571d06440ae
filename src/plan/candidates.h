/* Lists the candidates for a problem on a machine, one for each row of the kernel table, and
 * chooses among them. */
#ifndef TGI_CANDIDATES_H
#define TGI_CANDIDATES_H

#include "plan/backend.h"

/* Sets is_a_offset and is_b_offset of the canonical problem from its pointers. NULL counts as
 * aligned. */
void tgi_plan_note_offsets(const tgi_backend *backend, tgi_problem *problem, const void *a,
                           const void *b);

/* Makes the canonical problem by VALIDATE and tgi_plan_note_offsets. */
tg_status tgi_plan_canonicalize(const tgi_backend *backend, const tg_problem *problem,
                                tgi_problem *canonical);

/* Finds the legal row with the shortest predicted time among the rows that `name` (NULL: any)
 * matches. On a GPU an epilogue of FP32 or FP64 keeps the row of its plain product while no other
 * one is clearly faster. It first chooses the order of sums, as if there were one thread, then the
 * fastest row of that order. Errors: UNKNOWN_NAME, UNSUPPORTED. */
tg_status tgi_plan_choose(const tgi_backend *backend, const tgi_machine *machine,
                          const tgi_problem *problem, const char *name, tgi_proposal *best);

/* Lists the candidates of a machine as tg_list_candidates does. */
tg_status tgi_plan_list(const tgi_backend *backend, const tgi_machine *machine,
                        const tg_problem *problem, tg_candidate *candidates, int capacity,
                        int *count);

#endif
