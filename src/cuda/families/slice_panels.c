#include "cuda/families/slice_panels.h"

#include "cuda/families/gemm.h"
#include "cuda/families/slices.h"

#define LIMIT_BYTES_LEAST ((int64_t)256 << 20) /* of the default limit, */
#define MEMORY_SHARE 16                        /* or this part of the GPU's memory */
#define PANEL_UNIT 256                         /* rows, columns: whole tiles and clusters */

typedef long long ll; /* for printf */

static int64_t find_limit(const tgi_machine *machine)
{
    const int64_t share = machine->gpu.memory_bytes / MEMORY_SHARE;
    if (machine->workspace_limit_bytes)
        return machine->workspace_limit_bytes;
    return share > LIMIT_BYTES_LEAST ? share : LIMIT_BYTES_LEAST;
}

/* Of the slices, and of parts of k of as many tiles as are ever cut. */
static int64_t count_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                           const tgi_problem *p)
{
    const int64_t tile_bytes = (int64_t)kernel->tile_rows * kernel->tile_cols * 4;
    return tgi_slices_workspace_bytes(machine, kernel, p, TGI_WGMMA_PARTS_MAX) +
           TGI_WGMMA_CUT_ROUNDS * machine->gpu.sm_count * tile_bytes;
}

static int fits(const tgi_machine *machine, const tgi_kernel *kernel, const tgi_problem *p)
{
    return count_bytes(machine, kernel, p) <= find_limit(machine);
}

static int64_t divide_evenly(int64_t count, int64_t parts)
{
    return tgi_divide_up(tgi_divide_up(count, parts), PANEL_UNIT) * PANEL_UNIT;
}

/* Gives the panel as many rows as fit beside its columns; 0 where none do. */
static int choose_rows(const tgi_machine *machine, const tgi_kernel *kernel, int64_t m,
                       tgi_problem *panel)
{
    int64_t low = 0, high = tgi_divide_up(m, PANEL_UNIT); /* in units: low fit */
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

double tgi_panels_choose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal,
                         tgi_problem *panel)
{
    const tgi_kernel *kernel = proposal->kernel;
    double least_lines = 0.0, count = 0.0;
    proposal->blocking.mc = proposal->blocking.nc = 0;
    *panel = *p;
    if (fits(machine, kernel, p))
        return 1.0;
    panel->batch_count = 1;
    if (fits(machine, kernel, panel)) {
        proposal->blocking.mc = p->m;
        proposal->blocking.nc = p->n;
        return (double)p->batch_count;
    }
    /* Lines are sliced again for each panel that they meet. */
    for (int64_t parts = 1; parts <= tgi_divide_up(p->n, PANEL_UNIT); parts++) {
        panel->n = divide_evenly(p->n, parts);
        if (!choose_rows(machine, kernel, p->m, panel))
            continue;
        const double panels = (double)tgi_divide_up(p->m, panel->m) *
                              (double)tgi_divide_up(p->n, panel->n) * (double)p->batch_count;
        const double lines = panels * (double)(panel->m + panel->n);
        if (count > 0.0 && lines >= least_lines)
            continue;
        count = panels;
        least_lines = lines;
        proposal->blocking.mc = panel->m;
        proposal->blocking.nc = panel->n;
    }
    panel->m = proposal->blocking.mc;
    panel->n = proposal->blocking.nc;
    if (count == 0.0)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_WORKSPACE,
                   "slices of %d rows and columns need more than %lld bytes of workspace",
                   PANEL_UNIT, (ll)find_limit(machine));
    return count;
}

static const void *move(const void *data, int64_t elems)
{
    return data ? (const char *)data + elems * 4 : NULL;
}

static int64_t find_offset(const tgi_layout *layout, int64_t batch, int64_t row, int64_t col)
{
    return batch * layout->batch + row * layout->row + col * layout->col;
}

/* The part of `call` from (row, col) of batch entry `batch` on: FP32 throughout. */
static tg_status launch_panel(const tgi_cuda_queue *queue, const tgi_call *call,
                              tgi_cuda_launch_call *launch, int64_t batch, int64_t row, int64_t col)
{
    tgi_problem panel = *call->problem;
    tgi_blocking blocking = *call->blocking;
    tgi_call part = *call;
    panel.batch_count = 1;
    panel.m = panel.m - row < blocking.mc ? panel.m - row : blocking.mc;
    panel.n = panel.n - col < blocking.nc ? panel.n - col : blocking.nc;
    if (panel.m < blocking.mc || panel.n < blocking.nc) { /* parts of k were chosen for others */
        blocking.kc = panel.k;
        blocking.k_parts = blocking.cluster_parts = 1;
    }
    part.problem = &panel;
    part.blocking = &blocking;
    part.a = move(call->a, find_offset(&panel.a, batch, row, 0));
    part.b = move(call->b, find_offset(&panel.b, batch, 0, col));
    part.c = move(call->c, find_offset(&panel.c, batch, row, col));
    part.d = (float *)call->d + find_offset(&panel.d, batch, row, col);
    part.bias = move(call->bias, panel.bias == TG_BIAS_ROW ? row : col);
    return launch(queue, &part);
}

tg_status tgi_panels_launch(const tgi_cuda_queue *queue, const tgi_call *call,
                            tgi_cuda_launch_call *launch)
{
    const tgi_problem *p = call->problem;
    const tgi_blocking *blocking = call->blocking;
    if (blocking->mc == 0)
        return launch(queue, call);
    tg_status status = TG_STATUS_OK;
    for (int64_t batch = 0; batch < p->batch_count; batch++)
        for (int64_t col = 0; col < p->n; col += blocking->nc)
            for (int64_t row = 0; !status && row < p->m; row += blocking->mc)
                status = launch_panel(queue, call, launch, batch, row, col);
    return status;
}
