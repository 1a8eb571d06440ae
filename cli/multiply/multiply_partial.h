/*
 * Declares a D that is formed in panels and outlives its run: the file D.partial holds the panels
 * that are done and, behind the elements, a journal. The journal says what the run multiplies, so
 * that only the same run goes on, and how many panels are done.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MULTIPLY_PARTIAL_H
#define TG_CLI_MULTIPLY_PARTIAL_H

#include "files/array_output.h"
#include "tilegemm_lab.h"

struct cli_journal;

typedef struct cli_partial {
    struct cli_journal *journal; /* in the mapped output; NULL: D does not outlive its run */
    int fd;                      /* descriptor of the output; not owned */
    int64_t resumed_count;       /* panels that earlier runs have done */
} cli_partial;

/* Bytes that the journal takes behind the `d_bytes` bytes of D's elements. */
int64_t cli_get_journal_bytes(int64_t d_bytes);

/* Looks for the file of an earlier run. If there is one with these facts, lines "name: value", the
 * output is open, *partial has its journal and *panels its panels; partial->journal is NULL if
 * there is none. A file with other facts is refused, and the error says what differs. Returns a
 * cli_exit. */
int cli_find_partial(const char *facts, cli_array_output *output, cli_partial *partial,
                     tg_panels *panels, cli_file_error *error);

/* Makes the open output one that stays, with the journal of a run in these panels. Returns a
 * cli_exit. */
int cli_start_partial(const char *facts, const tg_panels *panels, cli_array_output *output,
                      cli_partial *partial, cli_file_error *error);

/* Returns the number of panels that are done. */
int64_t cli_count_done(const cli_partial *partial);

/* Notes that one more panel is done, after its elements are on the disk. Returns 0 or an errno. */
int cli_note_done(cli_partial *partial);

#endif /* TG_CLI_MULTIPLY_PARTIAL_H */
