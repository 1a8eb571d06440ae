/* Makes the matrices of a problem that was read from text: shapes, types and strides. */
#include "core/problem_text.h"
#include "core/status.h"

typedef long long ll; /* for printf */

const char tgi_text_stride_keys[TGI_TEXT_STRIDE_COUNT][3] = {"ld", "rs", "cs", "bs"};

/* Sets the strides from the leading dimension: the row stride, or the column stride of a
 * column-major matrix, whose rows (columns) hold `length` contiguous elements, the size named
 * `size`. */
static tg_status fill_leading(const tgi_text_reading *r, int id, int is_column_major, char size,
                              tg_matrix *matrix)
{
    const int64_t leading = r->strides[id][TGI_TEXT_STRIDE_LEADING];
    const int64_t length = is_column_major ? matrix->row_count : matrix->col_count;
    const char *name = tgi_operands_get(id)->key;
    for (int stride = TGI_TEXT_STRIDE_ROW; stride <= TGI_TEXT_STRIDE_COL; stride++) {
        if (tgi_text_is_given(r, id, stride)) {
            return tgi_status_fail(
                TG_STATUS_INVALID_ARGUMENT,
                "ld%s = %lld and %s%s = %lld both give a stride; pass either ld%s "
                "or rs%s and cs%s",
                name, (ll)leading, tgi_text_stride_keys[stride], name, (ll)r->strides[id][stride],
                name, name, name);
        }
    }
    if (leading < length)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "ld%s = %lld is less than %c = %lld; pass ld%s >= %lld", name,
                               (ll)leading, size, (ll)length, name, (ll)length);
    matrix->row_stride = is_column_major ? 1 : leading;
    matrix->col_stride = is_column_major ? leading : 1;
    return TG_STATUS_OK;
}

/* Sets the strides of the matrix that the text gives; the others keep their defaults. `d` is D for
 * a matrix of the epilogue, else NULL. */
static tg_status fill_strides(tgi_text_reading *r, int id, int is_column_major, char size,
                              const tg_matrix *d)
{
    tg_matrix *matrix = tgi_operands_get_matrix(&r->problem, id);
    if (tgi_text_is_given(r, id, TGI_TEXT_STRIDE_LEADING)) {
        tg_status status = fill_leading(r, id, is_column_major, size, matrix);
        if (status)
            return status;
    }
    if (tgi_text_is_given(r, id, TGI_TEXT_STRIDE_ROW))
        matrix->row_stride = r->strides[id][TGI_TEXT_STRIDE_ROW];
    if (tgi_text_is_given(r, id, TGI_TEXT_STRIDE_COL))
        matrix->col_stride = r->strides[id][TGI_TEXT_STRIDE_COL];
    if (tgi_text_is_given(r, id, TGI_TEXT_STRIDE_BATCH)) {
        matrix->batch_stride = r->strides[id][TGI_TEXT_STRIDE_BATCH];
        return TG_STATUS_OK;
    }
    if (tgi_problem_text_get_batch_stride(matrix, r->problem.batch_count, d,
                                          &matrix->batch_stride)) {
        return TG_STATUS_OK;
    }
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s of %lld x %lld with strides %lld, %lld has more elements than %lld; "
                           "pass smaller sizes, or its batch stride as bs%s",
                           tgi_operands_get(id)->title, (ll)matrix->row_count,
                           (ll)matrix->col_count, (ll)matrix->row_stride, (ll)matrix->col_stride,
                           (ll)INT64_MAX, tgi_operands_get(id)->key);
}

/* Returns the type of a matrix, which is A's unless it was given. */
static tg_type get_type(const tgi_text_reading *r, int named)
{
    return r->given >> (TGI_TEXT_GIVEN_NAMED + named) & 1u ? (tg_type)r->named[named] : r->type;
}

tg_status tgi_text_fill_matrices(tgi_text_reading *r)
{
    tg_problem *p = &r->problem;
    tg_type b_type = get_type(r, TGI_TEXT_NAMED_B_TYPE),
            d_type = get_type(r, TGI_TEXT_NAMED_D_TYPE);
    int is_a_transposed = p->op_a == TG_OPERATION_TRANSPOSE;
    int is_b_transposed = p->op_b == TG_OPERATION_TRANSPOSE;
    int is_d_column_major = r->is_d_column_major;
    tg_status status;
    p->a = is_a_transposed ? tg_make_matrix(r->type, NULL, r->k, r->m)
                           : tg_make_matrix(r->type, NULL, r->m, r->k);
    p->b = is_b_transposed ? tg_make_matrix(b_type, NULL, r->n, r->k)
                           : tg_make_matrix(b_type, NULL, r->k, r->n);
    p->d = tg_make_matrix(d_type, NULL, r->m, r->n);
    if (is_d_column_major) {
        p->d.row_stride = 1;
        p->d.col_stride = r->m;
    }
    char d_size = is_d_column_major ? 'm' : 'n';
    if ((status = fill_strides(r, TGI_OPERAND_a, 0, is_a_transposed ? 'm' : 'k', NULL)) ||
        (status = fill_strides(r, TGI_OPERAND_b, 0, is_b_transposed ? 'k' : 'n', NULL)) ||
        (status = fill_strides(r, TGI_OPERAND_d, is_d_column_major, d_size, NULL))) {
        return status;
    }
    for (int id = 0; id < TGI_OPERAND_COUNT && !status; id++) {
        tg_matrix *matrix = tgi_operands_get_matrix(p, id);
        if (!matrix || tgi_operands_get(id)->role != TGI_ROLE_EPILOGUE)
            continue;
        *matrix = p->d;
        status = fill_strides(r, id, is_d_column_major, d_size, &p->d);
    }
    return status;
}
