#include "model/occupancy.h"

#include "core/checked.h"

/* A warp gets registers in units of 256, and a block gets warps in groups of four, one for each
 * scheduler. */
#define REGISTER_UNIT 256
#define WARP_UNIT 4

/* Returns the shared memory that a block takes, including the system's reserve. */
static int64_t count_shared_bytes(const tgi_gpu *gpu, int64_t shared_bytes)
{
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    return tgi_round_up(shared_bytes + arch->shared_reserve_bytes, arch->shared_unit_bytes);
}

tgi_occupancy tgi_model_occupancy(const tgi_gpu *gpu, int thread_count, int register_count,
                                  int64_t shared_bytes)
{
    const int64_t warp_count = tgi_divide_up(thread_count, 32),
                  warps_per_sm = gpu->threads_per_sm / 32;
    const int64_t warp_registers = tgi_round_up(32 * (int64_t)register_count, REGISTER_UNIT);
    const int64_t register_warps = gpu->registers_per_sm / warp_registers / WARP_UNIT * WARP_UNIT;
    const int64_t block_bytes = count_shared_bytes(gpu, shared_bytes);
    const struct {
        int64_t block_count;
        const char *name;
    } limits[] = {
        {warps_per_sm / warp_count, "threads"},
        {register_warps / warp_count, "registers"},
        {block_bytes ? gpu->shared_bytes_per_sm / block_bytes : gpu->blocks_per_sm,
         "shared memory"},
        {gpu->blocks_per_sm, "blocks"},
    };
    tgi_occupancy occupancy = {.limiter = limits[0].name};
    int64_t block_count = limits[0].block_count;
    for (int i = 1; i < 4; i++) {
        if (limits[i].block_count < block_count) {
            block_count = limits[i].block_count;
            occupancy.limiter = limits[i].name;
        }
    }
    if (thread_count > TGI_BLOCK_THREADS_MAX) {
        block_count = 0;
        occupancy.limiter = "threads";
    } else if (shared_bytes > gpu->shared_bytes_per_block) {
        block_count = 0;
        occupancy.limiter = "shared memory";
    }
    occupancy.block_count = (int)block_count;
    occupancy.block_registers = tgi_round_up(warp_count, WARP_UNIT) * warp_registers;
    occupancy.share = (double)(block_count * warp_count) / (double)warps_per_sm;
    return occupancy;
}
