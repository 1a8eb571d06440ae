/* The state of the run in progress: its threads and the history of their memory. */
#ifndef TGI_SIM_RUN_STATE_H
#define TGI_SIM_RUN_STATE_H

#include "sim/sim.h"

/* Bytes of a thread's stack. They are no multiple of a page, which would map the tops of all stacks
 * to a few sets of the cache. */
#define TGI_SIM_STACK_BYTES (24 * 1024 + 320)

typedef enum thread_state { THREAD_RUNS, THREAD_WAITS, THREAD_ENDED } thread_state;

/* An asynchronous copy from global to shared memory that no thread has waited for. */
typedef struct async_copy {
    uintptr_t to;
    int size_bytes, group, site;
    unsigned char bytes[16];
} async_copy;

typedef struct sim_thread {
    tgi_fiber fiber;
    thread_state state;
    int index;        /* index in the block */
    int wait_site;    /* site of the barrier that the thread waits at */
    int access_count; /* since the thread was last resumed */
    int depth;        /* depth of the call stack; calls past TGI_SIM_FRAMES are not kept */
    int site_depth;   /* depth of the call stack at the site that was last resolved */
    const void *frames[TGI_SIM_FRAMES]; /* return addresses of the call stack */
    uint64_t paths[TGI_SIM_FRAMES + 1]; /* a hash of the call stack at each depth */
    uint64_t own_place; /* variable on the stack that an access moves to or from; 0: none */
    async_copy *copies;
    int copy_count, copy_capacity, group; /* group: number of the open copy group */
} sim_thread;

/* The last accesses of a word of shared memory. An interval lies between two barriers of a block;
 * intervals are numbered through the run. */
typedef struct word_history {
    uint32_t block; /* serial of the block that last wrote it */
    uint32_t write_interval, read_interval;
    int16_t writer, reader, other_reader; /* other_reader: -1 if there is one reader */
    int16_t is_under_way;                 /* a copy wrote it that no thread has waited for */
    int32_t write_site, read_site;
} word_history;

/* The last write of an element of D. */
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

typedef struct sim_requests sim_requests; /* requests.h */
typedef struct sim_l2 sim_l2;             /* l2.h */
typedef struct sim_tracer sim_tracer;     /* trace.h */

typedef struct sim_run {
    const tgi_sim_launch *launch;
    tgi_sim_record *record;
    int barrier_lines[TGI_SIM_BARRIERS]; /* lines of the barriers in the order of the kernel */
    sim_thread threads[TGI_SIM_BLOCK_THREADS];
    int thread_count;
    sim_thread *thread; /* the thread that runs; NULL between two threads */
    tgi_fiber scheduler;
    int is_stopped; /* a finding, lack of memory or the caller ended the run */
    int is_out_of_memory;

    uintptr_t stacks;
    size_t stacks_bytes;
    tgi_sim_range a, b, d, shared, variable; /* variable: last used in shared memory */
    uint32_t block_serial, interval;
    int64_t weight;                 /* blocks that this block stands for */
    word_history *words;            /* history of all shared memory */
    elem_history *elems;            /* history of D; NULL if only some blocks run */
    uint8_t *is_read_a, *is_read_b; /* one bit an element; NULL if elems is */

    sim_requests *requests; /* NULL: do not count */
    sim_l2 *l2;             /* NULL: none */
    sim_tracer *tracer;     /* NULL: no trace */
} sim_run;

/* The run in progress; a process has one at a time. */
extern sim_run *tgi_sim_now;

/* Returns the site of a call; the site of its caller if the call stands in cuda_on_host.h. */
int tgi_sim_resolve_site(sim_run *run, const void *return_address);

/* Stops the run and leaves its running thread for good. */
void tgi_sim_stop(sim_run *run);

/* Stops the run for lack of memory. */
void tgi_sim_stop_without_memory(sim_run *run);

/* Returns the operand that holds the address, as tg_trace_access names it: A, B, D, or S for shared
 * memory; 0 for none. *index is the element, or the word of shared memory. */
char tgi_sim_find_element(const sim_run *run, uintptr_t address, int64_t *index);

/* Check an access against bounds, alignment and history (sim_memory.c). */
void tgi_sim_check_global(sim_run *run, uintptr_t address, int size_bytes, int is_write, int site);
void tgi_sim_check_shared(sim_run *run, uintptr_t address, int size_bytes, access_kind kind,
                          int site);
void tgi_sim_finish_copy(sim_run *run, const async_copy *copy);
int tgi_sim_is_shared(const sim_run *run, uintptr_t address);

/* Returns the finding of this kind at the site, counted once more; NULL if there is no room for it
 * (findings.c). */
tgi_sim_finding *tgi_sim_find(sim_run *run, tg_finding_kind kind, int site);

#endif
