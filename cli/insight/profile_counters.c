/*
 * Runs Nsight Compute as a child process and reads its CSV.
 */
#include "insight/profile.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { word_capacity = 32, column_capacity = 4096, own_path_bytes = 4096, message_bytes = 400 };

typedef enum rule { SUM, MEAN } rule;

static const struct {
    const char *metric;
    rule rule;
} counters[PROFILE_COUNTER_COUNT] = {
#define PROFILE_COUNTER(key, metric, rule) {metric, rule},
#include "insight/profile_counters.def"
#undef PROFILE_COUNTER
};

/* The words of the command line, with NULL at the end; metrics and names are owned. */
typedef struct command_line {
    const char *words[word_capacity];
    char *metrics, *kernels;
    char own_path[own_path_bytes];
} command_line;

/* Returns `count` words with commas between them; NULL when out of memory. */
static char *join(const char *const *words, int count)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *stream = open_memstream(&text, &text_bytes);
    for (int i = 0; stream && i < count; i++)
        fprintf(stream, "%s%s", i ? "," : "", words[i]);
    if (stream && fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static const char *find_profiler(void)
{
    const char *chosen = secure_getenv("TILEGEMM_NCU");
    return chosen && chosen[0] ? chosen : "ncu";
}

/* Returns 0 when out of memory. */
static int make_command(const profile_options *options, command_line *line)
{
    const char *metrics[PROFILE_COUNTER_COUNT];
    int count = 0;
    for (int i = 0; i < PROFILE_COUNTER_COUNT; i++)
        metrics[i] = counters[i].metric;
    line->metrics = join(metrics, PROFILE_COUNTER_COUNT);
    line->kernels = join(options->names, options->name_count);
    ssize_t length = readlink("/proc/self/exe", line->own_path, sizeof line->own_path - 1);
    if (length < 0)
        length = snprintf(line->own_path, sizeof line->own_path, "tilegemm");
    line->own_path[length] = '\0';
    const char *const words[] = {
        find_profiler(),       "--csv",       "--page",          "raw",
        "--print-units",       "base",        "--clock-control", "none",
        "--metrics",           line->metrics, line->own_path,    "profile",
        options->query.shape,  "--kernel",    line->kernels,     "--device",
        options->query.device, "--launch"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        line->words[count++] = words[i];
    line->words[count] = NULL;
    return line->metrics && line->kernels;
}

/* Returns the words as a shell takes them; NULL when out of memory. */
static char *quote_command(const command_line *line)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *stream = open_memstream(&text, &text_bytes);
    for (int i = 0; stream && line->words[i]; i++) {
        const char *word = line->words[i];
        int is_plain = word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789_-+=:,./@%")] == '\0';
        fprintf(stream, "%s%s", i ? " " : "", is_plain ? "" : "'");
        for (; *word; word++)
            fprintf(stream, *word == '\'' ? "'\\''" : "%c", *word);
        fputs(is_plain ? "" : "'", stream);
    }
    if (stream && fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* Splits a line of CSV, whose fields are all quoted, in place. Returns the number of fields. */
static int cut_fields(char *line, char *fields[column_capacity])
{
    int count = 0;
    for (char *from = strchr(line, '"'); from && count < column_capacity;) {
        char *end = strchr(from + 1, '"');
        if (!end)
            break;
        *end = '\0';
        fields[count++] = from + 1;
        from = strchr(end + 1, '"');
    }
    return count;
}

/* Reads "1,048,576" or "93.75"; returns NaN for anything else. */
static double read_number(const char *text)
{
    char digits[64], *end = NULL;
    size_t used = 0;
    for (; *text && used < sizeof digits - 1; text++) {
        if (*text != ',')
            digits[used++] = *text;
    }
    digits[used] = '\0';
    double value = strtod(digits, &end);
    return used == 0 || *end ? (double)NAN : value;
}

typedef struct columns {
    int kernel_name, grid; /* kernel_name -1: no header yet */
    int counter[PROFILE_COUNTER_COUNT];
} columns;

static void read_header(char *fields[column_capacity], int count, columns *found)
{
    found->grid = -1;
    for (int i = 0; i < PROFILE_COUNTER_COUNT; i++)
        found->counter[i] = -1;
    for (int column = 0; column < count; column++) {
        if (strcmp(fields[column], "Kernel Name") == 0)
            found->kernel_name = column;
        if (strcmp(fields[column], "Grid Size") == 0)
            found->grid = column;
        for (int i = 0; i < PROFILE_COUNTER_COUNT; i++) {
            if (strcmp(fields[column], counters[i].metric) == 0)
                found->counter[i] = column;
        }
    }
}

/* Adds a launch to its call. */
static void add_launch(profile_entry *entry, const double values[PROFILE_COUNTER_COUNT])
{
    const double before_ns = entry->launch_count ? entry->counted[PROFILE_time_ns] : 0.0;
    const double own_ns = values[PROFILE_time_ns];
    for (int i = 0; i < PROFILE_COUNTER_COUNT; i++) {
        double *sum = &entry->counted[i];
        if (entry->launch_count == 0)
            *sum = values[i];
        else if (counters[i].rule == SUM)
            *sum += values[i];
        else
            *sum = (*sum * before_ns + values[i] * own_ns) / (before_ns + own_ns);
    }
    entry->launch_count++;
}

/* Returns the entry that a launched function begins: the name of the function is that of the row,
 * perhaps with a suffix. Any other function belongs to the call before it. */
static profile_entry *find_entry(profile_report *report, profile_entry *last, const char *function)
{
    for (int i = 0; i < report->entry_count; i++) {
        profile_entry *entry = &report->entries[i];
        size_t length = strlen(entry->kernel);
        if (strncmp(function, entry->kernel, length) == 0 &&
            (function[length] == '\0' || function[length] == '_'))
            return entry;
    }
    return last;
}

/* Reads the output of the profiler, and keeps the last line that reports an error. With has_calls
 * all launches count, else the first of each entry alone. Returns 0 when out of memory. */
static int read_output(FILE *stream, profile_report *report, int has_calls,
                       char message[message_bytes])
{
    static char *fields[column_capacity];
    columns found = {.kernel_name = -1};
    profile_entry *entry = NULL;
    char *line = NULL;
    size_t line_bytes = 0;
    while (getline(&line, &line_bytes, stream) >= 0) {
        if (strncmp(line, "==ERROR==", 9) == 0) {
            const char *text = line + 9 + strspn(line + 9, " ");
            snprintf(message, message_bytes, "%.*s", (int)strcspn(text, "\n"), text);
        }
        if (line[0] != '"')
            continue;
        int count = cut_fields(line, fields);
        if (found.kernel_name < 0) {
            read_header(fields, count, &found);
            continue;
        }
        if (count <= found.kernel_name || !fields[0][0])
            continue; /* the line of units */
        double values[PROFILE_COUNTER_COUNT];
        for (int i = 0; i < PROFILE_COUNTER_COUNT; i++) {
            int column = found.counter[i];
            values[i] = column >= 0 && column < count ? read_number(fields[column]) : (double)NAN;
        }
        entry = find_entry(report, has_calls ? entry : NULL, fields[found.kernel_name]);
        if (entry && entry->launch_count > 0 && !has_calls)
            continue;
        if (entry && entry->launch_count == 0 && found.grid >= 0 && found.grid < count)
            snprintf(entry->grid, sizeof entry->grid, "%s", fields[found.grid]);
        if (entry)
            add_launch(entry, values);
    }
    free(line);
    return feof(stream);
}

int cli_read_counters(FILE *stream, profile_report *report)
{
    char message[message_bytes];
    return read_output(stream, report, 0, message);
}

/* Starts the command with its output in a pipe. Returns 0, or the errno of the failure. */
static int start(char *const words[], pid_t *child, FILE **output)
{
    int ends[2];
    if (pipe(ends) != 0)
        return errno;
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (!error)
        error = posix_spawnp(child, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *output = error ? NULL : fdopen(ends[0], "r");
    if (!*output)
        close(ends[0]);
    return error;
}

static int judge_run(const profile_report *report, int state, const char *message)
{
    int counted = 0;
    for (int i = 0; i < report->entry_count; i++)
        counted += report->entries[i].launch_count > 0;
    if (counted == report->entry_count && WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return CLI_EXIT_OK;
    cli_print_error("%d of %d kernels were counted%s%s; the command was: %s", counted,
                    report->entry_count, message[0] ? ": " : "", message, report->command);
    return CLI_EXIT_WRONG;
}

int cli_count_kernels(const profile_options *options, profile_report *report)
{
    command_line line;
    char message[message_bytes] = "";
    FILE *output = NULL;
    pid_t child;
    int state = 0, exit_code = CLI_EXIT_WRONG;
    int is_made = make_command(options, &line);
    report->command = is_made ? quote_command(&line) : NULL;
    if (!report->command) {
        cli_print_error("out of memory for the profiler's command line");
    } else {
        int error = start((char *const *)(uintptr_t)line.words, &child, &output);
        if (error) {
            cli_print_error("%s does not start (%s): install NVIDIA Nsight Compute, or set "
                            "TILEGEMM_NCU to its ncu; the command is: %s",
                            line.words[0], strerror(error), report->command);
            exit_code = CLI_EXIT_MISSING;
        } else {
            int is_read = output && read_output(output, report, 1, message);
            if (output)
                fclose(output);
            waitpid(child, &state, 0);
            if (is_read)
                exit_code = judge_run(report, state, message);
            else
                cli_print_error("out of memory for what the profiler prints");
        }
    }
    free(line.metrics);
    free(line.kernels);
    return exit_code;
}
