/* SPDX-License-Identifier: MIT */
#include "alloc/wrapped_allocation.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_watching, failing_call, fails_rest;
static allocation_counts counts;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t bytes);
char *__real_realpath(const char *path, char *resolved);
ssize_t __real_getline(char **line, size_t *line_bytes, FILE *stream);
ssize_t __real___getdelim(char **line, size_t *line_bytes, int end, FILE *stream);
FILE *__real_fdopen(int file, const char *mode);
void __real_free(void *memory);
int __real_munmap(void *address, size_t bytes);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t bytes);
char *__wrap_realpath(const char *path, char *resolved);
ssize_t __wrap_getline(char **line, size_t *line_bytes, FILE *stream);
ssize_t __wrap___getdelim(char **line, size_t *line_bytes, int end, FILE *stream);
FILE *__wrap_fdopen(int file, const char *mode);
void __wrap_free(void *memory);
int __wrap_munmap(void *address, size_t bytes);

static void watch(int failing, int with_rest)
{
    pthread_mutex_lock(&lock);
    counts = (allocation_counts){0, 0, 0};
    failing_call = failing;
    fails_rest = with_rest;
    is_watching = 1;
    pthread_mutex_unlock(&lock);
}

void allocation_watch(int failing)
{
    watch(failing, 0);
}

void allocation_watch_rest(int failing)
{
    watch(failing, 1);
}

void allocation_stop_failing(void)
{
    pthread_mutex_lock(&lock);
    failing_call = 0;
    pthread_mutex_unlock(&lock);
}

allocation_counts allocation_get_counts(void)
{
    pthread_mutex_lock(&lock);
    allocation_counts copy = counts;
    pthread_mutex_unlock(&lock);
    return copy;
}

allocation_counts allocation_unwatch(void)
{
    pthread_mutex_lock(&lock);
    is_watching = 0;
    pthread_mutex_unlock(&lock);
    return allocation_get_counts();
}

/* Returns 1 if this allocation must fail. */
static int must_fail(void)
{
    pthread_mutex_lock(&lock);
    int fails = is_watching && ++counts.call_count >= failing_call && failing_call > 0 &&
                (fails_rest || counts.call_count == failing_call);
    counts.failed_count += fails;
    pthread_mutex_unlock(&lock);
    if (fails)
        errno = ENOMEM;
    return fails;
}

static void count_live(int change)
{
    pthread_mutex_lock(&lock);
    if (is_watching)
        counts.live_count += change;
    pthread_mutex_unlock(&lock);
}

void *__wrap_malloc(size_t bytes)
{
    void *memory = must_fail() ? NULL : __real_malloc(bytes);
    count_live(memory != NULL);
    return memory;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    void *memory = must_fail() ? NULL : __real_calloc(count, bytes);
    count_live(memory != NULL);
    return memory;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    int was_null = memory == NULL;
    void *grown = must_fail() ? NULL : __real_realloc(memory, bytes);
    count_live(was_null && grown != NULL);
    return grown;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = must_fail() ? NULL : __real_aligned_alloc(alignment, bytes);
    count_live(memory != NULL);
    return memory;
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    int error = must_fail() ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
    count_live(error == 0);
    return error;
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    void *memory =
        must_fail() ? MAP_FAILED : __real_mmap(address, bytes, protection, flags, file, offset);
    count_live(memory != MAP_FAILED);
    return memory;
}

char *__wrap_strdup(const char *text)
{
    char *copy = must_fail() ? NULL : __real_strdup(text);
    count_live(copy != NULL);
    return copy;
}

char *__wrap_strndup(const char *text, size_t bytes)
{
    char *copy = must_fail() ? NULL : __real_strndup(text, bytes);
    count_live(copy != NULL);
    return copy;
}

char *__wrap_realpath(const char *path, char *resolved)
{
    char *found = must_fail() ? NULL : __real_realpath(path, resolved);
    count_live(found != NULL && !resolved);
    return found;
}

ssize_t __wrap_getline(char **line, size_t *line_bytes, FILE *stream)
{
    int was_null = *line == NULL;
    ssize_t length = must_fail() ? -1 : __real_getline(line, line_bytes, stream);
    count_live(was_null && *line != NULL);
    return length;
}

/* glibc's header makes this of getline in an optimized build. */
ssize_t __wrap___getdelim(char **line, size_t *line_bytes, int end, FILE *stream)
{
    int was_null = *line == NULL;
    ssize_t length = must_fail() ? -1 : __real___getdelim(line, line_bytes, end, stream);
    count_live(was_null && *line != NULL);
    return length;
}

FILE *__wrap_fdopen(int file, const char *mode)
{
    return must_fail() ? NULL : __real_fdopen(file, mode); /* fclose frees it */
}

void __wrap_free(void *memory)
{
    count_live(memory ? -1 : 0);
    __real_free(memory);
}

int __wrap_munmap(void *address, size_t bytes)
{
    count_live(-1);
    return __real_munmap(address, bytes);
}
