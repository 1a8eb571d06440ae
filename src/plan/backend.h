/* Declares the functions of a backend. backend.c has a table of them. */
#ifndef TGI_BACKEND_H
#define TGI_BACKEND_H

#include "core/problem.h"
#include "core/refusal.h"
#include "model/machine.h"
#include "model/plan_counts.h"
#include "plan/decision.h"
#include "tilegemm_lab.h"

/* A proposal is a row's answer to a problem: whether the row is legal, how it would run and how
 * long it would take. */
typedef struct tgi_proposal {
    const tgi_kernel *kernel;
    int is_legal;
    tgi_refusal refusal;        /* why the row is not legal; NONE if it is */
    tgi_decision decision;      /* its member for the kernel's family; zeros if nothing is split */
    tgi_decision last_decision; /* the decision of the last band of rows, if any */
    int thread_count;           /* most CPU threads, 1 on a GPU */
    int64_t workspace_bytes;
    int64_t resident_blocks; /* blocks that share a multiprocessor; 0 if not known */
    int64_t shared_bytes;    /* shared memory of a GPU's block */
    int64_t band_rows;       /* rows of D that a launch forms together; 0: all. The last band has
                              * the rest */
    int needs_aligned[2];    /* [0]: 1 if A must be as aligned as the problem says; [1]: B */
    double predicted_s;
    /* The predicted time with one thread. It decides the order of sums, so that results do not
     * depend on the thread count. Kernels of one order agree bit by bit. */
    double serial_s;
    tgi_sum_order sum_order;
} tgi_proposal;

/* Asks a call to launch each of its kernels launch_count times, by the driver alone and with the
 * call's own arguments, and to add the seconds that this takes the calling thread. */
typedef struct tgi_bare_launch {
    int64_t launch_count;
    double elapsed_s;
} tgi_bare_launch;

/* A call may repeat an earlier one of its plan. */
typedef enum tgi_call_kind {
    TGI_CALL_ALONE,
    TGI_CALL_KEPT,    /* the backend may keep its launches; at most one such call runs at a time */
    TGI_CALL_REPEATED /* the operands, alpha and beta are those of the call that was kept last */
} tgi_call_kind;

/* A call is one execution. Operands have their canonical roles, and pointers are checked. */
typedef struct tgi_call {
    const tgi_machine *machine;
    const tgi_problem *problem; /* the plan's problem, with alpha and beta of this call */
    void *prepared;             /* the plan's block, which `prepare` has filled */
    /* A pointer to each operand, a, b, ...; NULL if the operand is not used. */
#define TGI_OPERAND(name, title, form, role, ...) TGI_POINTER_##form##_##role(name);
#include "core/operands.def"
#undef TGI_OPERAND
    void *workspace; /* aligned to the backend's workspace_alignment */
    void *stream;
    tgi_call_kind kind;
    tgi_bare_launch *bare_launch; /* NULL: the call runs once */
} tgi_call;

/* An owner stands for calls that run one after another: the calls of a stream, or the calls of a
 * stream within one capture. */
typedef struct tgi_owner {
    uint64_t stream;  /* never ~0 */
    uint64_t capture; /* number of the capture plus one; 0: no capture */
} tgi_owner;

/* Memory as a GPU sees it. Pinned memory is the processor's, and kernels read and write it too. */
typedef enum tgi_memory { TGI_MEMORY_DEVICE, TGI_MEMORY_PINNED, TGI_MEMORY_PAGEABLE } tgi_memory;

/* Runs a prepared plan, or puts its kernels into the stream. Any number of threads may launch one
 * plan at once. */
typedef tg_status tgi_launch_fn(const tgi_call *call);

typedef struct tgi_backend {
    const char *device;
    const char *row_device; /* device whose rows of the kernel table the backend has */
    int (*has_row)(const tgi_kernel *kernel); /* 1: it has the row; NULL: all */
    int workspace_alignment;                  /* bytes */
    int64_t spare_bytes;                      /* bytes of workspace that a context opens with */
    int operand_alignment; /* bytes of alignment that kernels may need of A and B; 1: none */
    /* Sets *count to the number of devices, or fails with the reason why there is none. */
    tg_status (*count_devices)(int *count);
    /* Fills *machine. The caller sets thread_count and limits the ISA afterwards. `ordinal` is -1
     * if the user names none. */
    tg_status (*open)(tgi_machine *machine, int ordinal);
    void (*close)(tgi_machine *machine);
    /* Fills all members of the proposal but `kernel`, which the caller sets. */
    void (*propose)(const tgi_machine *machine, const tgi_problem *problem, tgi_proposal *proposal);
    /* Fills the tiling from which a plan's counts are derived. NULL if rows have no counts. */
    void (*describe_tiling)(const tgi_proposal *proposal, tgi_plan_tiling *tiling);
    /* Returns the size of the block that `prepare` fills, for a problem that is not empty. */
    int64_t (*count_prepared_bytes)(const tgi_problem *problem, const tgi_proposal *proposal);
    /* Derives all data of a launch that do not depend on its pointers, alpha and beta, into
     * `prepared`, which is zeroed and aligned to TGI_CACHE_LINE_BYTES. Returns the function that
     * launches it. Nothing has to be undone before that memory is freed. It asks no device. */
    tgi_launch_fn *(*prepare)(const tgi_machine *machine, const tgi_problem *problem,
                              const tgi_proposal *proposal, void *prepared);
    /* Measures the FLOP/s of an FMA loop on `thread_count` threads. */
    tg_status (*measure_peak)(const tgi_machine *machine, tg_type type, int thread_count,
                              double *flop_per_s);

    /* Allocates memory that kernels read and write. *memory is NULL on failure. */
    tg_status (*allocate)(const tgi_machine *machine, int64_t size_bytes, void **memory);
    void (*release)(const tgi_machine *machine, void *memory);
    /* Returns the owner of a block of workspace that work of the stream may use after the call.
     * NULL if all work is done when a call returns, so that blocks have no owner. */
    tgi_owner (*find_owner)(const tgi_machine *machine, void *stream);

    /* These functions implement the calls for memory and streams. They are NULL if memory is the
     * processor's and calls wait for their work. */
    tg_status (*activate)(const tgi_machine *machine);
    tg_status (*copy_to_device)(const tgi_machine *machine, void *device, const void *host,
                                int64_t size_bytes);
    tg_status (*copy_from_device)(const tgi_machine *machine, void *host, const void *device,
                                  int64_t size_bytes);
    tg_status (*synchronize)(const tgi_machine *machine, void *stream);
    tg_status (*time_calls)(const tgi_machine *machine, tg_timed_call *call, void *state,
                            int64_t count, void *stream, double *elapsed_s);
    tgi_memory (*find_memory)(const tgi_machine *machine, const void *memory);
    /* Multiplies operands in the processor's memory, after the work of the stream, in panels of at
     * most `memory_bytes` of device memory (0: as much as is free or the context allows). D is
     * complete on return. The problem is valid, D is not empty, pointers are checked, and alpha and
     * beta are rounded. `run` may be NULL. */
    tg_status (*multiply_host)(tg_context *context, const tgi_machine *machine,
                               const tg_problem *problem, int64_t memory_bytes, void *stream,
                               tg_panel_run *run);
} tgi_backend;

extern const tgi_backend tgi_backend_cpu;
extern const tgi_backend tgi_backend_cuda, tgi_backend_sim; /* absent from some builds */
/* The CUDA backend of a chip that is not installed only proposes. It has no other function. */
extern const tgi_backend tgi_backend_chip;

/* Returns the backend of a device by name, "cpu", "cuda" or "cuda:1". *ordinal receives 1 for
 * "cuda:1", -1 for the others. Returns NULL with the detail and *status set if this build has none.
 * `origin` says in the detail where the name is from. */
const tgi_backend *tgi_backend_find(const char *device, const char *origin, int *ordinal,
                                    tg_status *status);

#endif
