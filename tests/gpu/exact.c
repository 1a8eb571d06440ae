#include "exact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "check/check.h"

#define SEED UINT64_C(20240901)
#define VALUE_COUNT_MAX 61 /* prime, so that few pitches make all lines alike */

static double values[VALUE_COUNT_MAX];
static int value_count;

int exact_choose_values(const char *name)
{
    uint64_t random = SEED;
    value_count = strcmp(name, "integers") == 0 ? VALUE_COUNT_MAX : 1;
    for (int i = 0; i < value_count; i++)
        values[i] = value_count == 1 ? 1.0 : floor(7.5 * check_next_uniform(&random) + 0.5);
    return value_count > 1 || strcmp(name, "ones") == 0;
}

double exact_value(int64_t index)
{
    return values[index % value_count];
}

int exact_value_count(void)
{
    return value_count;
}

/* Locates, among the values, the elements of a line of a batch entry of an operand. A line is one
 * row of A or one column of B. Line i begins at first + i * line_stride, modulo value_count, and
 * each next element lies k_stride behind. */
typedef struct operand_strides {
    int first, line_stride, k_stride;
} operand_strides;

static operand_strides find_strides(const tg_matrix *matrix, int is_along_rows, int entry)
{
    const int first = (int)(matrix->batch_stride * entry % value_count);
    const int row_stride = (int)(matrix->row_stride % value_count);
    const int col_stride = (int)(matrix->col_stride % value_count);
    return is_along_rows ? (operand_strides){first, row_stride, col_stride}
                         : (operand_strides){first, col_stride, row_stride};
}

/* Returns the sum of a line of A whose first value is `a` times a line of B that starts at `b`. */
static double sum_products(operand_strides a_strides, int a, operand_strides b_strides, int b,
                           int64_t k)
{
    const int64_t period = k < value_count ? k : value_count;
    double sum = 0.0;
    for (int64_t i = 0; i < period; i++) {
        const double times = (double)((k - i + value_count - 1) / value_count);
        sum += times * values[a] * values[b];
        a = (a + a_strides.k_stride) % value_count;
        b = (b + b_strides.k_stride) % value_count;
    }
    return sum;
}

int64_t exact_find_wrong(const tg_problem *problem, int entry, int64_t k, const char *host,
                         double *want)
{
    static uint64_t wanted[VALUE_COUNT_MAX][VALUE_COUNT_MAX]; /* each is an element of any type */
    const tg_type d_type = problem->d.type;
    const operand_strides a = find_strides(&problem->a, !problem->op_a, entry);
    const operand_strides b = find_strides(&problem->b, !!problem->op_b, entry);
    const int64_t n = problem->d.col_count, bytes = tg_get_type_bytes(d_type);
    for (int i = 0; i < value_count; i++)
        for (int j = 0; j < value_count; j++)
            check_set_element(d_type, &wanted[i][j], 0,
                              problem->alpha * sum_products(a, i, b, j, k));
    for (int64_t row = 0; row < problem->d.row_count; row++) {
        const uint64_t *of_row = wanted[(a.first + row * a.line_stride) % value_count];
        int place = b.first;
        for (int64_t i = row * n; i < (row + 1) * n; i++) {
            if (memcmp(host + i * bytes, &of_row[place], (size_t)bytes) != 0) {
                *want = check_get_element(d_type, &of_row[place], 0);
                return i;
            }
            place += b.line_stride;
            place -= place >= value_count ? value_count : 0;
        }
    }
    return -1;
}

void exact_assert(const tg_problem *problem, int64_t k, const char *host, const char *text)
{
    const int64_t n = problem->d.col_count;
    const int64_t entry_bytes = problem->d.row_count * n * tg_get_type_bytes(problem->d.type);
    for (int entry = 0; entry < problem->batch_count; entry++, host += entry_bytes) {
        double want = 0.0;
        const int64_t wrong = exact_find_wrong(problem, entry, k, host, &want);
        if (wrong >= 0)
            fail_msg("%s: entry %d, element (%lld, %lld) is %.9g, not %.9g", text, entry,
                     (long long)(wrong / n), (long long)(wrong % n),
                     check_get_element(problem->d.type, host, wrong), want);
    }
}
