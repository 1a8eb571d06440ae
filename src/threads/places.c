/*
 * Finds the places of an OpenMP runtime that has bound the calling thread. With OMP_PROC_BIND
 * libgomp binds the program's first thread to one place when it is loaded, so that the affinity
 * mask no longer tells which processors the program was given. The runtime's places still do.
 */
#include <dlfcn.h>
#include <sched.h>

#include "threads/threads.h"

/* Functions of OpenMP 4.5 that only read what the runtime knows. */
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

int tgi_threads_find_places(cpu_set_t *places)
{
    openmp omp;
    if (bind_openmp(RTLD_DEFAULT, &omp))
        return read_places(&omp, places);
    /* A library that was opened with RTLD_LOCAL brings a runtime that RTLD_DEFAULT does not see. */
    void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const int is_bound = library && bind_openmp(library, &omp) && read_places(&omp, places);
    if (library)
        dlclose(library);
    return is_bound;
}
