#include "cuda/families/slice_panels_launch.h"

#include "cuda/families/gemm_launch.h"

int64_t tgi_slice_panels_count_kinds(const tgi_slice_panel *size)
{
    return size->rows ? 4 : 1;
}

int tgi_slice_panels_describe(const tgi_problem *p, const tgi_slice_panel *size, int kind,
                              tgi_problem *panel)
{
    *panel = *p;
    if (size->rows == 0)
        return 1;
    panel->batch_count = 1;
    panel->m = kind / 2 ? p->m % size->rows : size->rows;
    panel->n = kind % 2 ? p->n % size->cols : size->cols;
    return panel->m > 0 && panel->n > 0;
}

tg_status tgi_slice_panels_launch(const tgi_cuda_queue *queue, const tgi_call *call,
                                  const tgi_slice_panel *size, tgi_panel_launch *launch_panel,
                                  void *panels, size_t panel_bytes)
{
    const tgi_problem *p = call->problem;
    tg_status status = TG_STATUS_OK;
    if (size->rows == 0)
        return launch_panel(queue, call, panels);
    for (int64_t batch = 0; batch < p->batch_count; batch++)
        for (int64_t col = 0; col < p->n; col += size->cols)
            for (int64_t row = 0; !status && row < p->m; row += size->rows) {
                const int is_edge_along_rows = p->m - row < size->rows;
                const int is_edge_along_cols = p->n - col < size->cols;
                const int kind = 2 * is_edge_along_rows + is_edge_along_cols;
                const tgi_call moved = tgi_gemm_move_call(call, batch, row, col);
                status = launch_panel(queue, &moved, (char *)panels + (size_t)kind * panel_bytes);
            }
    return status;
}
