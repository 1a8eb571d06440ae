/*
 * tilegemm simulate of an attention: runs its rungs on the CPU, one after another.
 */
#include "insight/simulate.h"

#include "insight/explain.h"
#include "json_output.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char default_chip[] = "h200";

/* The state of the runs. */
typedef struct attention_runs {
    const cli_query *query;
    int has_lines, without_barrier;
    explain_case chips[CLI_GPU_MOST];
    int chip_count;
    simulated_row rows[LADDER_CAPACITY];
    int row_count, has_findings;
    cli_progress progress;
    json_t *list; /* list of --json */
} attention_runs;

static int show_progress(void *state, int64_t done_count, int64_t block_count)
{
    attention_runs *runs = state;
    cli_show_progress(&runs->progress, done_count, block_count);
    return 0;
}

static void set_element(tg_type type, void *memory, int64_t index, float value)
{
    if (type == TG_TYPE_FP32)
        ((float *)memory)[index] = value;
    else
        ((uint16_t *)memory)[index] = tg_encode_bits(type, value);
}

/* Returns a tensor of the attention's type, filled with small numbers; NULL when out of memory. */
static void *make_tensor(const tg_attention *attention, int64_t head_count, int64_t row_count)
{
    const int64_t elems = attention->batch_count * head_count * row_count * attention->head_size;
    void *memory = NULL;
    if (posix_memalign(&memory, 256, (size_t)elems * (size_t)tg_get_type_bytes(attention->type)))
        return NULL;
    for (int64_t i = 0; i < elems; i++)
        set_element(attention->type, memory, i, (float)(i % 7 - 3) / 4.0f);
    return memory;
}

void cli_free_attention_tensors(tg_attention *attention)
{
    free(attention->q.data);
    free(attention->k.data);
    free(attention->v.data);
    free(attention->d.data);
}

int cli_make_attention_tensors(tg_attention *a)
{
    a->q.data = make_tensor(a, a->head_count, a->m);
    a->k.data = make_tensor(a, a->kv_head_count, a->n);
    a->v.data = make_tensor(a, a->kv_head_count, a->n);
    a->d.data = make_tensor(a, a->head_count, a->m);
    if (a->q.data && a->k.data && a->v.data && a->d.data)
        return 1;
    cli_print_error("out of memory; pass a smaller attention");
    return 0;
}

/* Keeps the counts and the predicted times. */
static void keep_row(attention_runs *runs, const tg_attention *attention,
                     const tg_simulation *simulation)
{
    simulated_row *row = &runs->rows[runs->row_count++];
    snprintf(row->kernel, sizeof row->kernel, "%s", simulation->kernel);
    row->traffic = simulation->traffic;
    for (int c = 0; c < runs->chip_count; c++) {
        tg_explanation explained;
        row->predicted_s[c] = tg_explain_attention(&runs->chips[c].chip, simulation->kernel,
                                                   attention, &explained) == TG_STATUS_OK &&
                                      explained.prediction.is_legal
                                  ? explained.prediction.predicted_s
                                  : 0.0;
    }
}

static json_t *make_json(const attention_runs *runs, const tg_attention *attention,
                         const tg_simulation *simulation)
{
    const simulated_row *row = &runs->rows[runs->row_count - 1];
    json_t *times = json_object();
    json_t *made = cli_make_simulation_json(simulation, attention->m, attention->n,
                                            attention->head_size, NULL, NULL);
    int is_whole = times && cli_set_json(made, "attention", json_string(runs->query->shape));
    for (int c = 0; c < runs->chip_count && is_whole; c++)
        is_whole =
            cli_set_json(times, runs->chips[c].chip.name,
                         row->predicted_s[c] > 0.0 ? json_real(row->predicted_s[c]) : json_null());
    is_whole = cli_set_json(made, "predicted_s", times) && is_whole;
    return cli_keep_whole_json(made, is_whole);
}

static void show(attention_runs *runs, const tg_attention *attention,
                 const tg_simulation *simulation)
{
    runs->has_findings |= simulation->finding_count > 0;
    keep_row(runs, attention, simulation);
    if (runs->query->has_json)
        runs->list = cli_keep_whole_json(
            runs->list, cli_append_json(runs->list, make_json(runs, attention, simulation)));
    else if (runs->chip_count == 1 || simulation->finding_count > 0 || runs->has_lines)
        cli_print_simulation(simulation, runs->query->shape, runs->has_lines);
}

static tg_status run_rung(attention_runs *runs, const char *name)
{
    tg_attention attention;
    tg_explanation explained;
    const tg_simulation *simulation = NULL;
    const tg_simulation_options options = {.kernel = name,
                                           .l2_bytes = runs->chips[0].chip.l2_bytes,
                                           .progress = show_progress,
                                           .progress_state = runs,
                                           .without_barrier = runs->without_barrier};
    tg_status status =
        cli_parse_rung_attention(runs->query->shape, runs->query->kernel, name, &attention);
    /* An attention that the rung does not take gets no memory. */
    if (status ||
        (status = tg_explain_attention(&runs->chips[0].chip, name, &attention, &explained)))
        return status;
    status = TG_STATUS_OUT_OF_MEMORY;
    if (cli_make_attention_tensors(&attention)) {
        cli_start_progress(&runs->progress, name);
        status = tg_simulate_attention(&options, &attention, &simulation);
        cli_end_progress(&runs->progress);
    }
    if (simulation)
        show(runs, &attention, simulation);
    tg_destroy_simulation(simulation);
    cli_free_attention_tensors(&attention);
    return status;
}

static int read_chips(attention_runs *runs)
{
    const cli_query *query = runs->query;
    int exit_code = CLI_EXIT_OK;
    runs->chip_count = query->gpu_count > 0 ? query->gpu_count : 1;
    for (int c = 0; c < runs->chip_count && exit_code == CLI_EXIT_OK; c++) {
        runs->chips[c] = (explain_case){.attention = query->shape};
        exit_code = cli_find_chip(query->gpu_count > 0 ? query->gpus[c] : default_chip, NULL,
                                  &runs->chips[c]);
    }
    return exit_code;
}

static void print_table(const attention_runs *runs)
{
    explain_row rows[LADDER_CAPACITY];
    for (int i = 0; i < runs->row_count; i++) {
        rows[i] = (explain_row){.kernel = runs->rows[i].kernel, .traffic = &runs->rows[i].traffic};
        memcpy(rows[i].predicted_s, runs->rows[i].predicted_s, sizeof rows[i].predicted_s);
    }
    cli_print_side_by_side(runs->chips, runs->chip_count, "counted by the simulator", rows,
                           runs->row_count);
}

int cli_simulate_attention(const cli_query *query, int has_lines, int without_barrier)
{
    static attention_runs runs; /* too large for a stack */
    const char *names[LADDER_CAPACITY];
    const int name_count = cli_list_attention_rungs(query->kernel, names);
    runs = (attention_runs){.query = query,
                            .has_lines = has_lines,
                            .without_barrier = without_barrier,
                            .progress = cli_make_progress(query->has_json)};
    int exit_code = read_chips(&runs);
    runs.list = query->has_json ? json_array() : NULL;
    for (int i = 0; i < name_count && exit_code == CLI_EXIT_OK; i++) {
        const tg_status status = run_rung(&runs, names[i]);
        if (status == TG_STATUS_UNSUPPORTED && name_count > 1 && !query->has_json)
            printf("%s\n\n", tg_get_error_detail());
        else if (status && (status != TG_STATUS_UNSUPPORTED || name_count == 1))
            exit_code = cli_report_status(status);
    }
    if (exit_code == CLI_EXIT_OK && query->has_json)
        exit_code = cli_print_json(name_count > 1 ? json_incref(runs.list)
                                                  : json_incref(json_array_get(runs.list, 0)));
    else if (exit_code == CLI_EXIT_OK && runs.chip_count > 1)
        print_table(&runs);
    json_decref(runs.list);
    return exit_code == CLI_EXIT_OK && runs.has_findings ? CLI_EXIT_WRONG : exit_code;
}
