/* The state of the run in progress: its threads and the history of their memory. */
#ifndef TGI_SIM_RUN_STATE_H
#define TGI_SIM_RUN_STATE_H

#include "sim/sim.h"

/* Bytes of a thread's stack. They are no multiple of a page, which would map the tops of all stacks
 * to a few sets of the cache. */
#define TGI_SIM_STACK_BYTES (24 * 1024 + 320)

typedef enum thread_state {
    THREAD_RUNS,
    THREAD_MEETS, /* waits for its warp at an instruction that the lanes execute together */
    THREAD_WAITS, /* at a barrier of the block */
    THREAD_ENDED
} thread_state;

/* The most words that a lane passes to an instruction of its warp: the numbers of four words of A
 * and two of B, which are four each in FP8. */
enum { EXCHANGED_WORDS = 24 };

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
    int vote;         /* its last of __syncthreads_or */
    int wait_site;    /* site of the barrier, or of the warp's instruction, that it waits at */
    int access_count; /* since the thread was last resumed */
    int depth;        /* depth of the call stack; calls past TGI_SIM_FRAMES are not kept */
    int site_depth;   /* depth of the call stack at the site that was last resolved */
    const void *frames[TGI_SIM_FRAMES]; /* return addresses of the call stack */
    uint64_t paths[TGI_SIM_FRAMES + 1]; /* a hash of the call stack at each depth */
    uint64_t own_place; /* variable on the stack that an access moves to or from; 0: none */
    /* The words that it has brought to this instruction of its warp and to the one before, which
     * other lanes may have yet to read: meeting_count tells which is which. */
    uint32_t exchanged[2][EXCHANGED_WORDS];
    int meeting_count;
    uint32_t sync_count;    /* instructions of its warp that it has passed in this block */
    int reads_ahead;        /* 1: it may read what no thread has written */
    uint64_t rounded_place; /* variable whose number was last rounded, to be stored; 0: none */
    async_copy *copies;
    int copy_count, copy_capacity, group; /* group: number of the open copy group */
} sim_thread;

/* The last accesses of a word of shared memory. An interval lies between two barriers of a block;
 * intervals are numbered through the run. */
typedef struct word_history {
    uint32_t block; /* serial of the block that last wrote it */
    uint32_t write_interval, read_interval;
    uint32_t write_sync, read_sync;       /* sync_count of the threads then */
    int16_t writer, reader, other_reader; /* other_reader: -1 if there is one reader */
    int16_t is_under_way;                 /* a copy wrote it that no thread has waited for */
    int16_t written_bytes;                /* a bit for each byte written in write_interval */
    int32_t write_site, read_site;
} word_history;

/* The last write of an element of an output. */
typedef struct elem_history {
    uint32_t block; /* serial; 0: not written */
    uint32_t interval;
    uint32_t sync; /* sync_count of the thread then */
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

/* The site that a call at the end of a call stack counts for. The hash of a call stack stands for
 * the stack. */
typedef struct resolved_site {
    const void *return_address; /* NULL: free */
    uint64_t path;
    int site, depth; /* depth of the call stack at the site */
} resolved_site;

enum { RESOLVED_BITS = 10 };

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
    tgi_sim_operand operands[TGI_SIM_OPERANDS_MAX];
    int operand_count;
    tgi_sim_range shared, variable; /* variable: last used in shared memory */
    uint32_t block_serial, interval;
    int64_t weight;      /* blocks that this block stands for */
    word_history *words; /* history of all shared memory */
    /* The histories of operands, by element. An output has the first, an input the second; the
     * other is NULL, and both are if only some blocks run. */
    elem_history *elems[TGI_SIM_OPERANDS_MAX];
    uint8_t *is_read[TGI_SIM_OPERANDS_MAX]; /* one bit an element */

    sim_requests *requests; /* NULL: do not count */
    sim_l2 *l2;             /* NULL: none */
    sim_tracer *tracer;     /* NULL: no trace */
    /* The sites resolved last, by a hash; they hold for the process. */
    resolved_site resolved[1 << RESOLVED_BITS];
} sim_run;

/* The run in progress; a process has one at a time. */
extern sim_run *tgi_sim_now;

/* Returns the site of a call; the site of its caller if the call stands in cuda_on_host.h. */
int tgi_sim_resolve_site(sim_run *run, const void *return_address);

/* Adds product_count products to each of the sums, at the site of the call. */
void tgi_sim_count_products(const float *sums, int sum_count, int product_count,
                            const void *caller);

/* Checks and counts an access of the running thread to shared memory. */
void tgi_sim_access_shared(uintptr_t place, int size_bytes, int is_write, const void *caller);

/* Stops the run and leaves its running thread for good. */
void tgi_sim_stop(sim_run *run);

/* Stops the run for lack of memory. */
void tgi_sim_stop_without_memory(sim_run *run);

/* Returns the operand that holds the address; NULL if none does. */
const tgi_sim_operand *tgi_sim_find_operand(const sim_run *run, uintptr_t address);

/* Returns the name of what holds the address, as tg_trace_access has it: A, B, D, ..., or S for
 * shared memory; 0 for none. *index is the element, or the word of shared memory. */
char tgi_sim_find_element(const sim_run *run, uintptr_t address, int64_t *index);

/* Returns the bytes of the elements that an access at the address counts, 4 in shared memory. */
int tgi_sim_get_elem_bytes(const sim_run *run, uintptr_t address);

/* Check an access against bounds, alignment and history (sim_memory.c). */
void tgi_sim_check_global(sim_run *run, uintptr_t address, int size_bytes, int is_write, int site);
void tgi_sim_check_shared(sim_run *run, uintptr_t address, int size_bytes, access_kind kind,
                          int site);
void tgi_sim_finish_copy(sim_run *run, const async_copy *copy);
/* Returns 1 if the block has written all words of this shared memory. */
int tgi_sim_is_written(const sim_run *run, uintptr_t address, int size_bytes);
int tgi_sim_is_shared(const sim_run *run, uintptr_t address);

/* Returns the finding of this kind at the site, counted once more; NULL if there is no room for it
 * (findings.c). */
tgi_sim_finding *tgi_sim_find(sim_run *run, tg_finding_kind kind, int site);

#endif
