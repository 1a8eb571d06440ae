#include "tensor_portion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "distributed_case.h"

tensor_portion make_tensor_portion(tg_type type, int64_t rows, int64_t cols, int64_t first_row,
                                   int64_t first_col, char which, int is_col_major, int64_t gap)
{
    tensor_portion made = {.matrix = tg_make_matrix(type, NULL, rows, cols),
                           .first_row = first_row,
                           .first_col = first_col};
    made.matrix.row_stride = is_col_major ? 1 : cols + gap;
    made.matrix.col_stride = is_col_major ? rows + gap : 1;
    made.bytes = ((rows + gap) * (cols + gap) + 8) * 8;
    made.matrix.data = malloc((size_t)made.bytes);
    made.poison = malloc((size_t)made.bytes);
    if (!made.matrix.data || !made.poison)
        abort();
    memset(made.matrix.data, POISON, (size_t)made.bytes);
    memset(made.poison, POISON, (size_t)made.bytes);
    for (int64_t i = 0; i < rows && which; i++)
        for (int64_t j = 0; j < cols; j++)
            check_set_element(type, made.matrix.data,
                              i * made.matrix.row_stride + j * made.matrix.col_stride,
                              get_case_element(type, which, first_row + i, first_col + j));
    return made;
}

void free_tensor_portion(const tensor_portion *made)
{
    free(made->matrix.data);
    free(made->poison);
}

int is_tensor_right(const tensor_portion *d, const int64_t *k_counts, int first_term, int terms,
                    double alpha)
{
    const tg_matrix *m = &d->matrix;
    for (int64_t i = 0; i < m->row_count; i++) {
        for (int64_t j = 0; j < m->row_stride; j++) {
            const double got = check_get_element(m->type, m->data, i * m->row_stride + j);
            long double exact = 0, magnitude = 0;
            int64_t k_count = 0;
            if (j >= m->col_count) {
                const unsigned char *byte = (const unsigned char *)m->data +
                                            (i * m->row_stride + j) * tg_get_type_bytes(m->type);
                if (*byte != POISON)
                    return 0;
                continue;
            }
            for (int term = first_term; term < first_term + terms; term++) {
                for (int64_t k = 0; k < k_counts[term]; k++) {
                    const long double product =
                        (long double)get_case_element(m->type, terms > 1 ? (char)('a' + term) : 'a',
                                                      d->first_row + i, k) *
                        get_case_element(m->type, (char)('A' + term), k, d->first_col + j);
                    exact += alpha * product;
                    magnitude += fabsl(alpha * product);
                }
                k_count += k_counts[term];
            }
            const double unit = m->type == TG_TYPE_FP64 ? 0x1p-53 : 0x1p-24;
            if (!(fabsl(got - exact) <= (k_count + 3 + terms) * unit * magnitude))
                return 0;
        }
    }
    return 1;
}
