/*
 * Finds the places of a libgomp that has bound the calling thread. With OMP_PROC_BIND libgomp binds
 * the program's first thread to one place when it is loaded, so that the affinity mask no longer
 * tells which processors the program was given. The places still do. Other OpenMP runtimes are not
 * asked: they bind no thread when they are loaded, and a question would start them, which ends a
 * process where another copy of the same runtime is running.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "threads/threads.h"

/* Functions of OpenMP 4.5, which in libgomp only read what it knows. */
typedef struct openmp {
    int (*get_proc_bind)(void), (*in_parallel)(void), (*get_num_places)(void);
    int (*get_place_num_procs)(int place);
    void (*get_place_proc_ids)(int place, int *ids);
} openmp;

/* Returns 1 if `library` has the functions. */
static int bind_openmp(void *library, openmp *omp)
{
    *(void **)&omp->get_proc_bind = dlsym(library, "omp_get_proc_bind");
    *(void **)&omp->in_parallel = dlsym(library, "omp_in_parallel");
    *(void **)&omp->get_num_places = dlsym(library, "omp_get_num_places");
    *(void **)&omp->get_place_num_procs = dlsym(library, "omp_get_place_num_procs");
    *(void **)&omp->get_place_proc_ids = dlsym(library, "omp_get_place_proc_ids");
    return omp->get_proc_bind && omp->in_parallel && omp->get_num_places &&
           omp->get_place_num_procs && omp->get_place_proc_ids;
}

/* Sets *place to the processors of a place. */
static void read_place(const openmp *omp, int index, cpu_set_t *place)
{
    int ids[CPU_SETSIZE];
    const int count = omp->get_place_num_procs(index);
    CPU_ZERO(place);
    if (count < 1 || count > CPU_SETSIZE)
        return;
    omp->get_place_proc_ids(index, ids);
    for (int i = 0; i < count; i++)
        CPU_SET((size_t)ids[i], place); /* ignores what a cpu_set_t has no room for */
}

/* Sets *places to the processors of all places. Returns 1 if one of them is the thread's mask. A
 * thread of a team shares the places with the others, and keeps its own. */
static int read_places(const openmp *omp, cpu_set_t *places)
{
    cpu_set_t own, place;
    int is_bound = 0;
    CPU_ZERO(places);
    if (!omp->get_proc_bind() || omp->in_parallel() || sched_getaffinity(0, sizeof own, &own))
        return 0;
    for (int i = 0; i < omp->get_num_places(); i++) {
        read_place(omp, i, &place);
        CPU_OR(places, places, &place);
        is_bound |= CPU_EQUAL(&place, &own);
    }
    return is_bound;
}

/* Returns 1 in the first process that asks, and 0 in its children. The loader's lists may be half
 * changed in a child of fork(), if another thread of the parent was asking. */
static int may_ask(void)
{
    static atomic_int asking_process;
    int before = 0;
    const int process = getpid();
    return atomic_compare_exchange_strong(&asking_process, &before, process) || before == process;
}

int tgi_threads_find_places(cpu_set_t *places)
{
    openmp omp;
    if (!may_ask())
        return 0;
    void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD); /* if the process has it */
    const int is_bound = library && bind_openmp(library, &omp) && read_places(&omp, places);
    if (library)
        dlclose(library);
    return is_bound;
}
