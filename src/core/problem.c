/* Transposes the canonical problem. */
#include "core/problem.h"

static tgi_layout transpose_layout(tgi_layout layout)
{
    return (tgi_layout){layout.col, layout.row, layout.batch};
}

static tg_bias transpose_bias(tg_bias bias)
{
    return bias == TG_BIAS_ROW ? TG_BIAS_COL : bias == TG_BIAS_COL ? TG_BIAS_ROW : TG_BIAS_NONE;
}

#define TRANSPOSE_MATRIX(name, partner) problem->name = transpose_layout(old.partner)
#define TRANSPOSE_BIAS(name, partner) problem->epilogue.name = transpose_bias(old.epilogue.partner)
#define TRANSPOSE_SCALE(name, partner) problem->epilogue.name = old.epilogue.partner

void tgi_problem_transpose(tgi_problem *problem)
{
    const tgi_problem old = *problem;
    problem->m = old.n;
    problem->n = old.m;
    problem->type = old.b_type;
    problem->b_type = old.type;
    problem->is_a_offset = old.is_b_offset;
    problem->is_b_offset = old.is_a_offset;
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, ...)                       \
    TRANSPOSE_##form(name, partner);
#include "core/operands.def"
#undef TGI_OPERAND
}
