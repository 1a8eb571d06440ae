/* Models the L2 cache of a simulated GPU. */
#ifndef TGI_SIM_L2_H
#define TGI_SIM_L2_H

#include "sim/run_state.h"

/* Returns NULL when out of memory. */
sim_l2 *tgi_sim_open_l2(int64_t size_bytes);
void tgi_sim_close_l2(sim_l2 *l2);

/* Reads or writes a sector. Returns 1 for a hit. */
int tgi_sim_touch_sector(sim_l2 *l2, uintptr_t sector);

#endif
