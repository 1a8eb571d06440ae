/*
 * Writes the output under a temporary name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TEMP_TRY_COUNT 16

static const int caught_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGBUS};
#define CAUGHT_COUNT ((int)(sizeof caught_signals / sizeof caught_signals[0]))

/* The signal handler removes the file of this name. The name is set before the file exists, and the
 * flag is cleared before the name goes, so that no moment leaves a file behind. */
static char armed_path[PATH_MAX];
static volatile sig_atomic_t is_armed;
static struct sigaction previous_actions[CAUGHT_COUNT], previous_size_action;

static void remove_temp_and_end(int number)
{
    static const char text[] = "tilegemm: the memory of a mapped file is gone (SIGBUS): an input "
                               "was shortened, or its disk failed, while it was read\n";
    if (number == SIGBUS && write(STDERR_FILENO, text, sizeof text - 1) < 0)
        number = SIGBUS; /* stderr is closed: nobody can be told */
    if (is_armed)
        unlink(armed_path);
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = remove_temp_and_end};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    sigemptyset(&ignore.sa_mask);
    for (int i = 0; i < CAUGHT_COUNT; i++) {
        sigaction(caught_signals[i], NULL, &previous_actions[i]);
        if (previous_actions[i].sa_handler != SIG_IGN) /* nohup stays nohup */
            sigaction(caught_signals[i], &action, NULL);
    }
    /* Without the signal, a file above the limit of `ulimit -f` is an error like any other. */
    sigaction(SIGXFSZ, &ignore, &previous_size_action);
}

static void release_signals(void)
{
    is_armed = 0;
    for (int i = 0; i < CAUGHT_COUNT; i++)
        sigaction(caught_signals[i], &previous_actions[i], NULL);
    sigaction(SIGXFSZ, &previous_size_action, NULL);
}

int cli_fail_output(const cli_output *output, int number, cli_file_error *error)
{
    return cli_fail_file(error, cli_get_file_exit(number),
                         "%s: cannot write it: %s; what was there is unchanged", output->path,
                         strerror(number));
}

/* Follows symbolic links, so that the file behind the link is replaced, not the link. */
static int find_target(cli_output *output, cli_file_error *error)
{
    struct stat info;
    if (stat(output->path, &info) == 0) {
        if (!S_ISREG(info.st_mode))
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%s: not a regular file; the output replaces a regular file or "
                                 "makes a new one",
                                 output->path);
        /* A rename would replace even a write-protected file. */
        if (access(output->path, W_OK) != 0)
            return cli_fail_output(output, errno, error);
        output->target = realpath(output->path, NULL);
    } else if (errno != ENOENT) {
        return cli_fail_output(output, errno, error);
    } else {
        output->target = strdup(output->path);
    }
    return output->target ? CLI_EXIT_OK : cli_fail_output(output, errno, error);
}

static int create_temp(cli_output *output, cli_file_error *error)
{
    size_t temp_bytes = strlen(output->target) + 32;
    int fd = -1;
    if (temp_bytes > sizeof armed_path)
        return cli_fail_output(output, ENAMETOOLONG, error);
    output->temp = malloc(temp_bytes);
    if (!output->temp)
        return cli_fail_output(output, ENOMEM, error);
    for (int i = 0; fd < 0 && i < TEMP_TRY_COUNT; i++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) < 0)
            random = (uint64_t)getpid() * TEMP_TRY_COUNT + (uint64_t)i;
        snprintf(output->temp, temp_bytes, "%s.tmp-%016llx", output->target,
                 (unsigned long long)random);
        memcpy(armed_path, output->temp, strlen(output->temp) + 1);
        is_armed = 1;
        fd = open(output->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0) {
            is_armed = 0; /* the name may be another's file */
            if (errno != EEXIST)
                break;
        }
    }
    output->stream = fd < 0 ? NULL : fdopen(fd, "w+");
    if (output->stream)
        return CLI_EXIT_OK;
    int number = errno;
    if (fd >= 0) {
        unlink(output->temp);
        close(fd);
    }
    return cli_fail_output(output, number, error);
}

int cli_open_output(const char *path, cli_output *output, cli_file_error *error)
{
    *output = (cli_output){.path = path};
    int code = find_target(output, error);
    if (code == CLI_EXIT_OK) {
        catch_signals();
        code = create_temp(output, error);
        if (code != CLI_EXIT_OK)
            release_signals();
    }
    if (code != CLI_EXIT_OK) {
        free(output->target);
        free(output->temp);
        *output = (cli_output){.path = path};
    }
    return code;
}

int cli_map_output(cli_output *output, int64_t bytes, cli_file_error *error)
{
    struct statvfs disk;
    int fd = fileno(output->stream);
    /* Free space is asked for first: on a file system in memory, reserving too much takes the
     * memory of other processes. */
    if (fstatvfs(fd, &disk) == 0 && (double)disk.f_bavail * (double)disk.f_frsize < (double)bytes)
        return cli_fail_file(error, CLI_EXIT_WRONG,
                             "%s: no space left: it needs %lld bytes, its file system has %.0f "
                             "free; what was there is unchanged",
                             output->path, (long long)bytes,
                             (double)disk.f_bavail * (double)disk.f_frsize);
    int number = posix_fallocate(fd, 0, bytes);
    if (number != 0)
        return cli_fail_output(output, number, error);
    void *map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return cli_fail_output(output, errno, error);
    output->map = map;
    output->map_bytes = bytes;
    return CLI_EXIT_OK;
}

static void unmap(cli_output *output)
{
    if (output->map)
        munmap(output->map, (size_t)output->map_bytes);
    output->map = NULL;
}

int cli_commit_output(cli_output *output, cli_file_error *error)
{
    unmap(output);
    /* The name must not reach the disk before the contents. */
    int is_written = fflush(output->stream) == 0 && fsync(fileno(output->stream)) == 0;
    int number = errno;
    if (fclose(output->stream) != 0 && is_written) {
        is_written = 0;
        number = errno;
    }
    output->stream = NULL;
    if (is_written && rename(output->temp, output->target) != 0) {
        is_written = 0;
        number = errno;
    }
    if (is_written)
        is_armed = 0;
    int code = is_written ? CLI_EXIT_OK : cli_fail_output(output, number, error);
    cli_discard_output(output);
    return code;
}

void cli_discard_output(cli_output *output)
{
    if (!output->temp)
        return;
    unmap(output);
    if (output->stream)
        fclose(output->stream);
    if (is_armed)
        unlink(output->temp);
    release_signals();
    free(output->target);
    free(output->temp);
    *output = (cli_output){.path = output->path};
}
