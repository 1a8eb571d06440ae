#include "files/matrix_memory.h"

#include <stdio.h>
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

cli_memory cli_read_memory(void)
{
    cli_memory memory = {.left_bytes = read_available()};
    if (memory.left_bytes < 0 &&
        (__builtin_mul_overflow((int64_t)sysconf(_SC_AVPHYS_PAGES), (int64_t)sysconf(_SC_PAGESIZE),
                                &memory.left_bytes) ||
         memory.left_bytes <= 0))
        memory.left_bytes = INT64_MAX;
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
