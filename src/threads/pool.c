/*
 * The pool consists of worker threads that wait for a job, and the calling thread, which takes part
 * in the job.
 *
 * A job is split into equal ranges of tasks, its portions. Each thread has one portion, the same in
 * every call, so that it finds operands in its caches. A thread that has finished its portion takes
 * tasks that others have left. The caller therefore never waits for a worker that the system has
 * not yet run.
 *
 * The caller opens a job by one store to `word`, which all workers read, and closes it by another
 * store. A worker counts itself in `active_count` before it reads the word again. After closing the
 * job, the caller waits for that count to be 0. The job therefore stays valid while a worker is in
 * it.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/float_control.h"
#include "threads/threads.h"

/* A waiting thread polls this many times, with a pause instruction between, before it sleeps. That
 * takes 50 to 200 microseconds, about as long as waking a thread. */
#define SPIN_COUNT 4000
/* The smallest stack of a worker. The program's thread-local data takes part of each thread's
 * stack. */
#define STACK_BYTES ((size_t)256 << 10)
#define RETRY_JOBS 1000 /* jobs between two attempts to make workers that are wanted */

/* The word of a job is its number and, in the low bits, its thread count, 0 once it is closed. */
#define COUNT_BITS 11
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)
#define WORD_STOP UINT64_MAX /* tells workers to end */

/* A thread of the pool, one cache line. The caller of the job under way is member 0. */
typedef struct member {
    _Alignas(64) _Atomic int64_t next; /* first task of the portion that nobody has taken */
    int64_t end;
    atomic_int is_asleep; /* the thread that sets it from 1 to 0 posts the semaphore */
    int avoided_cpu;      /* the worker never wakes there; -1: none */
    sem_t wakeup;
    pthread_t thread;
} member;

static member members[TGI_THREAD_COUNT_MAX];

static struct {
    /* Waiting workers read only this cache line. */
    _Alignas(64) _Atomic uint64_t word;
    tgi_threads_task *task;
    void *state;
    uint64_t float_control; /* the caller's: all threads of a job round as it does */
    atomic_int spin_count;  /* 0 if the job has more threads than there are processors */
    /* Threads that run tasks write this cache line. */
    _Alignas(64) atomic_int active_count;
    /* Callers write this cache line. Members that are not atomic belong to the caller that set
     * is_taken. */
    _Alignas(64) atomic_int caller_count; /* in tgi_threads_run, with several tasks */
    atomic_int is_taken;
    int worker_count, processor_count, has_fork_handler;
    int64_t job_count, retry_job; /* jobs so far; the first that may try to make workers again */
    cpu_set_t places; /* for workers, if libgomp had bound the thread that made them; else empty */
} pool;

static void pause_shortly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns 1 if the word calls a worker: to a job that it has not seen, or to end. */
static int is_called(const member *self, uint64_t seen)
{
    const uint64_t word = atomic_load(&pool.word);
    return word != seen && (uint64_t)(self - members) < (word & COUNT_MASK);
}

/* Returns 1 if no worker is in the job that the caller has closed. */
static int is_idle(const member *self, uint64_t seen)
{
    (void)self, (void)seen;
    return atomic_load(&pool.active_count) == 0;
}

/* Wakes a thread that sleeps or is about to. */
static void wake(member *m)
{
    if (atomic_load(&m->is_asleep) && atomic_exchange(&m->is_asleep, 0))
        sem_post(&m->wakeup);
}

/* Spins, then sleeps until the condition holds. The thread that makes it hold calls `wake`
 * afterwards. */
static void wait_until(int (*holds)(const member *, uint64_t), member *self, uint64_t seen)
{
    for (int i = atomic_load_explicit(&pool.spin_count, memory_order_relaxed); i > 0; i--) {
        if (holds(self, seen))
            return;
        pause_shortly();
    }
    while (!holds(self, seen)) {
        atomic_store(&self->is_asleep, 1);
        if (!holds(self, seen) || !atomic_exchange(&self->is_asleep, 0))
            while (sem_wait(&self->wakeup))
                continue; /* a tracer interrupted it */
    }
}

/* Runs tasks of the open job: the thread's own portion, then tasks that others have left. */
static void take_tasks(int thread, int thread_count)
{
    for (int offset = 0; offset < thread_count; offset++) {
        member *portion = &members[(thread + offset) % thread_count];
        while (atomic_load_explicit(&portion->next, memory_order_relaxed) < portion->end) {
            const int64_t index =
                atomic_fetch_add_explicit(&portion->next, 1, memory_order_relaxed);
            if (index < portion->end)
                pool.task(pool.state, index, thread);
        }
    }
}

static void *run_worker(void *argument)
{
    member *self = argument;
    char name[16];
    uint64_t seen = 0;
    snprintf(name, sizeof name, "tilegemm-%d", (int)(self - members));
    pthread_setname_np(pthread_self(), name);
    while (seen != WORD_STOP) {
        wait_until(is_called, self, seen);
        atomic_fetch_add(&pool.active_count, 1);
        if (is_called(self, seen)) {
            seen = atomic_load(&pool.word); /* a job that was closed meanwhile has 0 threads */
            tgi_float_control_set(pool.float_control);
            if (seen != WORD_STOP)
                take_tasks((int)(self - members), (int)(seen & COUNT_MASK));
        }
        if (atomic_fetch_sub(&pool.active_count, 1) == 1)
            wake(&members[0]);
    }
    return NULL;
}

/* Forgets the parent's workers, which a child of fork() does not have. */
static void reset_in_child(void)
{
    memset(&pool, 0, sizeof pool);
    pool.has_fork_handler = 1;
}

static void open_member(member *m)
{
    atomic_init(&m->is_asleep, 0);
    m->avoided_cpu = -1;
    sem_init(&m->wakeup, 0, 0);
}

/* Makes workers up to `wanted`, at most one for each other processor. The caller has the pool. */
static void start_workers(int wanted)
{
    static const int faults[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    pthread_attr_t attributes;
    sigset_t others, before;
    size_t default_bytes;
    if (!pool.has_fork_handler && pthread_atfork(NULL, NULL, reset_in_child))
        return;
    pool.has_fork_handler = 1;
    if (pthread_attr_init(&attributes))
        return;
    if (pool.worker_count == 0)
        open_member(&members[0]);
    if (pthread_attr_getstacksize(&attributes, &default_bytes) || default_bytes < STACK_BYTES)
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* A worker inherits the signal mask. Signals are for the threads of the program. A worker's own
     * fault must still reach the program's handler, because a blocked fault ends the process
     * without it. */
    sigfillset(&others);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&others, faults[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    pool.processor_count = tgi_threads_count_processors();
    if (tgi_threads_find_places(&pool.places))
        pthread_attr_setaffinity_np(&attributes, sizeof pool.places, &pool.places);
    else
        CPU_ZERO(&pool.places);
    while (pool.worker_count < wanted && pool.worker_count + 1 < pool.processor_count) {
        member *worker = &members[pool.worker_count + 1];
        open_member(worker);
        if (pthread_create(&worker->thread, &attributes, run_worker, worker))
            break;
        pool.worker_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    pool.retry_job = pool.job_count + (pool.worker_count < wanted ? RETRY_JOBS : 0);
}

/* Takes the pool for a job. Returns its thread count, or 1 if there is no pool to take. */
static int take_pool(int wanted)
{
    if (wanted < 2 || atomic_exchange_explicit(&pool.is_taken, 1, memory_order_acquire))
        return 1;
    pool.job_count++;
    if (pool.worker_count < wanted - 1 && pool.job_count >= pool.retry_job)
        start_workers(wanted - 1);
    if (pool.worker_count > 0)
        return wanted <= pool.worker_count ? wanted : pool.worker_count + 1;
    atomic_store_explicit(&pool.is_taken, 0, memory_order_release);
    return 1;
}

/* Keeps a sleeping worker off the caller's processor. In a virtual machine idle processors look
 * busy, so that Linux may wake a worker on the caller's processor, where it waits for the
 * caller. */
static void move_away(member *worker, int cpu)
{
    cpu_set_t allowed = pool.places;
    worker->avoided_cpu = cpu;
    if (CPU_COUNT(&allowed) == 0 && sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    CPU_CLR((size_t)cpu, &allowed);
    if (CPU_COUNT(&allowed) > 0)
        pthread_setaffinity_np(worker->thread, sizeof allowed, &allowed);
}

static void wake_workers(int thread_count)
{
    const int cpu = sched_getcpu();
    for (int i = 1; i < thread_count; i++) {
        if (atomic_load(&members[i].is_asleep) && members[i].avoided_cpu != cpu)
            move_away(&members[i], cpu);
        wake(&members[i]);
    }
}

/* Runs a job in the pool, which the caller has taken, and gives the pool back. */
static void run_job(tgi_threads_task *task, void *state, int64_t count, int thread_count)
{
    const uint64_t number = (uint64_t)pool.job_count << COUNT_BITS;
    pool.task = task;
    pool.state = state;
    pool.float_control = tgi_float_control_read();
    atomic_store_explicit(&pool.spin_count, thread_count > pool.processor_count ? 0 : SPIN_COUNT,
                          memory_order_relaxed);
    for (int64_t i = 0, first = 0; i < thread_count; i++, first = members[i - 1].end) {
        atomic_store_explicit(&members[i].next, first, memory_order_relaxed);
        members[i].end = first + count / thread_count + (i < count % thread_count);
    }
    atomic_store(&pool.word, number | (uint64_t)thread_count);
    wake_workers(thread_count);
    take_tasks(0, thread_count);
    atomic_store(&pool.word, number);
    wait_until(is_idle, &members[0], 0);
    atomic_store_explicit(&pool.is_taken, 0, memory_order_release);
}

void tgi_threads_run(tgi_threads_task *task, void *state, int64_t count, int thread_count)
{
    thread_count = count < thread_count ? (int)count : thread_count;
    int taken_count = 1, cancel_state = 0;
    if (thread_count > 1) {
        /* A cancellation would unwind the caller's stack, which workers use. */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
        /* Every other caller occupies a processor, with or without the pool. */
        const int others = atomic_fetch_add(&pool.caller_count, 1);
        taken_count = take_pool(thread_count - others);
    }
    if (taken_count > 1)
        run_job(task, state, count, taken_count);
    for (int64_t i = 0; i < count && taken_count == 1; i++)
        task(state, i, 0);
    if (thread_count > 1) {
        atomic_fetch_sub(&pool.caller_count, 1);
        pthread_setcancelstate(cancel_state, NULL);
    }
}

/* Ends the workers when the program ends or a library that holds this code is unloaded. A call in
 * another thread goes on. The pool stays taken, so that later calls run on one thread. */
__attribute__((destructor)) static void stop_workers(void)
{
    if (atomic_exchange(&pool.is_taken, 1))
        return;
    atomic_store(&pool.word, WORD_STOP);
    for (int i = 1; i <= pool.worker_count; i++)
        wake(&members[i]);
    for (int i = 1; i <= pool.worker_count; i++)
        pthread_join(members[i].thread, NULL);
}
