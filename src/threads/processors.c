/* Counts the processors that the process may use: affinity mask and control groups (version 2). */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/env.h"
#include "threads/threads.h"

#define PATH_BYTES 512

/* Reads the start of a file as a string. Returns 0 if there is no file. Allocates nothing, so that
 * a lack of memory does not change the count. */
static int read_text(const char *path, char *text, size_t text_bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, text_bytes - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Returns the quota of one group, INT_MAX if it has none. Its file has "QUOTA PERIOD", in
 * microseconds, or "max PERIOD". */
static int read_quota(const char *folder)
{
    char path[PATH_BYTES + 16], text[64], *rest;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_text(path, text, sizeof text))
        return INT_MAX;
    const long long quota = strtoll(text, &rest, 10), period = strtoll(rest, NULL, 10);
    if (quota <= 0 || period <= 0 || quota / period >= INT_MAX)
        return INT_MAX;
    return (int)(quota / period + (quota % period != 0));
}

int tgi_threads_find_quota(const char *root, const char *membership)
{
    char folder[PATH_BYTES];
    int smallest = INT_MAX;
    const char *line = strstr(membership, "0::"); /* only version 2 has no controller names */
    if (!line)
        return INT_MAX;
    line += strlen("0::");
    if (snprintf(folder, sizeof folder, "%s%.*s", root, (int)strcspn(line, "\n"), line) >=
        PATH_BYTES)
        return INT_MAX;
    for (;;) {
        const int quota = read_quota(folder);
        smallest = quota < smallest ? quota : smallest;
        char *last = strrchr(folder + strlen(root), '/');
        if (!last)
            return smallest;
        *last = '\0';
    }
}

int tgi_threads_count_processors(void)
{
    char membership[1024];
    cpu_set_t allowed;
    const int is_known =
        tgi_threads_find_places(&allowed) || sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    /* not known: more processors than cpu_set_t has */
    long count = is_known ? CPU_COUNT(&allowed) : sysconf(_SC_NPROCESSORS_ONLN);
    if (read_text("/proc/self/cgroup", membership, sizeof membership)) {
        const int quota = tgi_threads_find_quota("/sys/fs/cgroup", membership);
        count = quota < count ? quota : count;
    }
    return count < 1 ? 1 : count < TGI_THREAD_COUNT_MAX ? (int)count : TGI_THREAD_COUNT_MAX;
}

int tgi_threads_choose_count(void)
{
    const char *text = tgi_env_get(TGI_ENV_OMP_NUM_THREADS);
    const long count = text ? strtol(text, NULL, 10) : 0;
    if (count < 1)
        return tgi_threads_count_processors();
    return count < TGI_THREAD_COUNT_MAX ? (int)count : TGI_THREAD_COUNT_MAX;
}
