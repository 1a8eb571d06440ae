/*
 * Declares what the reader of problems as text (problem_text_read.c), its matrices
 * (problem_text_layout.c) and the writer (problem_text_write.c) share. tilegemm.h has the grammar.
 * Defaults of a text:
 *   - A and B are row-major as stored, D is row-major (column-major with dcol), without padding;
 *   - C has D's strides and type;
 *   - B and D have the type of A;
 *   - the batch stride is 0 in a batch of one; else the larger of row_count * |row_stride| and
 *     col_count * |col_stride|, so that the entries lie one behind the other; a C with D's strides
 *     has D's batch stride too.
 * The writer leaves out these defaults, and all of C if beta is 0.
 */
#ifndef TGI_PROBLEM_TEXT_H
#define TGI_PROBLEM_TEXT_H

#include <locale.h>

#include "core/operand_list.h"

enum {
    TGI_TEXT_STRIDE_LEADING,
    TGI_TEXT_STRIDE_ROW,
    TGI_TEXT_STRIDE_COL,
    TGI_TEXT_STRIDE_BATCH,
    TGI_TEXT_STRIDE_COUNT
};
extern const char tgi_text_stride_keys[TGI_TEXT_STRIDE_COUNT][3];

/* Keys whose value is a name: these four, then one for each operand, the kind of its vector. */
enum {
    TGI_TEXT_NAMED_B_TYPE,
    TGI_TEXT_NAMED_D_TYPE,
    TGI_TEXT_NAMED_ACTIVATION,
    TGI_TEXT_NAMED_PRECISION,
    TGI_TEXT_NAMED_KINDS
};
#define TGI_TEXT_NAMED_COUNT (TGI_TEXT_NAMED_KINDS + TGI_OPERAND_COUNT)

/* Bits of the parts that were given: these, then the named values, then the strides of each
 * operand. */
enum {
    TGI_TEXT_GIVEN_LAYOUT,
    TGI_TEXT_GIVEN_TYPE,
    TGI_TEXT_GIVEN_DCOL,
    TGI_TEXT_GIVEN_ORDER,
    TGI_TEXT_GIVEN_BATCH,
#define TGI_FACTOR(name, value) TGI_TEXT_GIVEN_##name,
#include "core/operands.def"
#undef TGI_FACTOR
    TGI_TEXT_GIVEN_NAMED
};
#define TGI_TEXT_GIVEN_STRIDES (TGI_TEXT_GIVEN_NAMED + TGI_TEXT_NAMED_COUNT)
_Static_assert(TGI_TEXT_GIVEN_STRIDES + TGI_OPERAND_COUNT * TGI_TEXT_STRIDE_COUNT <= 64,
               "bits of `given`");

typedef struct tgi_text_reading {
    tg_problem problem;
    int64_t m, n, k;
    tg_type type;
    int named[TGI_TEXT_NAMED_COUNT]; /* values of the enums, by key */
    int is_d_column_major;
    int64_t strides[TGI_OPERAND_COUNT][TGI_TEXT_STRIDE_COUNT]; /* strides of matrices */
    uint64_t given;
} tgi_text_reading;

/* Returns 1 if a stride of a matrix was given. */
static inline int tgi_text_is_given(const tgi_text_reading *r, int id, int stride)
{
    return r->given >> (TGI_TEXT_GIVEN_STRIDES + id * TGI_TEXT_STRIDE_COUNT + stride) & 1u;
}

/* Fills the matrices of a text that was read. Errors: INVALID_ARGUMENT. */
tg_status tgi_text_fill_matrices(tgi_text_reading *r);

/* Sets *stride to the batch stride that a text leaves out. `d` is D for a matrix of the epilogue,
 * else NULL. Returns 0 if the stride does not fit in int64_t. */
int tgi_problem_text_get_batch_stride(const tg_matrix *matrix, int64_t batch_count,
                                      const tg_matrix *d, int64_t *stride);

/* Gives the calling thread a locale with a decimal point, and rounding to nearest. Otherwise a
 * number could be read as another one than was written. The caller passes *saved to
 * tgi_problem_text_leave_c_locale. Error: OUT_OF_MEMORY. */
typedef struct tgi_saved_locale {
    locale_t own, previous;
    int rounding;
} tgi_saved_locale;
tg_status tgi_problem_text_enter_c_locale(tgi_saved_locale *saved);
void tgi_problem_text_leave_c_locale(const tgi_saved_locale *saved);

#endif
