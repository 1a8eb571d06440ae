/*
 * The planner for fit_model, which compiles this file with the planner's sources into a shared
 * object, and the figures without `const`, so that it can change them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem.h"
#include "cuda/families/attend.h"
#include "model/chips.h"
#include "model/figures.h"
#include "plan/candidates.h"
#include "plan/proposal.h"

/* A row and a problem, whose time is predicted again and again. */
typedef struct fit_record {
    const tgi_backend *backend;
    tgi_machine machine;
    tgi_problem problem;
    const tgi_kernel *kernel;
} fit_record;
static fit_record *records;
static int record_count;

/* A choice of attention on a machine. */
typedef struct fit_choice {
    tgi_machine machine;
    tg_attention attention;
    tgi_attention_choice choice;
} fit_choice;
static fit_choice *choices;
static int choice_count;

/* Return figures, one value behind the other. */
double *fit_find_figures(int capability)
{
    return (double *)tgi_figures_find(capability);
}

double *fit_find_cpu_figures(void)
{
    return (double *)tgi_figures_find_cpu();
}

double *fit_find_attention_figures(void)
{
    return (double *)tgi_figures_find_attention();
}

static double predict(const fit_record *record)
{
    tgi_proposal proposal;
    tgi_plan_propose(record->backend, &record->machine, &record->problem, record->kernel,
                     &proposal);
    return proposal.is_legal ? proposal.predicted_s : 0.0;
}

/* Keeps a row on a machine for fit_predict. Returns 0 if the row does not run the problem or the
 * text is none. */
static int add(const tgi_backend *backend, const tgi_machine *machine, const char *shape,
               const char *kernel_name)
{
    tg_problem problem;
    fit_record *grown = realloc(records, (size_t)(record_count + 1) * sizeof *records);
    if (!grown)
        return 0;
    records = grown;
    fit_record *record = &records[record_count];
    record->backend = backend;
    record->machine = *machine;
    if (tg_parse_problem(shape, &problem, sizeof problem) ||
        tgi_plan_canonicalize(backend, &problem, &record->problem))
        return 0;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        record->kernel = tgi_kernels_get(i);
        if (tgi_kernels_match(record->kernel, kernel_name) && predict(record) > 0.0) {
            /* The calls of family packed in plans_zen5.csv form D, never D^T, as the family does
             * beside an activation. A ReLU takes no time. */
            tgi_epilogue *epilogue = &record->problem.epilogue;
            if (record->kernel->family == TGI_FAMILY_cpu_packed &&
                epilogue->activation == TG_ACTIVATION_NONE)
                epilogue->activation = TG_ACTIVATION_RELU;
            record_count++;
            return 1;
        }
    }
    return 0;
}

int fit_add(const char *chip_name, const char *shape, const char *kernel_name)
{
    tg_chip chip;
    if (tg_find_chip(chip_name, &chip))
        return 0;
    const tgi_machine machine = tgi_chips_make_machine(&chip);
    return add(&tgi_backend_chip, &machine, shape, kernel_name);
}

#ifdef FIT_CPU
/* Does the same for a CPU with data caches of these bytes. */
int fit_add_cpu(const char *isa_name, int64_t l1_bytes, int64_t l2_bytes, int64_t l3_bytes,
                int thread_count, const char *shape, const char *kernel_name)
{
    const tgi_isa isa = tgi_kernels_find_isa(isa_name);
    const tgi_machine machine = {.features = tgi_kernels_isa_features(isa),
                                 .isa = isa,
                                 .thread_count = thread_count,
                                 .l1_bytes = l1_bytes,
                                 .l2_bytes = l2_bytes,
                                 .l3_bytes = l3_bytes,
                                 .is_hot = 1};
    return add(&tgi_backend_cpu, &machine, shape, kernel_name);
}
#endif

/* Fills in the predicted seconds of all rows that were added. */
void fit_predict(double *seconds)
{
    for (int i = 0; i < record_count; i++)
        seconds[i] = predict(&records[i]);
}

/* A choice that is looked for among those of the planner. */
typedef struct fit_wanted {
    const char *key;
    tgi_attention_choice *found; /* has no row until it is found */
} fit_wanted;

/* Keeps the choice if it has the key, as measure_attention writes it. */
static void keep_wanted(const tgi_attention_choice *choice, void *state)
{
    const fit_wanted *wanted = state;
    char key[256];
    snprintf(key, sizeof key, "%s,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld", choice->row->name,
             (long long)choice->query_tile, (long long)choice->subtile_count,
             (long long)choice->shared_heads, (long long)choice->cluster_count,
             (long long)choice->warp_split_count, (long long)choice->split_count,
             (long long)choice->step_keys, (long long)choice->kept_keys);
    if (strcmp(key, wanted->key) == 0)
        *wanted->found = *choice;
}

/* Keeps a choice of attention for fit_predict_attention. Returns 0 if the planner has no such
 * choice. */
int fit_add_attention(const char *chip_name, const char *text, const char *key)
{
    tg_chip chip;
    fit_choice *grown = realloc(choices, (size_t)(choice_count + 1) * sizeof *choices);
    if (!grown)
        return 0;
    choices = grown;
    fit_choice *added = &choices[choice_count];
    memset(added, 0, sizeof *added);
    fit_wanted wanted = {key, &added->choice};
    if (tg_find_chip(chip_name, &chip) ||
        tg_parse_attention(text, &added->attention, sizeof added->attention))
        return 0;
    added->machine = tgi_chips_make_machine(&chip);
    tgi_cuda_visit_choices(&added->machine, &added->attention, keep_wanted, &wanted);
    if (!added->choice.row)
        return 0;
    choice_count++;
    return 1;
}

/* Fills in the predicted seconds of all choices that were added. */
void fit_predict_attention(double *seconds)
{
    for (int i = 0; i < choice_count; i++)
        seconds[i] = 1e-9 * tgi_cuda_predict_attention(&choices[i].machine, &choices[i].attention,
                                                       &choices[i].choice);
}
