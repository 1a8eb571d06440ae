/* DISPATCH: the functions of one backend. A backend is one entry of the table in backend.c. */
#ifndef TGI_BACKEND_H
#define TGI_BACKEND_H

#include "core/problem.h"
#include "core/refusal.h"
#include "model/machine.h"
#include "model/plan_counts.h"
#include "plan/decision.h"

/* A kernel's answer to a problem: legal or not, how it would run and how long. */
typedef struct tgi_proposal {
    const tgi_kernel *kernel;
    int is_legal;
    tgi_refusal refusal;   /* why it is not legal; NONE if it is */
    tgi_decision decision; /* the member of the kernel's family; zeros if nothing is split */
    int thread_count;      /* threads of the processor at most, 1 on a GPU */
    int64_t workspace_bytes;
    int64_t resident_blocks; /* of a GPU's multiprocessor at once; 0 where not known */
    int64_t shared_bytes;    /* of a GPU's block */
    int needs_aligned[2];    /* 1: A, or B, must be as aligned as the problem says that it is */
    double predicted_s;
    /* Results must not depend on the thread count, so the order in which a sum is formed is
     * chosen as if there were one thread: serial_s is that prediction. Kernels of one order
     * agree bit by bit. */
    double serial_s;
    tgi_sum_order sum_order;
} tgi_proposal;

/* Asks a call to launch each of its kernels launch_count times, by the driver alone and with the
 * call's own arguments, and to add the seconds that this takes the calling thread. */
typedef struct tgi_bare_launch {
    int64_t launch_count;
    double elapsed_s;
} tgi_bare_launch;

/* One execution: operands in their canonical roles, pointers checked. */
typedef struct tgi_call {
    const tgi_machine *machine;
    const tgi_problem *problem; /* of the plan, with alpha and beta of this call */
    void *prepared;             /* of the plan, filled by the backend's `prepare` */
    /* A pointer to each operand, a, b, ...; NULL for an operand that is not used. */
#define TGI_OPERAND(name, title, form, role, ...) TGI_POINTER_##form##_##role(name);
#include "core/operands.def"
#undef TGI_OPERAND
    void *workspace; /* aligned to the backend's workspace_alignment */
    void *stream;
    tgi_bare_launch *bare_launch; /* NULL: the call runs once */
} tgi_call;

/* Calls that follow one another: those of a stream, or those of a stream that one capture takes
 * into its graph, where another stream's may run beside them. */
typedef struct tgi_owner {
    uint64_t stream;  /* never ~0 */
    uint64_t capture; /* 0: none; else its number plus one */
} tgi_owner;

typedef struct tgi_backend {
    const char *device;
    /* Its rows of the kernel table: of this device, and of this image where it is not NULL. */
    const char *row_device, *row_image;
    int workspace_alignment; /* bytes */
    int64_t spare_bytes;     /* of workspace that a context opens with */
    int operand_alignment;   /* bytes, that a kernel may ask of A and B; 1: none does */
    /* Sets *count to the devices there are, or fails with the reason why there is none. */
    tg_status (*count_devices)(int *count);
    /* Fills in what the machine has; `machine->thread_count` and the ISA limit come after.
     * `ordinal` is -1 where the caller names none. */
    tg_status (*open)(tgi_machine *machine, int ordinal);
    void (*close)(tgi_machine *machine);
    /* Fills all but proposal->kernel, which is given. */
    void (*propose)(const tgi_machine *machine, const tgi_problem *problem, tgi_proposal *proposal);
    /* Fills the counts that a plan's figures are derived from; NULL where there are none. */
    void (*describe_split)(const tgi_proposal *proposal, tgi_plan_split *split);
    /* Returns the size of the block that `prepare` fills, for a problem that is not empty. */
    int64_t (*count_prepared_bytes)(const tgi_problem *problem, const tgi_proposal *proposal);
    /* Derives all that a launch needs and that does not depend on its pointers, alpha and beta,
     * into `prepared`: zeroed, aligned to TGI_CACHE_LINE_BYTES. Nothing has to be undone before
     * that memory is freed. It asks no device. */
    void (*prepare)(const tgi_machine *machine, const tgi_problem *problem,
                    const tgi_proposal *proposal, void *prepared);
    /* Runs a prepared plan, or puts its kernels into the stream. Any number of threads may launch
     * one plan at once. */
    tg_status (*launch)(const tgi_call *call);
    /* FLOP/s of an FMA loop on `thread_count` threads. */
    tg_status (*measure_peak)(const tgi_machine *machine, tg_type type, int thread_count,
                              double *flop_per_s);

    /* Memory that kernels read and write; *memory is NULL where there is none. */
    tg_status (*allocate)(const tgi_machine *machine, int64_t size_bytes, void **memory);
    void (*release)(const tgi_machine *machine, void *memory);
    /* Who a block of workspace belongs to while work of the stream may still use it after the call.
     * NULL where work is done when a call returns: blocks then belong to nobody. */
    tgi_owner (*find_owner)(const tgi_machine *machine, void *stream);

    /* For tilegemm_lab.h, with its meaning. NULL where memory is the processor's and calls wait. */
    tg_status (*activate)(const tgi_machine *machine);
    tg_status (*copy_to_device)(const tgi_machine *machine, void *device, const void *host,
                                int64_t size_bytes);
    tg_status (*copy_from_device)(const tgi_machine *machine, void *host, const void *device,
                                  int64_t size_bytes);
    tg_status (*synchronize)(const tgi_machine *machine, void *stream);
    tg_status (*time_calls)(const tgi_machine *machine, tg_timed_call *call, void *state,
                            int64_t count, void *stream, double *elapsed_s);
} tgi_backend;

extern const tgi_backend tgi_backend_cpu;
extern const tgi_backend tgi_backend_cuda, tgi_backend_sim; /* where the build has them */
/* The CUDA backend for a chip that need not be here: proposes, and has no other function. */
extern const tgi_backend tgi_backend_chip;

/* Backend of a device by name, "cpu", "cuda", "cuda:1" (*ordinal is then 1, else -1). NULL with the
 * detail set and *status filled where this build has none; `origin` says where the name is from. */
const tgi_backend *tgi_backend_find(const char *device, const char *origin, int *ordinal,
                                    tg_status *status);

#endif
