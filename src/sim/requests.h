/* Groups the accesses of a warp into requests and counts them. */
#ifndef TGI_SIM_REQUESTS_H
#define TGI_SIM_REQUESTS_H

#include "sim/run_state.h"

/* Returns NULL when out of memory. */
sim_requests *tgi_sim_open_requests(void);
void tgi_sim_close_requests(sim_requests *requests);

/* Adds an access of the running thread. */
void tgi_sim_add_access(sim_run *run, access_kind kind, uintptr_t address, int size_bytes,
                        int site);

/* Has the running lane take no part in the next request of such accesses, which others may make. */
void tgi_sim_skip_access(sim_run *run, access_kind kind, int site);

/* Counts the requests of the warp that no lane can join any more; all if `is_end`, at the end of an
 * interval. */
void tgi_sim_count_requests(sim_run *run, const sim_thread *lanes, int lane_count, int is_end);

#endif
