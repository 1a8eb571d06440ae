/* VALIDATE makes the canonical problem from the caller's, or an error that names the argument. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "core/factor.h"
#include "core/operand_view.h"
#include "core/status.h"

typedef long long ll; /* for printf */

/* A problem of few rows is skinny from this many columns on. The same holds for few columns. */
#define SKINNY_LENGTH 64
#define SKINNY_DEPTH 256

/* Checks the shape of D or of a matrix of the epilogue. */
static tg_status check_output_shape(const tg_problem *p, const tgi_problem *q, int id)
{
    const tg_matrix *matrix = tgi_operands_get_matrix(p, id);
    const char *title = tgi_operands_get(id)->title;
    if (matrix->row_count == q->m && matrix->col_count == q->n)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s is %lld x %lld, op(A) op(B) is %lld x %lld; pass %s of that shape",
                           title, (ll)matrix->row_count, (ll)matrix->col_count, (ll)q->m, (ll)q->n,
                           title);
}

static tg_status check_shapes(const tg_problem *p, const tgi_problem *q, int64_t b_rows)
{
    if (q->batch_count < 0) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "batch_count = %lld; pass 0 or more",
                               (ll)q->batch_count);
    }
    if (b_rows != q->k) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "op(A) has %lld columns, op(B) has %lld rows; they must be equal (k): "
            "check the shapes and op_a, op_b",
            (ll)q->k, (ll)b_rows);
    }
    tg_status status = check_output_shape(p, q, TGI_OPERAND_d);
    for (int id = 0; id < TGI_OPERAND_COUNT && !status; id++) {
        if (tgi_operands_is_matrix_used(p, id))
            status = check_output_shape(p, q, id);
    }
    return status;
}

/*
 * The limits of a problem. No memory holds a D of 2^48 elements, and no machine forms the products
 * of 2^58 elements of A or B within days, though strides of zero make such operands possible. What
 * is computed from a problem after VALIDATE therefore fits in int64_t:
 *   - m, n, k and the batch count are at most 2^48. D is not empty where anything is computed, so
 *     that m or n times the batch count is at most 2^48 too, and k times it at most 2^58.
 *   - An operand has at most 2^61 bytes. Tiles of it, of any size, are no more than its elements.
 *   - The sums of D for 2^10 splits, of 8 bytes each, have at most 2^61 bytes.
 *   - The offset of each element, and each stride of a dimension of two or more entries, is at most
 *     2^61 bytes. The distance of two elements of operands whose address ranges meet is below 2^62.
 * Products of m, n and k are formed in double alone. Elements rounded up to whole tiles are formed
 * by core/checked.h.
 */
#define SIDE_LOG2 48
#define D_ELEMS_LOG2 48
#define INPUT_ELEMS_LOG2 58
#define SPAN_BYTES_LOG2 61

static tg_status check_sides(const tgi_problem *q)
{
    const struct {
        const char *name;
        int64_t value;
    } sides[] = {{"m", q->m}, {"n", q->n}, {"k", q->k}, {"batch_count", q->batch_count}};
    for (int i = 0; i < 4; i++) {
        if (sides[i].value > (int64_t)1 << SIDE_LOG2) {
            return tgi_status_fail(TG_STATUS_SIZE_OVERFLOW,
                                   "%s = %lld is above 2^%d, the limit of m, n, k and "
                                   "batch_count; pass a smaller one",
                                   sides[i].name, (ll)sides[i].value, SIDE_LOG2);
        }
    }
    return TG_STATUS_OK;
}

/* Refuses an operand that reaches over too many bytes. */
static tg_status check_span(const char *title, const tgi_operand_view *view)
{
    const int64_t counts[] = {view->row_count, view->col_count, view->batch_count};
    const int64_t strides[] = {view->layout.row, view->layout.col, view->layout.batch};
    static const char *const parts[] = {"row_stride", "col_stride", "batch_stride"};
    const int64_t most = ((int64_t)1 << SPAN_BYTES_LOG2) / tgi_type_bytes(view->type);
    int64_t span = 1;
    for (int i = 0; i < 3; i++) {
        if (counts[i] == 0)
            return TG_STATUS_OK;
    }
    for (int i = 0; i < 3; i++) {
        if (counts[i] == 1)
            continue;
        const int64_t stride = strides[i] == INT64_MIN ? INT64_MAX : llabs(strides[i]);
        span = tgi_checked_add(span, tgi_checked_multiply(counts[i] - 1, stride));
        if (span > most) {
            return tgi_status_fail(TG_STATUS_SIZE_OVERFLOW,
                                   "%s: %lld entries with %s = %lld reach over more than 2^%d "
                                   "bytes; pass smaller counts or strides",
                                   title, (ll)counts[i], parts[i], (ll)strides[i], SPAN_BYTES_LOG2);
        }
    }
    return TG_STATUS_OK;
}

/* Refuses operands of too many elements, over all batch entries. */
static tg_status check_elements(const tgi_problem *q)
{
    const struct {
        const char *title, *shape;
        int64_t row_count, col_count;
        int most_log2;
    } operands[] = {{"op(A)", "m x k", q->m, q->k, INPUT_ELEMS_LOG2},
                    {"op(B)", "k x n", q->k, q->n, INPUT_ELEMS_LOG2},
                    {"D", "m x n", q->m, q->n, D_ELEMS_LOG2}};
    for (int i = 0; i < 3; i++) {
        const int64_t rows = operands[i].row_count, cols = operands[i].col_count;
        if (tgi_checked_multiply(tgi_checked_multiply(rows, cols), q->batch_count) >
            (int64_t)1 << operands[i].most_log2) {
            return tgi_status_fail(TG_STATUS_SIZE_OVERFLOW,
                                   "%s is %s = %lld x %lld in a batch of %lld, more than 2^%d "
                                   "elements; pass smaller counts",
                                   operands[i].title, operands[i].shape, (ll)rows, (ll)cols,
                                   (ll)q->batch_count, operands[i].most_log2);
        }
    }
    return TG_STATUS_OK;
}

/* Refuses a D in which two elements share an address. Each stride must exceed the span of the
 * smaller strides. */
static tg_status check_d_distinct(const tgi_problem *q)
{
    int64_t counts[] = {q->m, q->n, q->batch_count};
    int64_t strides[] = {q->d.row, q->d.col, q->d.batch};
    static const char *const parts[] = {"row_stride", "col_stride", "batch_stride"};
    for (int i = 0; i < 3; i++)
        strides[i] = counts[i] > 1 ? llabs(strides[i]) : 0;
    int order[] = {0, 1, 2};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2 - i; j++) {
            if (strides[order[j]] > strides[order[j + 1]]) {
                int swap = order[j];
                order[j] = order[j + 1];
                order[j + 1] = swap;
            }
        }
    }
    int64_t span = 0; /* largest offset that the dimensions so far reach */
    for (int i = 0; i < 3; i++) {
        int part = order[i];
        if (counts[part] <= 1)
            continue;
        if (strides[part] <= span) {
            return tgi_status_fail(
                TG_STATUS_OVERLAP,
                "D overlaps itself: |d.%s| = %lld is not above %lld, the reach of "
                "its smaller strides; pass a larger one",
                parts[part], (ll)strides[part], (ll)span);
        }
        span += strides[part] * (counts[part] - 1);
    }
    return TG_STATUS_OK;
}

static tgi_layout fold_layout(const tg_matrix *matrix, tg_operation operation)
{
    int is_transposed = operation == TG_OPERATION_TRANSPOSE;
    tgi_layout layout = {is_transposed ? matrix->col_stride : matrix->row_stride,
                         is_transposed ? matrix->row_stride : matrix->col_stride,
                         matrix->batch_stride};
    return layout;
}

/* Returns 1 if the transposed problem is the canonical one. Skinny problems get few rows and many
 * columns; other problems get D's shorter stride along its rows. */
static int must_swap(const tgi_problem *q)
{
    int64_t small = q->m < q->n ? q->m : q->n, large = q->m < q->n ? q->n : q->m;
    int64_t small_bytes = small * tgi_type_sum_bytes(q->type);
    /* If the columns fill half a vector of 64 bytes, or a quarter with short k, tiles one vector
     * wide are faster than sums over lanes. */
    if (large > SKINNY_LENGTH && (small_bytes <= 16 || (small_bytes <= 32 && q->k >= SKINNY_DEPTH)))
        return q->n < q->m;
    if (q->m == 1 || q->n == 1)
        return q->n == 1 && q->m > 1;
    return llabs(q->d.row) < llabs(q->d.col);
}

/* Sets strides without meaning, of dimensions with one entry, to the values that tgi_layout
 * states. */
static void normalize_strides(tgi_problem *q)
{
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tgi_operand_view view = tgi_problem_view_operand(q, id);
        tgi_layout *layout = tgi_problem_get_layout(q, id);
        if (!layout)
            continue;
        if (view.row_count <= 1)
            layout->row = 1;
        if (view.col_count <= 1)
            layout->col = 1;
        if (view.batch_count <= 1)
            layout->batch = 0;
    }
}

/* Sets the members of unused operands to fixed values: a matrix of the epilogue has D's layout, a
 * scale is none. */
static void normalize_unused(tgi_problem *q)
{
    const unsigned used = tgi_epilogue_find_used(&q->epilogue);
#define UNUSED_MATRIX_PRODUCT(name)
#define UNUSED_MATRIX_OUTPUT(name)
#define UNUSED_MATRIX_EPILOGUE(name) q->name = q->d
#define UNUSED_BIAS_EPILOGUE(name)
#define UNUSED_SCALE_EPILOGUE(name) q->epilogue.name = TG_SCALE_NONE
#define TGI_OPERAND(name, title, form, role, ...)                                                  \
    if (!(used >> TGI_OPERAND_##name & 1u)) {                                                      \
        UNUSED_##form##_##role(name);                                                              \
    }
#include "core/operands.def"
#undef TGI_OPERAND
}

static tg_status round_factor(const char *name, double value, tg_type type, double *rounded)
{
    *rounded = tgi_factor_round(value, type);
    if (isinf(*rounded) && !isinf(value)) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "%s = %g overflows FP32, in which %s products are scaled; pass at "
                               "most 3.4e38 or fp64 matrices",
                               name, value, tg_get_type_name(type));
    }
    return TG_STATUS_OK;
}

/* Copies the types, the epilogue and the layouts of used matrices, with transposes folded in. */
static tg_status fold(const tg_problem *problem, tgi_problem *q)
{
    tg_status status;
    const unsigned used = tgi_operands_find_used(problem);
    const tg_operation operations[TGI_OPERAND_COUNT] = {
        [TGI_OPERAND_a] = problem->op_a, [TGI_OPERAND_b] = problem->op_b};
#define TGI_FACTOR(name, value)                                                                    \
    if ((status = round_factor(#name, problem->name, problem->a.type, &q->epilogue.name)))         \
        return status;
#include "core/operands.def"
#undef TGI_FACTOR
#define FOLD_MATRIX(name)                                                                          \
    if (used >> TGI_OPERAND_##name & 1u ||                                                         \
        tgi_operands_get(TGI_OPERAND_##name)->role != TGI_ROLE_EPILOGUE)                           \
        q->name = fold_layout(&problem->name, operations[TGI_OPERAND_##name]);
#define FOLD_BIAS(name) q->epilogue.name = problem->name;
#define FOLD_SCALE(name) FOLD_BIAS(name)
#define TGI_OPERAND(name, title, form, ...) FOLD_##form(name)
#include "core/operands.def"
#undef TGI_OPERAND
    q->epilogue.activation = problem->activation;
    q->batch_count = problem->batch_count;
    q->type = problem->a.type;
    q->b_type = problem->b.type;
    q->d_type = problem->d.type;
    q->precision = problem->precision;
    q->is_batch_invariant = problem->is_batch_invariant;
    return TG_STATUS_OK;
}

tg_status tgi_problem_validate(const tg_problem *problem, tgi_problem *q)
{
    tg_status status;
    memset(q, 0, sizeof *q);
    if ((status = tgi_problem_check_arguments(problem)) || (status = fold(problem, q)))
        return status;
    int is_a_transposed = problem->op_a == TG_OPERATION_TRANSPOSE;
    int is_b_transposed = problem->op_b == TG_OPERATION_TRANSPOSE;
    q->m = is_a_transposed ? problem->a.col_count : problem->a.row_count;
    q->k = is_a_transposed ? problem->a.row_count : problem->a.col_count;
    q->n = is_b_transposed ? problem->b.row_count : problem->b.col_count;
    int64_t b_rows = is_b_transposed ? problem->b.col_count : problem->b.row_count;
    if ((status = check_shapes(problem, q, b_rows)) || (status = check_sides(q)))
        return status;
    const unsigned unread = TGI_OPERANDS_EPILOGUE & ~tgi_epilogue_find_used(&q->epilogue);
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tgi_operand_view view = tgi_problem_view_operand(q, id);
        const int has_layout = tgi_operands_get(id)->form == TGI_FORM_MATRIX;
        if (has_layout && !(unread >> id & 1u) &&
            (status = check_span(tgi_operands_get(id)->title, &view)))
            return status;
    }
    if (!tgi_problem_is_empty(q)) {
        if ((status = check_elements(q)) || (status = check_d_distinct(q)))
            return status;
        q->is_swapped = must_swap(q);
        if (q->is_swapped)
            tgi_problem_transpose(q);
    }
    if (q->k == 0)
        q->epilogue.alpha = 0.0; /* an empty sum is 0, whatever it is multiplied by */
    normalize_strides(q);
    normalize_unused(q);
    return TG_STATUS_OK;
}
