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

/* Fills made->shown from the counts and findings of the launch. Errors: OUT_OF_MEMORY. */
tg_status tgi_sim_report(tgi_simulation *made, const tgi_sim_kernel *kernel,
                         const tgi_sim_launch *launch);

#endif
