/* DISPATCH: the functions of one backend. A backend is one entry of the table in backend.c. */
#ifndef TGI_BACKEND_H
#define TGI_BACKEND_H

#include "core/problem.h"
#include "model/machine.h"

/* How a kernel cuts its problem, chosen at planning. What a field means is the family's affair. */
typedef struct tgi_blocking {
    int64_t mc, nc, kc; /* cache block, elements */
    int64_t panel_cols; /* of B: as wide as a tile or less, all alike */
    int64_t row_parts;  /* D is cut into row_parts x col_parts x k_parts tasks */
    int64_t col_parts, k_parts;
    int is_a_packed, is_b_packed;
    int is_along_rows; /* tiles follow D's rows rather than its columns */
    int is_d_far;      /* D does not fit beside the operands in L2 */
    int is_streamed;   /* D is written past the caches */
    int thread_count;
} tgi_blocking;

/* A kernel's answer to a problem: legal or not, how it would run and how long. */
typedef struct tgi_proposal {
    const tgi_kernel *kernel;
    int is_legal;
    char reason[160]; /* why not legal */
    tgi_blocking blocking;
    int64_t workspace_bytes;
    double predicted_s;
    /* Results must not depend on the thread count, so the order in which a sum is formed is
     * chosen as if there were one thread: serial_s is that prediction. Kernels of one order
     * agree bit by bit. */
    double serial_s;
    int sum_order;
} tgi_proposal;

/* Values of sum_order. */
enum { TGI_SUM_ALONG_K, TGI_SUM_BY_PAIRS, TGI_SUM_BY_LANES, TGI_SUM_WHOLE_K, TGI_SUM_ORDER_COUNT };

/* One execution, roles already canonical, pointers checked. */
typedef struct tgi_call {
    const tgi_problem *problem;
    const tgi_kernel *kernel; /* NULL where the problem is scale only */
    const tgi_blocking *blocking;
    const void *a, *b, *c;
    void *d;
    const void *bias;
    void *workspace; /* aligned to 64 bytes */
    void *stream;
} tgi_call;

typedef struct tgi_backend {
    const char *device;
    /* Fills in what the machine has; `machine->thread_count` and the ISA limit come after. */
    tg_status (*open)(tgi_machine *machine);
    /* Fills all but proposal->kernel, which is given. */
    void (*propose)(const tgi_machine *machine, const tgi_problem *problem, tgi_proposal *proposal);
    tg_status (*execute)(const tgi_call *call);
    /* FLOP/s of an FMA loop on `thread_count` threads. */
    tg_status (*measure_peak)(const tgi_machine *machine, tg_type type, int thread_count,
                              double *flop_per_s);
} tgi_backend;

extern const tgi_backend tgi_backend_cpu;

/* Backend of that name, or NULL. */
const tgi_backend *tgi_backend_find(const char *device);

#endif
