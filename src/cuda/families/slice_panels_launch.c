#include "cuda/families/slice_panels_launch.h"

#include "cuda/families/gemm_launch.h"

int64_t tgi_slice_panels_count_kinds(int64_t panel_rows)
{
    return panel_rows ? 4 : 1;
}

int tgi_slice_panels_describe(const tgi_problem *p, int64_t panel_rows, int64_t panel_cols,
                              int kind, tgi_problem *panel)
{
    *panel = *p;
    if (panel_rows == 0)
        return 1;
    panel->batch_count = 1;
    panel->m = kind / 2 ? p->m % panel_rows : panel_rows;
    panel->n = kind % 2 ? p->n % panel_cols : panel_cols;
    return panel->m > 0 && panel->n > 0;
}

tg_status tgi_slice_panels_launch(const tgi_cuda_queue *queue, const tgi_call *call,
                                  int64_t panel_rows, int64_t panel_cols,
                                  tgi_panel_launch *launch_panel, void *panels, size_t panel_bytes)
{
    const tgi_problem *p = call->problem;
    tg_status status = TG_STATUS_OK;
    if (panel_rows == 0)
        return launch_panel(queue, call, panels);
    for (int64_t batch = 0; batch < p->batch_count; batch++)
        for (int64_t col = 0; col < p->n; col += panel_cols)
            for (int64_t row = 0; !status && row < p->m; row += panel_rows) {
                const int is_edge_along_rows = p->m - row < panel_rows;
                const int is_edge_along_cols = p->n - col < panel_cols;
                const int kind = 2 * is_edge_along_rows + is_edge_along_cols;
                const tgi_call moved = tgi_gemm_move_call(call, batch, row, col);
                status = launch_panel(queue, &moved, (char *)panels + (size_t)kind * panel_bytes);
            }
    return status;
}
