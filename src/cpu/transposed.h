/* Computes D^T = B^T A^T in place of D, where less is packed for it: a B along k is then read in
 * place, as an A along k is. */
#ifndef TGI_CPU_TRANSPOSED_H
#define TGI_CPU_TRANSPOSED_H

#include "cpu/micropanels.h"

/* Returns 1 if family `packed` may compute D^T: D is the sums alone, of the type in which they are
 * formed, and B does not lie along n with rows far apart or beside an A along k. */
int tgi_cpu_can_transpose(const tgi_problem *problem);

/* Runs the tiles of a block of D^T micropanel by micropanel. Sums go to s->sums, which has room for
 * one micropanel, and from there to D. D holds the running sums of a k of several chunks. */
void tgi_cpu_run_transposed(const tgi_micropanels *s);

#endif
