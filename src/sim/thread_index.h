/* Defines the indices of the running thread and of its block, and the sizes of the grid and of a
 * block. Compiles as C11 and C++17. */
#ifndef TGI_SIM_THREAD_INDEX_H
#define TGI_SIM_THREAD_INDEX_H

typedef struct tgi_sim_index {
    unsigned x, y, z;
} tgi_sim_index;

#ifdef __cplusplus
/* A thread sees constants. The simulator sets them each time it resumes the thread. */
#define TGI_SIM_CONSTANT const
extern "C" {
#else
#define TGI_SIM_CONSTANT
#endif

extern TGI_SIM_CONSTANT tgi_sim_index tgi_sim_thread_index, tgi_sim_block_index, tgi_sim_grid_size,
    tgi_sim_block_size;

#ifdef __cplusplus
}
#endif
#endif
