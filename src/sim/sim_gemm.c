#include "sim/sim_gemm.h"

#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "core/operand_view.h"
#include "core/status.h"
#include "cuda/families/family.h"
#include "cuda/runtime/launch.h"
#include "kernels/mma/mma_shape.h"
#include "kernels/mma/mma_slices_args.h"

#define GROUP_TILE_ROWS 8 /* as the launch on a GPU numbers tiles */
#define UNIT_BYTES 16     /* the widest access */

static int64_t count_shared_bytes(const tgi_kernel *row)
{
    return TGI_MMA_SHARED_BYTES(row->tile_rows, row->tile_cols, row->tile_depth,
                                tgi_type_bytes(row->type), row->stage_count, row->thread_count);
}

static int64_t count_tiles(const tgi_kernel *row, const tgi_problem *p)
{
    return tgi_divide_up(p->m, row->tile_rows) * tgi_divide_up(p->n, row->tile_cols) *
           p->batch_count;
}

/* Returns 1 if lines of an operand run along k: its elements lie closer there. */
static int is_along_k(int64_t k_stride, int64_t entry_stride)
{
    return k_stride == 1 || (entry_stride != 1 && llabs(k_stride) < llabs(entry_stride));
}

void tgi_sim_prepare_gemm(const tgi_sim_kernel *kernel, const tgi_problem *p, tgi_gemm_args *args,
                          tgi_sim_launch *launch)
{
    const tgi_kernel *row = &kernel->row;
    memset(args, 0, sizeof *args);
    args->problem = *p;
    args->a_along_k = is_along_k(p->a.col, p->a.row);
    args->b_along_k = is_along_k(p->b.row, p->b.col);
    args->is_sum_alone = tgi_epilogue_is_sum_alone(&p->epilogue);
    args->is_plain = args->is_sum_alone && p->d_type == TG_TYPE_FP32;
    args->split_elems = p->k;
    args->split_count = 1;
    args->tile_rows_per_group = GROUP_TILE_ROWS;
    const int unit = UNIT_BYTES / (int)tgi_type_bytes(p->d_type);
    args->d_vector_elems =
        p->d.col == 1 && p->d.row % unit == 0 && p->d.batch % unit == 0 ? unit : 1;
    launch->body = kernel->body;
    launch->args = args;
    launch->args_bytes = sizeof *args;
    launch->type = p->type;
    launch->m = (int)p->m;
    launch->n = (int)p->n;
    launch->k = (int)p->k;
    launch->shared_bytes = count_shared_bytes(row);
    launch->grid[0] = (unsigned)count_tiles(row, p);
    launch->grid[1] = 1;
    launch->block[0] = (unsigned)row->thread_count;
    launch->block[1] = 1;
}

/* Returns the bytes from the first to the last element of an operand, which `data` points into. */
static tgi_sim_range find_range(const tgi_operand_view *view, const void *data)
{
    const int64_t counts[] = {view->row_count, view->col_count, view->batch_count};
    const int64_t strides[] = {view->layout.row, view->layout.col, view->layout.batch};
    const int64_t elem_bytes = tgi_type_bytes(view->type);
    int64_t low = 0, high = elem_bytes;
    for (int i = 0; i < 3; i++) {
        const int64_t reach = (counts[i] - 1) * strides[i] * elem_bytes;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    return (tgi_sim_range){(uintptr_t)data + (uintptr_t)low, (uintptr_t)data + (uintptr_t)high};
}

/* Lists the operands of a call that hold elements. D is the first, because C may lie in its
 * place. */
static void list_operands(const tgi_call *call, tgi_sim_launch *launch)
{
    static const char names[] = {'A', 'B', 'C', 'V', 'V', 'V', 'V', 'D'};
    int count = 1;
#define TGI_OPERAND(name, title, form, role, ...)                                                  \
    if (call->name) {                                                                              \
        const int is_output = TGI_OPERAND_##name == TGI_OPERAND_d;                                 \
        const tgi_operand_view view = tgi_problem_view_operand(call->problem, TGI_OPERAND_##name); \
        launch->operands[is_output ? 0 : count++] =                                                \
            (tgi_sim_operand){names[TGI_OPERAND_##name], (int)tgi_type_bytes(view.type),           \
                              is_output, find_range(&view, call->name)};                           \
    }
#include "core/operands.def"
#undef TGI_OPERAND
    launch->operand_count = count;
}

void tgi_sim_complete_gemm(const tgi_call *call, tgi_gemm_args *args, tgi_sim_launch *launch)
{
#define TGI_FACTOR(name, value) args->problem.epilogue.name = call->problem->epilogue.name;
#define TGI_OPERAND(name, ...) args->name = call->name;
#include "core/operands.def"
#undef TGI_FACTOR
#undef TGI_OPERAND
    list_operands(call, launch);
    if ((uintptr_t)call->d % UNIT_BYTES)
        args->d_vector_elems = 1;
}

/* The queue of a call whose kernels the simulator runs. */
typedef struct sim_queue {
    tgi_cuda_queue queue; /* first member: the runner has its address */
    const tgi_call *call;
    int64_t workspace_bytes;
} sim_queue;

static tg_status run_kernel(const tgi_cuda_queue *queue, tgi_cuda_kernel *kernel, void **arguments)
{
    const sim_queue *own = (const sim_queue *)queue;
    const tgi_call *call = own->call;
    char text[400];
    tgi_sim_record record = {.counts = NULL};
    tgi_sim_launch launch = {.body = tgi_sim_find_body(kernel->symbol),
                             .args = arguments[0],
                             .args_bytes = sizeof(tgi_mma_slices_args), /* the longest */
                             .type = call->problem->type,
                             .shared_bytes = kernel->shared_bytes,
                             .grid = {kernel->grid[0], kernel->grid[1]},
                             .block = {kernel->block[0], kernel->block[1]}};
    if (!launch.body)
        return tgi_status_fail(TG_STATUS_UNSUPPORTED, "the simulator lacks kernel %.80s",
                               kernel->symbol);
    list_operands(call, &launch);
    if (own->workspace_bytes > 0) {
        const uintptr_t low = (uintptr_t)call->workspace;
        launch.operands[launch.operand_count++] =
            (tgi_sim_operand){'W', 4, 1, {low, low + (uintptr_t)own->workspace_bytes}};
    }
    const tg_status status = tgi_sim_run(&launch, &record);
    if (status || record.finding_count == 0)
        return status;
    tgi_sim_describe(&record.findings[0], kernel->symbol, launch.block, text, sizeof text);
    return tgi_status_fail(TG_STATUS_DEVICE_FAILURE, "%s", text);
}

tg_status tgi_sim_launch_gemm(const tgi_call *call, int64_t workspace_bytes)
{
    const sim_queue own = {{.runner = run_kernel}, call, workspace_bytes};
    return tgi_cuda_launch_call(&own.queue, call);
}
