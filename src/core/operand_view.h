/* Accesses the operands of the canonical problem by their ids. The functions are inlined, so that a
 * constant id leaves nothing of the list. */
#ifndef TGI_OPERAND_VIEW_H
#define TGI_OPERAND_VIEW_H

#include "core/problem.h"

/* Returns the layout of a matrix, or NULL for a vector. Like strchr it takes a constant problem and
 * returns a layout that is not constant. */
static inline tgi_layout *tgi_problem_get_layout(const tgi_problem *problem, int id)
{
    switch (id) {
#define TGI_OPERAND(name, title, form, ...)                                                        \
    TGI_MATRIX_CASE_##form(name, return (tgi_layout *)&problem->name)
#include "core/operands.def"
#undef TGI_OPERAND
    }
    return NULL;
}

/* Returns the kind of a vector, a tg_bias or a tg_scale, or 0 for a matrix. */
static inline int tgi_problem_get_kind(const tgi_problem *problem, int id)
{
    switch (id) {
#define TGI_OPERAND(name, title, form, ...)                                                        \
    TGI_VECTOR_CASE_##form(name, return (int)problem->epilogue.name)
#include "core/operands.def"
#undef TGI_OPERAND
    }
    return 0;
}

/* Returns the type of an operand's elements. */
static inline tg_type tgi_problem_get_type(const tgi_problem *problem, int id)
{
    switch (tgi_operands_get(id)->type) {
    case TGI_ELEMENT_a_type:
        return problem->type;
    case TGI_ELEMENT_b_type:
        return problem->b_type;
    case TGI_ELEMENT_d_type:
        return problem->d_type;
    case TGI_ELEMENT_fp32:
        break;
    }
    return TG_TYPE_FP32;
}

static inline int64_t tgi_problem_get_extent(const tgi_problem *problem, tgi_operand_extent extent)
{
    switch (extent) {
    case TGI_EXTENT_m:
        return problem->m;
    case TGI_EXTENT_n:
        return problem->n;
    case TGI_EXTENT_k:
        return problem->k;
    case TGI_EXTENT_one:
        break;
    }
    return 1;
}

/* A view is an operand as a matrix. A vector is a column of its values in a batch of one. */
typedef struct tgi_operand_view {
    int64_t row_count, col_count, batch_count;
    tgi_layout layout;
    tg_type type;
} tgi_operand_view;

static inline tgi_operand_view tgi_problem_view_operand(const tgi_problem *problem, int id)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    const tgi_layout *layout = tgi_problem_get_layout(problem, id);
    if (layout) {
        return (tgi_operand_view){tgi_problem_get_extent(problem, row->rows),
                                  tgi_problem_get_extent(problem, row->cols), problem->batch_count,
                                  *layout, tgi_problem_get_type(problem, id)};
    }
    const int kind = tgi_problem_get_kind(problem, id);
    return (tgi_operand_view){tgi_operands_count_values(id, kind, problem->m, problem->n),
                              1,
                              1,
                              {1, 1, 0},
                              tgi_problem_get_type(problem, id)};
}

/* Returns the address of the part of an operand that belongs to element (row, col) of batch entry
 * `batch` of D, or NULL if data is NULL. */
static inline void *tgi_problem_find_element(const tgi_problem *problem, int id, const void *data,
                                             int64_t batch, int64_t row, int64_t col)
{
    const tgi_operand_row *operand = tgi_operands_get(id);
    const tgi_layout *layout = tgi_problem_get_layout(problem, id);
    const int kind = tgi_problem_get_kind(problem, id);
    int64_t offset = 0;
    if (operand->rows != TGI_EXTENT_m)
        row = 0;
    if (operand->cols != TGI_EXTENT_n)
        col = 0;
    if (layout)
        offset = batch * layout->batch + row * layout->row + col * layout->col;
    else if (operand->form == TGI_FORM_BIAS)
        offset = kind == TG_BIAS_ROW ? row : kind == TG_BIAS_COL ? col : 0;
    else if (kind == TG_SCALE_VECTOR)
        offset = row + col;
    offset *= tgi_type_bytes(tgi_problem_get_type(problem, id));
    return data ? (char *)(uintptr_t)data + offset : NULL;
}

#endif
