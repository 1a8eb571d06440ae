/*
 * Finds the file that an output replaces, and what the new file keeps of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { link_count_max = 40 }; /* the limit of the system */

static const char access_list[] = "system.posix_acl_access";

int cli_fail_output(const cli_output *output, int number, cli_file_error *error)
{
    return cli_fail_file(error, cli_get_file_exit(number),
                         "%s: cannot write it: %s; what was there is unchanged", output->path,
                         strerror(number));
}

/* Writes the path that `path` leads to. Links are followed, and the last one may lead to a file
 * that does not exist. Returns 0 or an errno. */
static int follow_links(const char *path, char target[PATH_MAX])
{
    char link[PATH_MAX];
    size_t length = strlen(path), folder_length = 0;
    for (int i = 0; i < link_count_max; i++) {
        if (folder_length + length >= PATH_MAX)
            return ENAMETOOLONG;
        memcpy(target + folder_length, path, length);
        target[folder_length + length] = '\0';
        ssize_t link_length = readlink(target, link, sizeof link);
        if (link_length < 0)
            return 0;
        const char *slash = strrchr(target, '/');
        folder_length = link[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - target);
        length = (size_t)link_length;
        path = link;
    }
    return ELOOP;
}

static int refuse_kind(const cli_output *output, cli_file_error *error)
{
    return cli_fail_file(error, CLI_EXIT_USAGE,
                         "%s: not a regular file; the output replaces a regular file or makes a "
                         "new one",
                         output->path);
}

/* Finds the path that the output gets. *old describes the file that is there; its st_nlink is 0 if
 * none is. */
static int find_target(cli_output *output, struct stat *old, cli_file_error *error)
{
    struct stat behind;
    char target[PATH_MAX];
    const int is_there = stat(output->path, old) == 0;
    if (!is_there && errno != ENOENT)
        return cli_fail_output(output, errno, error);
    if (!is_there)
        old->st_nlink = 0;
    else if (!S_ISREG(old->st_mode))
        return refuse_kind(output, error);
    /* A rename would replace even a write-protected file. */
    else if (faccessat(AT_FDCWD, output->path, W_OK, AT_EACCESS) != 0)
        return cli_fail_output(output, errno, error);
    int number = follow_links(output->path, target);
    if (number)
        return cli_fail_output(output, number, error);
    /* Links below /proc lead to files that have no path any more. */
    if (is_there && (stat(target, &behind) != 0 || old->st_dev != behind.st_dev ||
                     old->st_ino != behind.st_ino))
        return refuse_kind(output, error);
    output->target = strdup(target);
    return output->target ? CLI_EXIT_OK : cli_fail_output(output, errno, error);
}

/* Gives the descriptor `fd` the owner, group, access list and permissions of the file at `target`.
 * Root alone can give a file away. If even the group cannot be kept, no group gets rights.
 * Returns 0 or an errno. */
static int keep_rights(int fd, const char *target, const struct stat *old)
{
    char list[4096];
    mode_t kept = S_IRWXU | S_IRWXG | S_IRWXO;
    const int has_group =
        fchown(fd, old->st_uid, old->st_gid) == 0 || fchown(fd, (uid_t)-1, old->st_gid) == 0;
    ssize_t list_bytes = getxattr(target, access_list, list, sizeof list);
    if (list_bytes < 0 && errno != ENODATA && errno != ENOTSUP)
        return errno;
    if (list_bytes >= 0 && has_group)
        return fsetxattr(fd, access_list, list, (size_t)list_bytes, 0) == 0 ? 0 : errno;
    fremovexattr(fd, access_list); /* the folder may give each of its files a list */
    if (!has_group)
        kept &= ~(mode_t)S_IRWXG;
    return fchmod(fd, old->st_mode & kept) == 0 ? 0 : errno;
}

/* Creates the temporary file. It is its owner's alone until it has the rights of the file that it
 * replaces. */
static int create_stream(cli_output *output, const struct stat *old, cli_file_error *error)
{
    const int is_replacing = old->st_nlink > 0;
    const mode_t of_owner = S_IRUSR | S_IWUSR;
    int fd = cli_create_temporary_file(output->target, is_replacing ? of_owner : DEFFILEMODE,
                                       &output->temporary);
    if (fd < 0 && is_replacing)
        return cli_fail_file(error, cli_get_file_exit(errno),
                             "%s: cannot make a file beside it, which would replace it: %s; what "
                             "was there is unchanged",
                             output->path, strerror(errno));
    if (fd < 0)
        return cli_fail_output(output, errno, error);
    int number = is_replacing ? keep_rights(fd, output->target, old) : 0;
    output->stream = number ? NULL : fdopen(fd, "w+");
    if (output->stream)
        return CLI_EXIT_OK;
    number = number ? number : errno;
    close(fd);
    cli_remove_temporary_file(output->temporary);
    return cli_fail_output(output, number, error);
}

int cli_open_output(const char *path, cli_output *output, cli_file_error *error)
{
    struct stat old;
    *output = (cli_output){.path = path};
    int code = find_target(output, &old, error);
    if (code == CLI_EXIT_OK)
        code = create_stream(output, &old, error);
    if (code != CLI_EXIT_OK) {
        free(output->target);
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

int cli_keep_output(cli_output *output, int64_t final_bytes, cli_file_error *error)
{
    /* The journal reaches the disk before the name that promises one. */
    if (fsync(fileno(output->stream)) != 0 ||
        cli_keep_temporary_file(output->temporary, output->target) != 0)
        return cli_fail_output(output, errno, error);
    output->final_bytes = final_bytes;
    return CLI_EXIT_OK;
}

/* Maps the file of `fd`, which stayed. */
static int map_kept(cli_output *output, int fd, cli_file_error *error)
{
    struct stat found;
    if (fstat(fd, &found) != 0)
        return cli_fail_output(output, errno, error);
    if (!S_ISREG(found.st_mode) || found.st_size == 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%s.partial: not the file of a run that was interrupted; move it away",
                             output->target);
    void *map = mmap(NULL, (size_t)found.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return cli_fail_output(output, errno, error);
    output->map = map;
    output->map_bytes = found.st_size;
    return CLI_EXIT_OK;
}

int cli_reopen_output(const char *path, cli_output *output, cli_file_error *error)
{
    struct stat old;
    *output = (cli_output){.path = path};
    int code = find_target(output, &old, error);
    if (code != CLI_EXIT_OK)
        return code;
    int fd = cli_reopen_temporary_file(output->target, &output->temporary);
    if (fd < 0 && errno == EWOULDBLOCK)
        code = cli_fail_file(error, CLI_EXIT_WRONG,
                             "%s.partial: another run writes it; wait for its end", output->target);
    else if (fd < 0 && errno != ENOENT)
        code = cli_fail_file(error, CLI_EXIT_USAGE, "%s.partial: cannot open it: %s; move it away",
                             output->target, strerror(errno));
    if (fd >= 0)
        code = map_kept(output, fd, error);
    if (code == CLI_EXIT_OK && fd >= 0) {
        output->stream = fdopen(fd, "r+");
        if (!output->stream)
            code = cli_fail_output(output, errno, error);
    }
    if (code == CLI_EXIT_OK && output->stream)
        return code;
    if (fd >= 0 && !output->stream)
        close(fd);
    cli_discard_output(output);
    return code;
}

void cli_give_up_output(cli_output *output)
{
    if (output->final_bytes)
        cli_give_up_temporary_file(output->temporary);
}

static void unmap(cli_output *output)
{
    if (output->map)
        munmap(output->map, (size_t)output->map_bytes);
    output->map = NULL;
}

/* Finds the folder of a target. Returns its name in the folder. */
static const char *find_folder(const char *target, struct stat *found)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(target, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash + 1 - target), target);
    if (stat(folder, found) != 0)
        *found = (struct stat){.st_nlink = 0};
    return slash ? slash + 1 : target;
}

int cli_is_same_output(const cli_output *one, const cli_output *other)
{
    struct stat folder, other_folder;
    return strcmp(find_folder(one->target, &folder), find_folder(other->target, &other_folder)) ==
               0 &&
           folder.st_dev == other_folder.st_dev && folder.st_ino == other_folder.st_ino;
}

int cli_settle_output(cli_output *output, cli_file_error *error)
{
    if (!output->stream)
        return CLI_EXIT_OK;
    unmap(output);
    int is_written =
        fflush(output->stream) == 0 && fsync(fileno(output->stream)) == 0 &&
        (!output->final_bytes || ftruncate(fileno(output->stream), output->final_bytes) == 0);
    int number = errno;
    if (fclose(output->stream) != 0 && is_written) {
        is_written = 0;
        number = errno;
    }
    output->stream = NULL;
    const int code = is_written ? CLI_EXIT_OK : cli_fail_output(output, number, error);
    if (code != CLI_EXIT_OK)
        cli_discard_output(output);
    return code;
}

int cli_commit_output(cli_output *output, cli_file_error *error)
{
    /* The name must not reach the disk before the contents. */
    int code = cli_settle_output(output, error);
    if (code == CLI_EXIT_OK && cli_rename_temporary_file(output->temporary, output->target) != 0)
        code = cli_fail_output(output, errno, error);
    cli_discard_output(output);
    return code;
}

void cli_discard_output(cli_output *output)
{
    if (!output->target)
        return;
    unmap(output);
    if (output->stream)
        fclose(output->stream);
    cli_remove_temporary_file(output->temporary);
    free(output->target);
    *output = (cli_output){.path = output->path};
}
