/*
 * This file implements the part of gcc's OpenMP run-time that the project calls, on plain pthreads,
 * for the thread sanitizer. libgomp is built without the sanitizer and synchronises by futex, so
 * that every access ordered by a region's start, end or barrier would be reported as a race. This
 * file uses pthread_create, pthread_join and pthread_barrier_wait, which the sanitizer knows, so
 * that a race that it reports is one. A call that is missing here fails when the libraries are
 * linked; add it.
 *
 * Names and signatures are those that gcc emits (GOMP_*) and that the OpenMP specification gives
 * (omp_*).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREAD_CAPACITY = 1024 };

typedef struct team {
    int thread_count;
    pthread_barrier_t barrier;
    void (*body)(void *data);
    void *data;
} team;

typedef struct member {
    team *team;
    int index; /* 0 .. thread_count - 1 */
} member;

static __thread member current; /* belongs to this thread; team is NULL outside a region */

void GOMP_parallel(void (*body)(void *data), void *data, unsigned thread_count, unsigned flags);
void GOMP_barrier(void);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
int omp_get_num_procs(void);
int omp_in_parallel(void);
double omp_get_wtime(void);

static void stop(const char *call, int error)
{
    fprintf(stderr, "openmp_on_pthreads: %s failed with error %d\n", call, error);
    abort();
}

static void *run_member(void *argument)
{
    current = *(member *)argument;
    current.team->body(current.team->data);
    return NULL;
}

void GOMP_parallel(void (*body)(void *data), void *data, unsigned thread_count, unsigned flags)
{
    (void)flags; /* binds threads to places, of which there are none here */
    const member outer = current;
    unsigned wanted = thread_count > 0 ? thread_count : (unsigned)omp_get_max_threads();
    if (outer.team || wanted < 1)
        wanted = 1; /* a region in a region has one thread */
    if (wanted > THREAD_CAPACITY)
        stop("GOMP_parallel with too many threads", (int)wanted);

    team mine = {.thread_count = (int)wanted, .body = body, .data = data};
    member members[THREAD_CAPACITY];
    pthread_t threads[THREAD_CAPACITY];
    int error = pthread_barrier_init(&mine.barrier, NULL, wanted);
    if (error)
        stop("pthread_barrier_init", error);
    for (int i = 1; i < mine.thread_count; i++) {
        members[i] = (member){&mine, i};
        error = pthread_create(&threads[i], NULL, run_member, &members[i]);
        if (error)
            stop("pthread_create", error);
    }
    current = (member){&mine, 0};
    body(data);
    current = outer;
    for (int i = 1; i < mine.thread_count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&mine.barrier);
}

void GOMP_barrier(void)
{
    if (current.team)
        pthread_barrier_wait(&current.team->barrier);
}

int omp_get_thread_num(void)
{
    return current.index;
}

int omp_get_num_threads(void)
{
    return current.team ? current.team->thread_count : 1;
}

/* Returns at least 4, so that races can show on a machine of one or two cores. */
int omp_get_max_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    int count = text ? atoi(text) : 0;
    if (count < 1)
        count = omp_get_num_procs() > 4 ? omp_get_num_procs() : 4;
    return count > THREAD_CAPACITY ? THREAD_CAPACITY : count;
}

int omp_get_num_procs(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int omp_in_parallel(void)
{
    return current.team != NULL && current.team->thread_count > 1;
}

double omp_get_wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
