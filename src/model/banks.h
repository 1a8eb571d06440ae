/* Counts turns of shared memory for the requests of a warp. */
#ifndef TGI_BANKS_H
#define TGI_BANKS_H

#include <stdint.h>

#include "tilegemm_sim.h"

#define TGI_WARP_THREADS 32

/* Fills the groups in which a request is served, at most 4, and returns their number. Addresses are
 * in bytes; bit i of the mask means that lane i takes part. */
int tgi_model_split_request(const uintptr_t addresses[TGI_WARP_THREADS], uint32_t mask,
                            int size_bytes, tg_lane_group *groups);

/* The turns of a request, and the turns beyond the fewest that it needs. */
typedef struct tgi_turns {
    int count, conflict_count;
} tgi_turns;
tgi_turns tgi_model_count_turns(const uintptr_t addresses[TGI_WARP_THREADS], uint32_t mask,
                                int size_bytes);

#endif
