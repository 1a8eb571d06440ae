#include "cuda/families/slice_panels.h"

#include "core/checked.h"
#include "cuda/families/slices.h"

/* The default limit is a sixteenth of the GPU's memory, and at least 256 MiB. */
#define LIMIT_BYTES_LEAST ((int64_t)256 << 20)
#define MEMORY_SHARE 16
#define PANEL_UNIT 256               /* rows or columns, a multiple of every tile and cluster */
#define LINES_MAX (INT32_MAX - 1023) /* most rows, and columns, of a panel */
/* At most STRIPS_TRIED counts of strips of the columns are tried, up to STRIPS_RATIO times the
 * fewest that fit. */
#define STRIPS_TRIED 128
#define STRIPS_RATIO 4

typedef long long ll; /* for printf */

int64_t tgi_panels_find_limit(const tgi_machine *machine)
{
    const int64_t share = machine->gpu.memory_bytes / MEMORY_SHARE;
    if (machine->workspace_limit_bytes)
        return machine->workspace_limit_bytes;
    return share > LIMIT_BYTES_LEAST ? share : LIMIT_BYTES_LEAST;
}

/* Returns the most bytes of slices. The rows of a kernel's tiles may be rows or columns of D, and a
 * kernel that slices those in registers has slices of the other operand alone. */
static int64_t count_slice_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                                 const tgi_problem *p)
{
    tgi_problem transposed = *p;
    tgi_problem_transpose(&transposed);
    const int64_t bytes = tgi_slices_workspace_bytes(machine, kernel, p, TGI_WGMMA_SPLITS_MAX);
    const int64_t other_bytes =
        tgi_slices_workspace_bytes(machine, kernel, &transposed, TGI_WGMMA_SPLITS_MAX);
    return bytes > other_bytes ? bytes : other_bytes;
}

/* Returns the bytes of the slices and of the most partial tiles. */
static int64_t count_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                           const tgi_problem *p)
{
    const int64_t tile_bytes = (int64_t)kernel->tile_rows * kernel->tile_cols * 4;
    const int64_t rounds = p->is_batch_invariant ? TGI_WGMMA_RUN_ROUNDS : TGI_WGMMA_SPLIT_ROUNDS;
    return tgi_checked_add(count_slice_bytes(machine, kernel, p),
                           rounds * machine->gpu.sm_count * tile_bytes);
}

/* Returns 1 if the workspace of the problem stays within the limit, and its lines can be counted in
 * 32 bits. */
static int fits(const tgi_machine *machine, const tgi_kernel *kernel, const tgi_problem *p)
{
    return p->m <= LINES_MAX && p->n <= LINES_MAX &&
           count_bytes(machine, kernel, p) <= tgi_panels_find_limit(machine);
}

int tgi_panels_fit(const tgi_machine *machine, const tgi_problem *p)
{
    tgi_problem panel = *p;
    panel.m = panel.n = PANEL_UNIT;
    panel.batch_count = 1;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_kernel *kernel = tgi_kernels_get(i);
        if (kernel->family == TGI_FAMILY_cuda_bf16x && fits(machine, kernel, &panel))
            return 1;
    }
    return 0;
}

static int64_t divide_evenly(int64_t count, int64_t strips)
{
    return tgi_round_up(tgi_divide_up(count, strips), PANEL_UNIT);
}

/* Sets the rows of the panel to the most that fit beside its columns. Returns 0 if none fit. */
static int choose_rows(const tgi_machine *machine, const tgi_kernel *kernel, int64_t m,
                       tgi_problem *panel)
{
    int64_t low = 0, high = tgi_divide_up(m, PANEL_UNIT); /* units; `low` of them fit */
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        panel->m = middle * PANEL_UNIT;
        if (fits(machine, kernel, panel))
            low = middle;
        else
            high = middle - 1;
    }
    panel->m = low > 0 ? divide_evenly(m, tgi_divide_up(m, low * PANEL_UNIT)) : 0;
    return low > 0;
}

/* Returns the fewest strips into which n columns are split so that one strip fits beside PANEL_UNIT
 * rows, or one more than there can be if none fits. */
static int64_t find_fewest_strips(const tgi_machine *machine, const tgi_kernel *kernel, int64_t n,
                                  tgi_problem panel)
{
    int64_t low = 1, high = tgi_divide_up(n, PANEL_UNIT) + 1; /* high fits, or is one too many */
    panel.m = PANEL_UNIT;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        panel.n = divide_evenly(n, middle);
        if (fits(machine, kernel, &panel))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

double tgi_panels_choose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal,
                         tgi_slice_panel *size, tgi_problem *panel)
{
    const tgi_kernel *kernel = proposal->kernel;
    double least_lines = 0.0, count = 0.0;
    *size = (tgi_slice_panel){0};
    *panel = *p;
    if (fits(machine, kernel, p))
        return 1.0;
    panel->batch_count = 1;
    if (fits(machine, kernel, panel)) {
        size->rows = p->m;
        size->cols = p->n;
        return (double)p->batch_count;
    }
    /* A line is sliced again for each panel that reads it. The sum of a panel's rows and columns is
     * the same for any number of strips, so panels with less than a quarter of the columns that fit
     * read more lines than others. */
    const int64_t fewest = find_fewest_strips(machine, kernel, p->n, *panel);
    const int64_t most = tgi_divide_up(p->n, PANEL_UNIT);
    const int64_t last = most < STRIPS_RATIO * fewest ? most : STRIPS_RATIO * fewest;
    const int64_t stride = tgi_divide_up(last - fewest + 1, STRIPS_TRIED);
    for (int64_t strips = fewest; strips <= last; strips += stride) {
        panel->n = divide_evenly(p->n, strips);
        if (!choose_rows(machine, kernel, p->m, panel))
            continue;
        const double panels = (double)tgi_divide_up(p->m, panel->m) *
                              (double)tgi_divide_up(p->n, panel->n) * (double)p->batch_count;
        const double lines = panels * (double)(panel->m + panel->n);
        if (count > 0.0 && lines >= least_lines)
            continue;
        count = panels;
        least_lines = lines;
        size->rows = panel->m;
        size->cols = panel->n;
    }
    panel->m = size->rows;
    panel->n = size->cols;
    if (count == 0.0)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_WORKSPACE,
                   "slices of %d rows and columns need more than %lld bytes of workspace",
                   PANEL_UNIT, (ll)tgi_panels_find_limit(machine));
    return count;
}
