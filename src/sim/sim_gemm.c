#include "sim/sim_gemm.h"

#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "core/operand_view.h"
#include "kernels/mma/mma_shape.h"
#include "model/tile_model.h"

#define GROUP_TILE_ROWS 8 /* as the launch on a GPU numbers tiles */
#define UNIT_BYTES 16     /* the widest access */
#define COUNT_MAX (INT32_MAX - 1023)

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
    args->k_part_elems = p->k;
    args->k_part_count = 1;
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

void tgi_sim_complete_gemm(const tgi_call *call, tgi_gemm_args *args, tgi_sim_launch *launch)
{
    static const char names[] = {'A', 'B', 'C', 'V', 'V', 'V', 'V', 'D'};
    int count = 1; /* D is the first, because C may lie in its place */
#define TGI_FACTOR(name, value) args->problem.epilogue.name = call->problem->epilogue.name;
#define TGI_OPERAND(name, title, form, role, ...)                                                  \
    args->name = call->name;                                                                       \
    if (call->name) {                                                                              \
        const int is_output = TGI_OPERAND_##name == TGI_OPERAND_d;                                 \
        const tgi_operand_view view =                                                              \
            tgi_problem_view_operand(&args->problem, TGI_OPERAND_##name);                          \
        launch->operands[is_output ? 0 : count++] =                                                \
            (tgi_sim_operand){names[TGI_OPERAND_##name], (int)tgi_type_bytes(view.type),           \
                              is_output, find_range(&view, call->name)};                           \
    }
#include "core/operands.def"
#undef TGI_FACTOR
#undef TGI_OPERAND
    launch->operand_count = count;
    if ((uintptr_t)call->d % UNIT_BYTES)
        args->d_vector_elems = 1;
}

void tgi_sim_propose_gemm(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *row = proposal->kernel;
    const int64_t sizes[] = {p->m, p->n, p->k, p->batch_count, count_tiles(row, p)};
    if (!tgi_refusal_check_epilogue(&proposal->refusal, &p->epilogue, TGI_BY_FRAGMENTS))
        return;
    if (p->precision != TG_PRECISION_DEFAULT) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION,
                   "computes %s only in precision default", tg_get_type_name(p->type));
        return;
    }
    for (int i = 0; i < 5; i++) {
        if (sizes[i] > COUNT_MAX) {
            tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                       "the kernel counts to %d; a size is %lld", COUNT_MAX, (long long)sizes[i]);
            return;
        }
    }
    const tgi_tile_work work = {.block_count = (double)count_tiles(row, p),
                                .block_k = (double)p->k,
                                .part_count = 1.0,
                                .copy_bytes = 16.0,
                                .blocks_per_sm = TGI_MMA_BLOCKS_PER_SM(
                                    row->thread_rows * row->thread_cols, row->thread_count)};
    proposal->is_legal = 1;
    proposal->shared_bytes = count_shared_bytes(row);
    proposal->predicted_s = proposal->serial_s =
        tgi_model_mma_seconds(&machine->gpu, row, p, &work);
}
