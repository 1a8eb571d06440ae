/*
 * Declares temporary files beside the files that they will replace. Two can exist at a time.
 *
 * While one exists, every signal whose default action ends the process removes it and then ends the
 * process by that same signal. A signal that is ignored stays ignored, and a handler of others
 * stays. SIGXFSZ alone ends nothing: a write above the limit of `ulimit -f` then fails with EFBIG.
 *
 * SIGKILL leaves the file behind, as a crash of the machine does. The next process that makes one
 * for the same target removes it. The process that writes a temporary file holds a lock on it
 * (flock), by which the two are told apart, also across containers; where the file system has no
 * such locks, nothing is removed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_TEMPORARY_FILE_H
#define TG_CLI_TEMPORARY_FILE_H

#include <sys/types.h>

/* A file that exists or stays. */
typedef struct cli_temporary_file cli_temporary_file;

/* Creates the file in the folder of `target`, with `mode` less the umask. Its name is the target's
 * (shortened, if need be), ".tmp-" and 16 hexadecimal digits. Returns a descriptor, or -1 with
 * errno set. On success the caller passes *file to cli_remove_temporary_file. */
int cli_create_temporary_file(const char *target, mode_t mode, cli_temporary_file **file);

/* Renames the file to the target's name and ".partial", under which it stays whatever ends the
 * process; a signal then also says so. Returns 0, or -1 with errno set. */
int cli_keep_temporary_file(cli_temporary_file *file, const char *target);

/* Opens the file that stayed of a process that has ended. Returns a descriptor, or -1 with errno
 * set: ENOENT if there is none, EWOULDBLOCK if a process still writes it. On success the caller
 * passes *file to cli_remove_temporary_file. */
int cli_reopen_temporary_file(const char *target, cli_temporary_file **file);

/* Makes a file that would stay one that is removed. */
void cli_give_up_temporary_file(cli_temporary_file *file);

/* Renames the file to `target`. Returns 0, or -1 with errno set, and the file then still exists. */
int cli_rename_temporary_file(cli_temporary_file *file, const char *target);

/* Removes the file, unless it stays or has been renamed; with the last one, leaves the signals to
 * their default actions. NULL is allowed. */
void cli_remove_temporary_file(cli_temporary_file *file);

#endif /* TG_CLI_TEMPORARY_FILE_H */
