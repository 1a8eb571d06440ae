/* The first half of VALIDATE checks the arguments of a call one by one. */
#include <stdio.h>

#include "core/operand_view.h"
#include "core/status.h"

typedef long long ll; /* for printf */

/* `text` is the value's name, NULL for a value outside its enum. */
static tg_status check_enum(const char *name, const char *member, const char *text, int value)
{
    if (text)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s%s = %d is not a value of its enum; pass one of tilegemm.h", name,
                           member, value);
}

static tg_status check_operation(const char *name, tg_operation operation)
{
    if ((unsigned)operation <= TG_OPERATION_TRANSPOSE)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s = %d; pass TG_OPERATION_NONE or TG_OPERATION_TRANSPOSE", name,
                           (int)operation);
}

/* Checks the type of a matrix or the kind of a vector. The types of the epilogue's matrices are
 * compared with D's instead, if they are used. */
static tg_status check_operand_enum(const tg_problem *p, int id)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    const int kind = tgi_operands_get_kind(p, id);
    tg_type type;
    switch (row->form) {
    case TGI_FORM_MATRIX:
        if (row->role == TGI_ROLE_EPILOGUE)
            break;
        type = tgi_operands_get_matrix(p, id)->type;
        return check_enum(row->name, ".type", tg_get_type_name(type), (int)type);
    case TGI_FORM_BIAS:
        return check_enum(row->name, "", tg_get_bias_name((tg_bias)kind), kind);
    case TGI_FORM_SCALE:
        return check_enum(row->name, "", tg_get_scale_name((tg_scale)kind), kind);
    }
    return TG_STATUS_OK;
}

static tg_status check_enums(const tg_problem *p)
{
    tg_status status;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if ((status = check_operand_enum(p, id)))
            return status;
    }
    if ((status =
             check_enum("precision", "", tg_get_precision_name(p->precision), (int)p->precision)) ||
        (status = check_enum("activation", "", tg_get_activation_name(p->activation),
                             (int)p->activation)) ||
        (status = check_operation("op_a", p->op_a))) {
        return status;
    }
    return check_operation("op_b", p->op_b);
}

/* Writes the names of a set of types, "fp32, bf16 or fp16". */
static void write_type_names(unsigned types, char *text, size_t text_bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned type = 0; types; types &= ~(1u << type++)) {
        if (!(types >> type & 1u))
            continue;
        const int is_last = types == 1u << type;
        const char *joint = length == 0 ? "" : is_last ? " or " : ", ";
        length += (size_t)snprintf(text + length, text_bytes - length, "%s%s", joint,
                                   tgi_type_table[type].name);
        if (length >= text_bytes)
            return;
    }
}

static tg_status check_precision(const tg_problem *p)
{
    const tg_type type = p->a.type;
    const unsigned types = tgi_precision_table[p->precision].types;
    char names[80];
    if (p->precision == TG_PRECISION_IEEE_FP32 && type == TG_TYPE_FP64) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "precision = ieee_fp32 would round fp64 inputs; pass default or "
                               "ieee_fp64, or convert the matrices");
    }
    if (!tgi_type_is_in(type, types)) {
        write_type_names(types, names, sizeof names);
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "precision = %s needs %s inputs, these are %s; convert them or pass default",
            tg_get_precision_name(p->precision), names, tg_get_type_name(type));
    }
    return TG_STATUS_OK;
}

static tg_status check_scales(const tg_problem *p)
{
    const char *name = p->a_scale ? "a_scale" : "b_scale";
    if ((p->a_scale || p->b_scale) && !tgi_type_is_fp8(p->a.type)) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "%s = %s with %s inputs; only fp8 has scales: pass none, and a "
                               "factor as alpha",
                               name, tg_get_scale_name(p->a_scale ? p->a_scale : p->b_scale),
                               tg_get_type_name(p->a.type));
    }
    if (p->d_scale && (!tgi_type_is_fp8(p->d.type) || p->d_scale == TG_SCALE_VECTOR)) {
        int is_fp8 = tgi_type_is_fp8(p->d.type);
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "d_scale = %s with %s = %s; pass %s",
                               tg_get_scale_name(p->d_scale), "d.type", tg_get_type_name(p->d.type),
                               is_fp8 ? "tensor or none" : "none, and a factor as alpha");
    }
    return TG_STATUS_OK;
}

static tg_status check_types(const tg_problem *p)
{
    tg_type type = p->a.type, d_type = p->d.type;
    const unsigned d_types = tgi_type_table[type].d_types;
    char names[80];
    if (p->b.type != type && !(tgi_type_is_fp8(type) && tgi_type_is_fp8(p->b.type))) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "b.type = %s differs from a.type = %s; convert one of them",
                               tg_get_type_name(p->b.type), tg_get_type_name(type));
    }
    if (!tgi_type_is_in(d_type, d_types)) {
        write_type_names(d_types, names, sizeof names);
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "d.type = %s with %s inputs; pass d.type %s",
                               tg_get_type_name(d_type), tg_get_type_name(type), names);
    }
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tg_matrix *matrix = tgi_operands_get_matrix(p, id);
        if (!tgi_operands_is_matrix_used(p, id) || matrix->type == d_type)
            continue;
        const char *name = tg_get_type_name(matrix->type);
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "%s.type = %s differs from d.type = %s; convert %s",
                               tgi_operands_get(id)->name, name ? name : "(unknown)",
                               tg_get_type_name(d_type), tgi_operands_get(id)->title);
    }
    if (p->is_batch_invariant != 0 && p->is_batch_invariant != 1) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "is_batch_invariant = %d; pass 0 or 1",
                               p->is_batch_invariant);
    }
    return TG_STATUS_OK;
}

static tg_status check_counts(const tg_problem *p)
{
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tgi_operand_row *row = tgi_operands_get(id);
        const tg_matrix *matrix = tgi_operands_get_matrix(p, id);
        if (!matrix || row->role == TGI_ROLE_EPILOGUE ||
            (matrix->row_count >= 0 && matrix->col_count >= 0))
            continue;
        int is_row = matrix->row_count < 0;
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s.%s_count = %lld; pass 0 or more",
                               row->name, is_row ? "row" : "col",
                               (ll)(is_row ? matrix->row_count : matrix->col_count));
    }
    return TG_STATUS_OK;
}

tg_status tgi_problem_check_arguments(const tg_problem *problem)
{
    tg_status status;
    if ((status = check_enums(problem)) || (status = check_types(problem)) ||
        (status = check_precision(problem)) || (status = check_scales(problem))) {
        return status;
    }
    return check_counts(problem);
}
