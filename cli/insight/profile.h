/* Declares the types and functions that the files of `tilegemm profile` share. */
#ifndef TG_CLI_PROFILE_H
#define TG_CLI_PROFILE_H

#include "cli.h"
#include "insight/explain.h"
#include "tilegemm_lab.h"

#include <jansson.h>
#include <stdio.h>

/* The simulator runs up to PROFILE_PRODUCTS_MOST multiply-adds, so that a user does not wait
 * long. */
enum { PROFILE_KERNEL_CAPACITY = 64, PROFILE_PRODUCTS_MOST = 1 << 25 };
#define PROFILE_NOT_SIMULATED "not simulated: above 2^25 multiply-adds; see `tilegemm simulate`"

/* The counters of the profiler: PROFILE_COUNTER(key, metric of Nsight Compute, how to add the
 * launches of one call: SUM, or MEAN weighted by time). */
enum profile_counter {
#define PROFILE_COUNTER(key, metric, rule) PROFILE_##key,
#include "insight/profile_counters.def"
#undef PROFILE_COUNTER
    PROFILE_COUNTER_COUNT
};

typedef struct profile_options {
    cli_query query; /* gpu NULL: the GPU here, else h200 */
    int is_launch;
    int is_attention;   /* the shape is the text of an attention, whose rungs are named */
    tg_problem problem; /* unused if is_attention */
    /* The rows of the kernel table that --kernel names, in its order. */
    const char *names[PROFILE_KERNEL_CAPACITY];
    int name_count;
} profile_options;

/* A kernel with its counted, predicted and simulated values. */
typedef struct profile_entry {
    const char *kernel;
    int launch_count;                      /* launches of its call; 0 if none was counted */
    char grid[32];                         /* grid of its first launch, "(16, 16, 1)" */
    double counted[PROFILE_COUNTER_COUNT]; /* NaN if the profiler knows no such metric */
    int has_model, is_simulated;
    tg_explanation model;
    tg_traffic simulated;
    double predicted_s;
    const char *note; /* why the model or the simulator has no figures; NULL or "": none */
} profile_entry;

typedef struct profile_report {
    explain_case shown;
    char
        *command; /* command line that ran, as a shell takes it; owned; NULL: nothing was counted */
    profile_entry entries[PROFILE_KERNEL_CAPACITY];
    int entry_count;
} profile_report;

/* Calls each kernel once on the GPU; this is the process that the profiler watches. Returns a
 * cli_exit. */
int cli_launch_kernels(const profile_options *options);

/* Does the same with rungs of attention. */
int cli_launch_rungs(const profile_options *options);

/* Sets *row to the rung that a name of `length` bytes means, and that takes the attention in
 * `text`. Types are those of cli_parse_rung_attention for "all". Errors: those of
 * tg_explain_attention. */
tg_status cli_find_rung(const char *text, const char *name, size_t length, const char **row);

/* Fills in the model's and the simulator's counts of a rung. Returns a cli_exit. */
int cli_predict_rung(const char *text, const explain_case *shown, profile_entry *entry);

/* Runs Nsight Compute on `tilegemm profile --launch`, and fills the command and the counted values
 * of the entries, whose kernels are given. Returns a cli_exit. If Nsight Compute is not installed,
 * the command has been printed. */
int cli_count_kernels(const profile_options *options, profile_report *report);

/* Reads Nsight Compute's raw CSV into the entries, whose kernels are given, each with its first
 * launch. Returns 0 when out of memory. */
int cli_read_counters(FILE *stream, profile_report *report);

/* Return figures from several counters: the turns of shared memory that instructions need, the
 * turns that the hardware added while another access had the banks, and the conflicts of
 * addresses. */
double cli_get_counted_turns(const profile_entry *entry);
double cli_get_added_turns(const profile_entry *entry);
double cli_get_counted_conflicts(const profile_entry *entry);

/* A quantity by the model, the simulator and the counters; NaN if one of them does not have it. */
typedef struct profile_triple {
    const char *key;
    double model, simulated, counted;
} profile_triple;
enum { PROFILE_TRIPLE_CAPACITY = 16 };
int cli_list_triples(const profile_entry *entry, profile_triple triples[PROFILE_TRIPLE_CAPACITY]);

void cli_print_profile(const profile_report *report);
json_t *cli_make_profile_json(const profile_report *report);

#endif /* TG_CLI_PROFILE_H */
