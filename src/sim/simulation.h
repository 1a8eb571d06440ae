/* The state between the run of a simulation and its report. */
#ifndef TGI_SIMULATION_H
#define TGI_SIMULATION_H

#include "sim/sim.h"

/* A simulation and everything that it points to. */
typedef struct tgi_simulation {
    tg_simulation shown; /* first member: the caller has its address */
    tg_simulated_line *lines;
    tg_finding findings[TGI_SIM_FINDINGS];
    tgi_sim_record record;
    tgi_sim_counts *counts; /* one a site */
} tgi_simulation;

/* Sizes of the L2 and limits of multiply-adds where the caller gives none. */
#define TGI_SIM_L2_BYTES ((int64_t)60 << 20)
#define TGI_SIM_WORK_LIMIT ((int64_t)1 << 28)

/* Allocates a simulation of a kernel. Returns NULL when out of memory. */
tgi_simulation *tgi_sim_open(const char *kernel, const char *family, int rung, int is_in_table);

/* Returns the part of the launch that the caller's options fill. */
tgi_sim_launch tgi_sim_start_launch(const tg_simulation_options *options);

/* Runs the launch and fills made->shown from its counts and findings. Only the sizes and the useful
 * work of *sizes are read. Errors: OUT_OF_MEMORY, INVALID_ARGUMENT (a barrier that is not
 * there). */
tg_status tgi_sim_complete(tgi_simulation *made, const tg_simulation_options *options,
                           const tgi_sim_launch *launch, const tg_traffic *sizes);

/* Fills made->shown from the counts and findings of the launch. Errors: OUT_OF_MEMORY. */
tg_status tgi_sim_report(tgi_simulation *made, const tgi_sim_launch *launch,
                         const tg_traffic *sizes);

#endif
