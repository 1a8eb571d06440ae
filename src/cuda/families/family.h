/* Each family of CUDA rows has two halves, planning and launching. Planning needs neither a driver
 * nor a GPU. */
#ifndef TGI_CUDA_FAMILY_H
#define TGI_CUDA_FAMILY_H

#include "plan/backend.h"

typedef struct tgi_cuda_queue tgi_cuda_queue; /* runtime/launch.h */

#define TGI_CUDA_OPERAND_ALIGNMENT 16 /* bytes; TMA and vector accesses need it */

/* The planning half of a family, families/X.c. */
typedef struct tgi_cuda_planner {
    /* Proposes as tgi_backend does. Type and instruction set already fit, sizes are 1 or more, and
     * alpha is not 0. Fills legality, refusal, decision, workspace_bytes and predicted_s. The
     * caller fills serial_s and sum_order. machine->device is NULL if there is no device. */
    void (*propose)(const tgi_machine *machine, const tgi_problem *problem, tgi_proposal *proposal);
    /* Fills *split with the counts of the decision. On entry it describes a plan that splits
     * nothing. NULL if the family never splits. */
    void (*describe_tiling)(const tgi_proposal *proposal, tgi_plan_tiling *tiling);
    int has_last_round; /* 1: the last round of blocks may be a band of its own (row_bands.h) */
} tgi_cuda_planner;

/* The launching half of a family, families/X_launch.c. */
typedef struct tgi_cuda_launcher {
    /* Returns the size of the block that `prepare` fills. */
    int64_t (*count_prepared_bytes)(const tgi_problem *problem, const tgi_proposal *proposal);
    /* Prepares a plan as tgi_backend's prepare does. */
    void (*prepare)(const tgi_machine *machine, const tgi_problem *problem,
                    const tgi_proposal *proposal, void *prepared);
    /* Puts the kernels of a call into the queue, by tgi_cuda_run, and does not wait for them. */
    tg_status (*launch)(const tgi_cuda_queue *queue, const tgi_call *call, void *prepared);
} tgi_cuda_launcher;

#define TGI_CUDA_FAMILY(family, code, executor)                                                    \
    extern const tgi_cuda_planner tgi_cuda_planner_##code;                                         \
    extern const tgi_cuda_launcher tgi_cuda_launcher_##code;
#include "cuda/families/families.def"
#undef TGI_CUDA_FAMILY

/* These implement the backend's propose and describe_tiling: they call the row's family. */
void tgi_cuda_propose(const tgi_machine *machine, const tgi_problem *problem,
                      tgi_proposal *proposal);
void tgi_cuda_describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling);

/* Puts the kernels of a call of a plan that the CUDA backend has prepared into the queue. */
tg_status tgi_cuda_launch_call(const tgi_cuda_queue *queue, const tgi_call *call);

#endif
