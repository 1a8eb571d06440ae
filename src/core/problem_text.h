/*
 * Problems as text: what the reader (problem_text.c) and the writer (problem_text_write.c) share.
 * The grammar is on the page tilegemm.h. What a text leaves out:
 *   - A and B are row-major as stored, D is row-major (column-major with dcol), without padding;
 *   - C has D's strides, each of them, and D's type;
 *   - B and D have the type of A;
 *   - the batch stride is 0 in a batch of one; else the larger of row_count * |row_stride| and
 *     col_count * |col_stride|, so that the entries lie one behind the other; a C with D's strides
 *     has D's batch stride too.
 * The writer leaves out what the reader fills in, and all of C where beta is 0.
 */
#ifndef TGI_PROBLEM_TEXT_H
#define TGI_PROBLEM_TEXT_H

#include <locale.h>

#include "tilegemm.h"

/* The batch stride that a text leaves out. `d` is D where the matrix is C, else NULL. Returns 0
 * where it does not fit in int64_t. */
int tgi_problem_text_get_batch_stride(const tg_matrix *matrix, int64_t batch_count,
                                      const tg_matrix *d, int64_t *stride);

/* Gives the calling thread a decimal point, whatever the program's locale. Pass *saved to
 * tgi_problem_text_leave_c_locale after. Error: OUT_OF_MEMORY. */
typedef struct tgi_saved_locale {
    locale_t own, previous;
} tgi_saved_locale;
tg_status tgi_problem_text_enter_c_locale(tgi_saved_locale *saved);
void tgi_problem_text_leave_c_locale(const tgi_saved_locale *saved);

#endif
