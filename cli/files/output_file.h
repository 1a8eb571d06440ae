/*
 * Declares a file that appears whole or not at all. It is written as a temporary file in the folder
 * of its path and renamed at the end, so a file that was there stays until then and may be an
 * input. No signal but SIGKILL leaves a temporary file (temporary_file.h). Two outputs can be open
 * at a time.
 *
 * A link is followed, also to a file that does not exist yet. A new file gets the permissions that
 * the umask leaves. A file that is replaced passes on its permissions, its access list and its
 * group, and its owner if root writes it; set-user-ID and set-group-ID bits go, as in every written
 * file. Its other hard links keep the old contents.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_OUTPUT_FILE_H
#define TG_CLI_OUTPUT_FILE_H

#include "files/file_error.h"
#include "files/temporary_file.h"

#include <stdint.h>
#include <stdio.h>

typedef struct cli_output {
    const char *path; /* the user's path; not owned */
    char *target;     /* owned; that path with links followed; NULL: no output is open */
    FILE *stream;     /* stream of the temporary file; NULL once it is settled */
    cli_temporary_file *temporary;
    void *map; /* after cli_map_output */
    int64_t map_bytes;
    int64_t final_bytes; /* size of the whole file, once it stays; 0: it does not */
} cli_output;

/* Creates the temporary file. An existing `path` must be a regular file that may be written, in a
 * folder that may be written. Returns a cli_exit; on success the caller calls cli_commit_output or
 * cli_discard_output. */
int cli_open_output(const char *path, cli_output *output, cli_file_error *error);

/* Reserves `bytes` on the disk, so that it cannot run full later, and maps them for writing.
 * Returns a cli_exit. */
int cli_map_output(cli_output *output, int64_t bytes, cli_file_error *error);

/* Gives the mapped file the target's name and ".partial". From then on it stays, whatever ends the
 * process, until it is committed or given up. `final_bytes` is its size once it is committed: what
 * lies behind is then cut off. Returns a cli_exit. */
int cli_keep_output(cli_output *output, int64_t final_bytes, cli_file_error *error);

/* Opens and maps the file that stayed of an earlier run for this path. output->map is NULL if there
 * is none. The caller checks what the file holds, then sets output->final_bytes. Returns a
 * cli_exit. */
int cli_reopen_output(const char *path, cli_output *output, cli_file_error *error);

/* Makes a file that would stay one that cli_discard_output removes. */
void cli_give_up_output(cli_output *output);

/* Returns 1 if both outputs would get the same name. */
int cli_is_same_output(const cli_output *one, const cli_output *other);

/* Writes all to the disk, so that only the name is missing, and ends stream and map. On failure the
 * temporary file is removed. Returns a cli_exit. */
int cli_settle_output(cli_output *output, cli_file_error *error);

/* Settles the file, unless it is, and gives it its name. On failure the temporary file is removed.
 * Returns a cli_exit. */
int cli_commit_output(cli_output *output, cli_file_error *error);

/* Removes the temporary file, unless it stays; does nothing after a commit, on a failed or a zeroed
 * output. */
void cli_discard_output(cli_output *output);

/* Describes a failed write to the stream, for errno `number`. Returns a cli_exit. */
int cli_fail_output(const cli_output *output, int number, cli_file_error *error);

#endif /* TG_CLI_OUTPUT_FILE_H */
