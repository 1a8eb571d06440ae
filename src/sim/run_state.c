#include "sim/run_state.h"

#include "sim/thread_index.h"

tgi_sim_index tgi_sim_thread_index, tgi_sim_block_index;
sim_run *tgi_sim_now;

void tgi_sim_stop(sim_run *run)
{
    run->is_stopped = 1;
    tgi_fiber_switch(&run->thread->fiber, run->scheduler);
}

void tgi_sim_stop_without_memory(sim_run *run)
{
    run->is_out_of_memory = 1;
    tgi_sim_stop(run);
}

char tgi_sim_find_element(const sim_run *run, uintptr_t address, int64_t *index)
{
    static const char spaces[] = {'A', 'B', 'D', 'S'};
    const tgi_sim_range *ranges[] = {&run->a, &run->b, &run->d, &run->variable};
    for (int i = 0; i < 4; i++) {
        if (address >= ranges[i]->low && address < ranges[i]->high) {
            *index = (int64_t)(address - ranges[i]->low) / 4;
            return spaces[i];
        }
    }
    return 0;
}
