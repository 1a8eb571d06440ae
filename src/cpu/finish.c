/* This file runs the epilogue of a block of D: it finds the parts of the operands that belong to
 * it. */
#include "core/operand_view.h"
#include "cpu/cpu.h"

void tgi_cpu_finish(const tgi_call *call, tgi_finish_fn *finish, int64_t batch, int64_t row,
                    int64_t col, tgi_finish *block)
{
    const tgi_problem *p = call->problem;
    block->problem = p;
#define FIND_ELEMENT(name)                                                                         \
    block->name = tgi_problem_find_element(p, TGI_OPERAND_##name, call->name, batch, row, col);
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_EPILOGUE_##role(FIND_ELEMENT(name))
#include "core/operands.def"
#undef TGI_OPERAND
    if (!block->running) {
        block->running = block->d;
        block->running_row = p->d.row;
    }
    finish(block);
}

tg_status tgi_cpu_run_epilogue_alone(const tgi_call *call)
{
    static const double zeros[64];
    const int64_t width = 64;
    const tgi_problem *p = call->problem;
    tgi_finish_fn *finish = tgi_isa_generic[p->type].finish;
    for (int64_t batch = 0; batch < p->batch_count; batch++) {
        for (int64_t row = 0; row < p->m; row++) {
            for (int64_t col = 0; col < p->n; col += width) {
                tgi_finish block = {.rows = 1,
                                    .cols = p->n - col < width ? p->n - col : width,
                                    .sums = zeros,
                                    .is_first = 1,
                                    .is_last = 1};
                tgi_cpu_finish(call, finish, batch, row, col, &block);
            }
        }
    }
    return TG_STATUS_OK;
}
