/* Records what happens between two barriers of a block and passes it to the caller's function. */
#ifndef TGI_SIM_TRACE_H
#define TGI_SIM_TRACE_H

#include "sim/run_state.h"

/* Returns NULL when out of memory. */
sim_tracer *tgi_sim_open_tracer(void);
void tgi_sim_close_tracer(sim_tracer *tracer);

void tgi_sim_trace_access(sim_run *run, access_kind kind, uintptr_t address, int size_bytes,
                          int site);
void tgi_sim_trace_sum(sim_run *run, const void *sum, float value);

/* Ends a phase at the barrier; a negative site stands for the end of the block. */
void tgi_sim_trace_phase(sim_run *run, int barrier_site);

#endif
