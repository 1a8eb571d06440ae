/* The run in progress: threads, their memory's history, requests of the warp at hand. */
#ifndef TGI_SIM_RUN_H
#define TGI_SIM_RUN_H

#include "sim/sim.h"

/* Of a thread. No multiple of a page, so that the stacks' tops do not meet in a few lines of the
 * cache. */
#define TGI_SIM_STACK_BYTES (24 * 1024 + 320)

typedef enum thread_state { THREAD_RUNS, THREAD_WAITS, THREAD_ENDED } thread_state;

/* A copy under way from global to shared memory. */
typedef struct async_copy {
    uintptr_t to;
    int size_bytes, group, site;
    unsigned char bytes[16];
} async_copy;

typedef struct sim_thread {
    tgi_fiber fiber;
    thread_state state;
    int index;        /* in the block */
    int wait_site;    /* of the barrier it waits at */
    int access_count; /* since it was last gone on with */
    int depth;        /* of the calls below; those past TGI_SIM_FRAMES are not kept */
    int site_depth;   /* of the calls around the site that was last resolved */
    const void *frames[TGI_SIM_FRAMES]; /* return addresses of the calls it is in */
    uint64_t paths[TGI_SIM_FRAMES + 1]; /* each stands for the calls that led there */
    uint64_t own_place; /* of the variable that an access moves to or from, on the stack; 0: none */
    async_copy *copies;
    int copy_count, copy_capacity, group; /* group: number of the one that is open */
} sim_thread;

/* History of a word of shared memory. Intervals, between two barriers of a block, are numbered
 * through the run. */
typedef struct word_history {
    uint32_t block; /* serial of the block that last wrote it */
    uint32_t write_interval, read_interval;
    int16_t writer, reader, other_reader; /* other_reader: -1 where there is one reader */
    int16_t is_under_way;                 /* written by a copy that nobody has waited for */
    int32_t write_site, read_site;
} word_history;

/* Last write of an element of D. */
typedef struct elem_history {
    uint32_t block; /* serial; 0: not written */
    uint32_t interval;
    int32_t site;
    int32_t thread;
} elem_history;

typedef enum access_kind {
    ACCESS_GLOBAL_READ,
    ACCESS_GLOBAL_WRITE,
    ACCESS_SHARED_READ,
    ACCESS_SHARED_WRITE,
    ACCESS_SHARED_COPY, /* the write of an asynchronous copy */
    ACCESS_KIND_COUNT
} access_kind;

typedef struct sim_requests sim_requests; /* requests.c */
typedef struct sim_l2 sim_l2;             /* l2.c */
typedef struct sim_tracer sim_tracer;     /* trace.c */

typedef struct sim_run {
    const tgi_sim_launch *launch;
    tgi_sim_record *record;
    sim_thread threads[TGI_SIM_BLOCK_THREADS];
    int thread_count;
    sim_thread *thread; /* the one that runs; NULL between them */
    tgi_fiber scheduler;
    int is_stopped; /* a finding that leaves no way to go on, or no memory, or cancelled */
    int is_out_of_memory;

    uintptr_t stacks;
    size_t stacks_bytes;
    tgi_sim_range a, b, d, shared, variable; /* variable: the one last used */
    uint32_t block_serial, interval;
    int64_t weight;                 /* of the block */
    word_history *words;            /* of all shared memory */
    elem_history *elems;            /* of D; NULL where only some blocks run */
    uint8_t *is_read_a, *is_read_b; /* one bit an element; NULL likewise */

    sim_requests *requests; /* NULL: do not count */
    sim_l2 *l2;             /* NULL: none */
    sim_tracer *tracer;     /* NULL: no trace */
} sim_run;

/* The run in progress, one in the process at a time. */
extern sim_run *tgi_sim_now;

/* Site of a call, or, where that stands in cuda_on_host.h, of the call that led there. */
int tgi_sim_resolve_site(sim_run *run, const void *return_address);

/* Leaves the running thread for good: the run stops. */
void tgi_sim_stop(sim_run *run);

/* memory.c: checks an access against bounds, alignment and history. */
void tgi_sim_check_global(sim_run *run, uintptr_t address, int size_bytes, int is_write, int site);
void tgi_sim_check_shared(sim_run *run, uintptr_t address, int size_bytes, access_kind kind,
                          int site);
void tgi_sim_finish_copy(sim_run *run, const async_copy *copy);
int tgi_sim_is_shared(const sim_run *run, uintptr_t address);

/* findings.c */
tgi_sim_finding *tgi_sim_find(sim_run *run, tg_finding_kind kind, int site);

/* requests.c: groups the accesses of a warp and counts them. */
sim_requests *tgi_sim_open_requests(void);
void tgi_sim_close_requests(sim_requests *requests);
void tgi_sim_add_access(sim_run *run, access_kind kind, uintptr_t address, int size_bytes,
                        int site);
/* Counts the requests of the warp that no lane can join any more; at the end of an interval all. */
void tgi_sim_count_requests(sim_run *run, const sim_thread *lanes, int lane_count, int is_end);

/* l2.c */
sim_l2 *tgi_sim_open_l2(int64_t size_bytes);
void tgi_sim_close_l2(sim_l2 *l2);
int tgi_sim_touch_sector(sim_l2 *l2, uintptr_t sector); /* 1 for a hit */

/* trace.c */
/* A, B, D or S, and the element there or the word of shared memory; as in tg_trace_access. */
char tgi_sim_find_element(const sim_run *run, uintptr_t address, int64_t *index);
sim_tracer *tgi_sim_open_tracer(void);
void tgi_sim_close_tracer(sim_tracer *tracer);
void tgi_sim_trace_access(sim_run *run, access_kind kind, uintptr_t address, int size_bytes,
                          int site);
void tgi_sim_trace_sum(sim_run *run, const void *sum, float value);
void tgi_sim_trace_phase(sim_run *run, int barrier_site);

#endif
