/*
 * A file that appears whole or not at all. It is written under a temporary name in the directory of
 * its path and renamed at the end, so a file that was there stays until then and may be an input.
 * One output can be open at a time. SIGINT, SIGTERM, SIGHUP and SIGBUS remove its temporary file
 * and then end the process as usual.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_OUTPUT_FILE_H
#define TG_CLI_OUTPUT_FILE_H

#include "files/file_error.h"

#include <stdint.h>
#include <stdio.h>

typedef struct cli_output {
    const char *path; /* as the user gave it; not owned */
    char *target;     /* the same, symbolic links followed; owned */
    char *temp;       /* temporary name, "" before the file is created; owned */
    FILE *stream;     /* of the temporary file */
    void *map;        /* after cli_map_output */
    int64_t map_bytes;
} cli_output;

/* Creates the temporary file. An existing `path` must be a regular file. Returns a cli_exit; on
 * success the caller calls cli_commit_output or cli_discard_output. */
int cli_open_output(const char *path, cli_output *output, cli_file_error *error);

/* Reserves `bytes` on the disk, so that it cannot run full later, and maps them for writing.
 * Returns a cli_exit. */
int cli_map_output(cli_output *output, int64_t bytes, cli_file_error *error);

/* Writes all to the disk and gives the file its name. On failure the temporary file is removed.
 * Returns a cli_exit. */
int cli_commit_output(cli_output *output, cli_file_error *error);

/* Removes the temporary file; does nothing after a commit, on a failed or a zeroed output. */
void cli_discard_output(cli_output *output);

/* Describes a failed write to the stream, for errno `number`. Returns a cli_exit. */
int cli_fail_output(const cli_output *output, int number, cli_file_error *error);

#endif /* TG_CLI_OUTPUT_FILE_H */
