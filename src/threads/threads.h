/* Threads of the processor: a pool that the whole process shares, and how large it should be. */
#ifndef TGI_THREADS_H
#define TGI_THREADS_H

#include <stdint.h>

#define TGI_THREAD_COUNT_MAX 1024 /* most threads that a user may ask for */

/* Computes task `index` of `state`. `thread` numbers the threads of one run, 0 .. thread_count - 1,
 * and no two of them run at once under one number. */
typedef void tgi_threads_task(void *state, int64_t index, int thread);

/* Runs the tasks 0 .. count - 1, each once, on at most `thread_count` threads, of which the calling
 * thread is one, and returns when all are done. Any thread may call it at any time. The calling
 * thread runs all tasks itself while another thread has the pool, inside a task, and if no thread
 * can be made. Tasks must not depend on each other, because nothing orders them. */
void tgi_threads_run(tgi_threads_task *task, void *state, int64_t count, int thread_count);

/* Returns the number of threads for a user who names none: OMP_NUM_THREADS if it begins with a
 * positive number, else the processors. It is 1 .. TGI_THREAD_COUNT_MAX. */
int tgi_threads_choose_count(void);

/* Returns the number of processors that the calling thread may use, at least 1: those of its
 * affinity mask, and no more than the CPU quota of the control groups. */
int tgi_threads_count_processors(void);

/* Returns the smallest CPU quota of the process's control group and of the groups around it, in
 * processors, rounded up, or INT_MAX if there is none. `root` is where control groups are mounted,
 * and `membership` is the text of /proc/self/cgroup. */
int tgi_threads_find_quota(const char *root, const char *membership);

#endif
