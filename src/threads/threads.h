/* Declares the CPU threads: one pool for the whole process, and the number of its threads. */
#ifndef TGI_THREADS_H
#define TGI_THREADS_H

#include <sched.h>
#include <stdint.h>

#define TGI_THREAD_COUNT_MAX 1024 /* most threads that a user may ask for */

/* Computes task `index` of `state`. `thread` is the number of the thread in this run, 0 ..
 * thread_count - 1. No two threads of a run have the same number at once. */
typedef void tgi_threads_task(void *state, int64_t index, int thread);

/* Runs the tasks 0 .. count - 1, each once, on at most `thread_count` threads, including the
 * calling thread. Returns when all tasks are done. Any thread may call it at any time. The calling
 * thread runs all tasks itself if another thread has the pool, inside a task, or if no thread can
 * be made. Tasks must not depend on each other, because nothing orders them. */
void tgi_threads_run(tgi_threads_task *task, void *state, int64_t count, int thread_count);

/* Returns the default number of threads, 1 .. TGI_THREAD_COUNT_MAX: OMP_NUM_THREADS if it begins
 * with a positive number, else the number of processors. */
int tgi_threads_choose_count(void);

/* Returns the number of processors that the calling thread may use, at least 1: the processors in
 * its affinity mask, or those of all places if libgomp has bound it to one, limited by the CPU
 * quota of the control groups. */
int tgi_threads_count_processors(void);

/* Sets *places to the processors of all places of the process's libgomp, and returns 1, if libgomp
 * has bound the calling thread to one of them, outside parallel regions. Else, and in a child of a
 * process that has called this function, returns 0. */
int tgi_threads_find_places(cpu_set_t *places);

/* Returns the smallest CPU quota of the process's control group and its parent groups, in
 * processors, rounded up; INT_MAX if there is no quota. `root` is the mount point of control
 * groups, and `membership` is the text of /proc/self/cgroup. */
int tgi_threads_find_quota(const char *root, const char *membership);

#endif
