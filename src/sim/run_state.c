#include "sim/run_state.h"

#include "sim/thread_index.h"

tgi_sim_index tgi_sim_thread_index, tgi_sim_block_index, tgi_sim_grid_size, tgi_sim_block_size;
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

const tgi_sim_operand *tgi_sim_find_operand(const sim_run *run, uintptr_t address)
{
    for (int i = 0; i < run->operand_count; i++) {
        const tgi_sim_range *range = &run->operands[i].range;
        if (address >= range->low && address < range->high)
            return &run->operands[i];
    }
    return NULL;
}

char tgi_sim_find_element(const sim_run *run, uintptr_t address, int64_t *index)
{
    const tgi_sim_operand *operand = tgi_sim_find_operand(run, address);
    if (operand) {
        *index = (int64_t)(address - operand->range.low) / operand->elem_bytes;
        return operand->name;
    }
    if (address < run->variable.low || address >= run->variable.high)
        return 0;
    *index = (int64_t)(address - run->variable.low) / 4;
    return 'S';
}

int tgi_sim_get_elem_bytes(const sim_run *run, uintptr_t address)
{
    const tgi_sim_operand *operand = tgi_sim_find_operand(run, address);
    return operand ? operand->elem_bytes : 4;
}
