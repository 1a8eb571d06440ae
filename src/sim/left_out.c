/* These functions replace the simulator in a build without a C++ compiler, and report that. */
#include <stddef.h>

#include "core/status.h"
#include "tilegemm_sim.h"

tg_status tg_simulate_kernel(const tg_simulation_options *options, int64_t m, int64_t n, int64_t k,
                             const tg_simulation **simulation)
{
    (void)options;
    (void)m;
    (void)n;
    (void)k;
    if (simulation)
        *simulation = NULL;
    return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                           "this build leaves the simulator out: there was no C++ compiler or no "
                           "awk, or TG_SIM was OFF; build it with them");
}

tg_status tg_simulate_attention(const tg_simulation_options *options, const tg_attention *attention,
                                const tg_simulation **simulation)
{
    (void)attention;
    return tg_simulate_kernel(options, 1, 1, 1, simulation);
}

void tg_destroy_simulation(const tg_simulation *simulation)
{
    (void)simulation;
}
