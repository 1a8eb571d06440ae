/*
 * Judges whether a run found what it was asked for, and found it right.
 */
#include "bench/bench.h"

#include <string.h>

int cli_is_measured(const bench_contender *contender)
{
    return contender->sample_count > 0 || contender->simulation;
}

int cli_judge_result(const bench_result *result)
{
    int exit_code = CLI_EXIT_OK;
    for (int i = 0; i < result->contender_count; i++) {
        const bench_contender *contender = &result->contenders[i];
        if (!cli_is_measured(contender) || contender->is_right || !contender->is_verified)
            continue;
        cli_print_error("%s is wrong at %s: its error is %.3g times the bound", contender->name,
                        result->shape->text, contender->max_bound_share);
        if (!contender->is_peer)
            exit_code = CLI_EXIT_WRONG;
    }
    return exit_code;
}

/* Returns why a kernel given by name ran at no shape; NULL if it can run one, or is a group. */
static const char *explain_illegal(const char *name, const bench_result *results, int result_count)
{
    const char *reason = NULL;
    for (int r = 0; r < result_count; r++) {
        for (int i = 0; i < results[r].contender_count; i++) {
            const bench_contender *contender = &results[r].contenders[i];
            if (strcmp(contender->name, name) != 0)
                continue;
            if (!contender->is_illegal)
                return NULL;
            reason = contender->skip_reason;
        }
    }
    return reason;
}

int cli_judge_run(const bench_options *options, const bench_result *results, int result_count)
{
    int exit_code = CLI_EXIT_OK, kernel_count = 0;
    for (int i = 0; i < options->kernel_name_count; i++) {
        const char *name = options->kernel_names[i];
        const char *reason = explain_illegal(name, results, result_count);
        if (!reason)
            continue;
        cli_print_error("--kernel = '%s' can run none of the shapes given: %s; pass another "
                        "kernel or shape",
                        name, reason);
        exit_code = CLI_EXIT_USAGE;
    }
    for (int r = 0; r < result_count; r++) {
        for (int i = 0; i < results[r].contender_count; i++)
            kernel_count +=
                !results[r].contenders[i].is_peer && cli_is_measured(&results[r].contenders[i]);
    }
    if (exit_code == CLI_EXIT_OK && kernel_count == 0) {
        cli_print_error("no kernel was measured: see the reasons beside each; pass other shapes or "
                        "kernels");
        exit_code = CLI_EXIT_WRONG;
    }
    return exit_code;
}
