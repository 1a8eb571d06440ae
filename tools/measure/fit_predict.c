/*
 * The GPU model for fit_model, which compiles this file with the planner's sources into a shared
 * object, and the figures without `const`, so that it can change them.
 */
#include <stdlib.h>

#include "core/problem.h"
#include "model/chips.h"
#include "model/figures.h"
#include "plan/candidates.h"
#include "plan/proposal.h"

/* A row and a problem, whose time is predicted again and again. */
typedef struct fit_record {
    tgi_machine machine;
    tgi_problem problem;
    const tgi_kernel *kernel;
} fit_record;
static fit_record *records;
static int record_count;

/* Returns the figures of a compute capability, one value behind the other. */
double *fit_find_figures(int capability)
{
    return (double *)tgi_figures_find(capability);
}

static double predict(const fit_record *record)
{
    tgi_proposal proposal;
    tgi_plan_propose(&tgi_backend_chip, &record->machine, &record->problem, record->kernel,
                     &proposal);
    return proposal.is_legal ? proposal.predicted_s : 0.0;
}

/* Keeps a row on a chip for fit_predict. Returns 0 if the row does not run the problem or the text
 * is none. */
int fit_add(const char *chip_name, const char *shape, const char *kernel_name)
{
    tg_chip chip;
    tg_problem problem;
    fit_record *grown = realloc(records, (size_t)(record_count + 1) * sizeof *records);
    if (!grown)
        return 0;
    records = grown;
    fit_record *record = &records[record_count];
    if (tg_find_chip(chip_name, &chip) || tg_parse_problem(shape, &problem, sizeof problem) ||
        tgi_plan_canonicalize(&tgi_backend_chip, &problem, &record->problem))
        return 0;
    record->machine = tgi_chips_make_machine(&chip);
    for (int i = 0; i < tgi_kernels_count(); i++) {
        record->kernel = tgi_kernels_get(i);
        if (tgi_kernels_match(record->kernel, kernel_name) && predict(record) > 0.0) {
            record_count++;
            return 1;
        }
    }
    return 0;
}

/* Fills in the predicted seconds of all rows that were added. */
void fit_predict(double *seconds)
{
    for (int i = 0; i < record_count; i++)
        seconds[i] = predict(&records[i]);
}
