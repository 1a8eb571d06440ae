/*
 * The planner for fit_model, which compiles this file with the planner's sources into a shared
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
    const tgi_backend *backend;
    tgi_machine machine;
    tgi_problem problem;
    const tgi_kernel *kernel;
} fit_record;
static fit_record *records;
static int record_count;

/* Returns the figures of a compute capability, or those of the CPU for 0, one value behind the
 * other. */
double *fit_find_figures(int capability)
{
    return capability ? (double *)tgi_figures_find(capability) : (double *)tgi_figures_find_cpu();
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
                                 .l3_bytes = l3_bytes};
    return add(&tgi_backend_cpu, &machine, shape, kernel_name);
}
#endif

/* Fills in the predicted seconds of all rows that were added. */
void fit_predict(double *seconds)
{
    for (int i = 0; i < record_count; i++)
        seconds[i] = predict(&records[i]);
}
