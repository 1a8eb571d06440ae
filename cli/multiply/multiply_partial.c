#include "multiply/multiply_partial.h"
#include "files/npy_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL_BYTES 8192

static const char magic[16] = "tilegemm part 2 ";

/* The journal lies at the end of the file, at a multiple of its alignment. */
typedef struct cli_journal {
    char magic[16];
    char facts[JOURNAL_BYTES - 24 - sizeof(tg_panels)]; /* lines "name: value" */
    tg_panels panels;
    int64_t done_count;
} journal;

_Static_assert(sizeof(journal) == JOURNAL_BYTES, "the journal has no padding");

int64_t cli_get_journal_bytes(int64_t d_bytes)
{
    const int64_t end = CLI_NPY_HEADER_BYTES + d_bytes;
    return (64 - end % 64) % 64 + JOURNAL_BYTES;
}

static journal *find_journal(const cli_array_output *output)
{
    return (journal *)((char *)output->file.map + output->file.map_bytes - JOURNAL_BYTES);
}

/* Refuses the file of another run: names the first fact in which it differs. */
static int refuse_facts(const cli_array_output *output, const char *theirs, const char *ours,
                        cli_file_error *error)
{
    const char *line = ours;
    for (; *ours && *ours == *theirs; ours++, theirs++)
        if (*ours == '\n')
            line = ours + 1;
    theirs -= ours - line; /* the lines are equal up to there */
    const char *colon = strchr(line, ':');
    const int name_length = colon ? (int)(colon - line) : 0;
    const int has_other = strncmp(line, theirs, (size_t)name_length + 1) == 0;
    const char *other = has_other ? theirs + name_length + 2 : "none";
    return cli_fail_file(error, CLI_EXIT_USAGE,
                         "%.300s.partial is of an interrupted run with another product: %.*s was "
                         "%.*s and is %.*s; repeat that run to go on, or remove the file to start "
                         "anew",
                         output->file.target, name_length, line, (int)strcspn(other, "\n"), other,
                         colon ? (int)strcspn(colon + 2, "\n") : 0, colon ? colon + 2 : "");
}

/* Takes the journal of the file that was found, if it is of the same run. */
static int check_journal(const char *facts, const cli_array_output *output, cli_file_error *error)
{
    journal *found = find_journal(output);
    if (output->file.map_bytes < CLI_NPY_HEADER_BYTES + JOURNAL_BYTES ||
        output->file.map_bytes % 64 || memcmp(found->magic, magic, sizeof magic) != 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s.partial has no journal of an interrupted run; move it away",
                             output->file.target);
    found->facts[sizeof found->facts - 1] = '\0';
    if (strcmp(found->facts, facts) != 0)
        return refuse_facts(output, found->facts, facts, error);
    if (output->file.map_bytes !=
            CLI_NPY_HEADER_BYTES + output->bytes + cli_get_journal_bytes(output->bytes) ||
        found->done_count < 0 || found->done_count > found->panels.panel_count)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s.partial is damaged; remove it to start anew",
                             output->file.target);
    return CLI_EXIT_OK;
}

int cli_find_partial(const char *facts, cli_array_output *output, cli_partial *partial,
                     tg_panels *panels, cli_file_error *error)
{
    int code = cli_reopen_array_output(output, error);
    if (code != CLI_EXIT_OK || !output->file.map)
        return code;
    code = check_journal(facts, output, error);
    if (code != CLI_EXIT_OK)
        return code;
    cli_resume_array_output(output);
    partial->journal = find_journal(output);
    partial->fd = fileno(output->file.stream);
    partial->resumed_count = partial->journal->done_count;
    *panels = partial->journal->panels;
    return code;
}

int cli_start_partial(const char *facts, const tg_panels *panels, cli_array_output *output,
                      cli_partial *partial, cli_file_error *error)
{
    journal *made = find_journal(output);
    memcpy(made->magic, magic, sizeof magic);
    snprintf(made->facts, sizeof made->facts, "%s", facts);
    made->panels = *panels;
    *partial = (cli_partial){.journal = made, .fd = fileno(output->file.stream)};
    return cli_keep_array_output(output, error);
}

int64_t cli_count_done(const cli_partial *partial)
{
    return partial->journal ? partial->journal->done_count : 0;
}

int cli_note_done(cli_partial *partial)
{
    if (!partial->journal)
        return 0;
    /* The count must not reach the disk before the panel. */
    if (fdatasync(partial->fd) != 0)
        return errno;
    partial->journal->done_count++;
    return 0;
}
