/*
 * The GPU model for fit_model, which compiles this file with the planner's sources into a shared
 * object, and the figures without `const`, so that it can change them.
 */
#include "core/problem.h"
#include "model/chips.h"
#include "model/figures.h"
#include "plan/candidates.h"
#include "plan/proposal.h"

/* Returns the figures of a compute capability, one value behind the other. */
double *fit_find_figures(int capability)
{
    return (double *)tgi_figures_find(capability);
}

/* Returns the predicted seconds of a row on a chip, or 0 if the row does not run the problem or the
 * text is none. */
double fit_predict(const char *chip_name, const char *shape, const char *kernel_name)
{
    tg_chip chip;
    tg_problem problem;
    tgi_problem canonical;
    tgi_proposal proposal;
    if (tg_find_chip(chip_name, &chip) || tg_parse_problem(shape, &problem, sizeof problem) ||
        tgi_plan_canonicalize(&tgi_backend_chip, &problem, &canonical))
        return 0.0;
    const tgi_machine machine = tgi_chips_make_machine(&chip);
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_kernel *kernel = tgi_kernels_get(i);
        if (!tgi_kernels_match(kernel, kernel_name))
            continue;
        tgi_plan_propose(&tgi_backend_chip, &machine, &canonical, kernel, &proposal);
        return proposal.is_legal ? proposal.predicted_s : 0.0;
    }
    return 0.0;
}
