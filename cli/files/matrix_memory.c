#include "files/matrix_memory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the bytes that can be filled without swapping, or -1 if Linux does not report them. */
static int64_t read_available(void)
{
    FILE *stream = fopen("/proc/meminfo", "re");
    char line[128];
    long long kib = -1;
    while (stream && fgets(line, sizeof line, stream))
        if (sscanf(line, "MemAvailable: %lld kB", &kib) == 1)
            break;
    if (stream)
        fclose(stream);
    return kib >= 0 && kib <= INT64_MAX / 1024 ? kib * 1024 : -1;
}

/* Returns the number that a file begins with, or behind a word at the start of a line; -1 if there
 * is none, as in "max". */
static int64_t read_number(const char *folder, const char *name, const char *word)
{
    char path[PATH_MAX], line[256];
    long long number = -1;
    const size_t word_length = strlen(word);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    FILE *stream = fopen(path, "re");
    while (stream && number < 0 && fgets(line, sizeof line, stream))
        if (strncmp(line, word, word_length) == 0 &&
            sscanf(line + word_length, "%lld", &number) < 1)
            number = -1;
    if (stream)
        fclose(stream);
    return number;
}

/* Returns what the limit of one group leaves. */
static int64_t read_group(const char *folder)
{
    const int64_t limit = read_number(folder, "memory.max", "");
    const int64_t used = read_number(folder, "memory.current", "");
    const int64_t files = read_number(folder, "memory.stat", "file ");
    if (limit < 0 || used < 0)
        return INT64_MAX;
    const int64_t left = limit - used + (files > 0 ? files : 0);
    return left > 0 ? left : 0;
}

int64_t cli_find_group_memory(const char *root, const char *membership)
{
    char folder[PATH_MAX];
    const char *own = strstr(membership, "0::/");
    const size_t root_length = strlen(root);
    int64_t least = INT64_MAX;
    if (!own || snprintf(folder, sizeof folder, "%s%.*s", root, (int)strcspn(own + 3, "\n"),
                         own + 3) >= (int)sizeof folder)
        return least;
    for (;;) {
        const int64_t left = read_group(folder);
        char *slash = strrchr(folder + root_length, '/');
        least = left < least ? left : least;
        if (!slash)
            return least;
        *slash = '\0';
    }
}

static int64_t read_group_memory(void)
{
    char membership[PATH_MAX] = "";
    FILE *stream = fopen("/proc/self/cgroup", "re");
    if (stream) {
        membership[fread(membership, 1, sizeof membership - 1, stream)] = '\0';
        fclose(stream);
    }
    return cli_find_group_memory("/sys/fs/cgroup", membership);
}

cli_memory cli_read_memory(int64_t limit_bytes)
{
    cli_memory memory = {.left_bytes = limit_bytes ? limit_bytes : read_available()};
    if (memory.left_bytes < 0 &&
        (__builtin_mul_overflow((int64_t)sysconf(_SC_AVPHYS_PAGES), (int64_t)sysconf(_SC_PAGESIZE),
                                &memory.left_bytes) ||
         memory.left_bytes <= 0))
        memory.left_bytes = INT64_MAX;
    const int64_t of_group = limit_bytes ? INT64_MAX : read_group_memory();
    if (of_group < memory.left_bytes)
        memory.left_bytes = of_group;
    return memory;
}

int cli_reserve_memory(cli_memory *memory, int64_t bytes, const char *name, cli_file_error *error)
{
    if (bytes > memory->left_bytes)
        return cli_fail_file(error, CLI_EXIT_WRONG,
                             "out of memory: %s needs %lld bytes, %lld are available; pass smaller "
                             "matrices or a narrower --type, or use a machine with more memory",
                             name, (long long)bytes, (long long)memory->left_bytes);
    memory->left_bytes -= bytes;
    return CLI_EXIT_OK;
}
