#include "files/run_summary.h"

#include <stdio.h>
#include <stdlib.h>

/* Makes the text if JSON is asked for. */
static int format_summary(cli_run_summary *summary, cli_file_error *error)
{
    cli_free_run_summary(summary);
    if (summary->is_json)
        summary->text = summary->format(summary->run);
    return summary->text || !summary->is_json
               ? CLI_EXIT_OK
               : cli_fail_file(error, CLI_EXIT_WRONG,
                               "out of memory for the JSON text; D is not written");
}

int cli_finish_array_output(cli_array_output *output, const tg_matrix *d, cli_run_summary *summary,
                            cli_progress *progress, cli_file_error *error)
{
    int code = cli_write_array_output(output, d, progress, error);
    /* The summary is made before the file gets its name, because lack of memory for it fails the
     * command. */
    *summary->is_written = code == CLI_EXIT_OK;
    if (code == CLI_EXIT_OK)
        code = format_summary(summary, error);
    if (code == CLI_EXIT_OK)
        code = cli_commit_array_output(output, error);
    *summary->is_written = code == CLI_EXIT_OK;
    return code;
}

int cli_print_run_summary(cli_run_summary *summary, cli_file_error *error)
{
    int code = CLI_EXIT_OK;
    if (summary->is_quiet)
        return code;
    if (!summary->is_json) {
        summary->print(summary->run);
        return code;
    }
    if (!*summary->is_written)
        code = format_summary(summary, error);
    if (code == CLI_EXIT_OK)
        puts(summary->text);
    return code;
}

void cli_free_run_summary(cli_run_summary *summary)
{
    free(summary->text);
    summary->text = NULL;
}
