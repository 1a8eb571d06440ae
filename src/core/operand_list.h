/* Declares the operands of operands.def as C: an enum, a table, and their members in the structs of
 * tilegemm.h. It compiles as C11, C++17 and CUDA, and includes only include/, because src/check
 * uses it too. */
#ifndef TGI_OPERAND_LIST_H
#define TGI_OPERAND_LIST_H

#include <string.h>

#include "tilegemm.h"

typedef enum tgi_operand_id {
#define TGI_OPERAND(name, ...) TGI_OPERAND_##name,
#include "core/operands.def"
#undef TGI_OPERAND
    TGI_OPERAND_COUNT
} tgi_operand_id;

/* The columns of operands.def. */
typedef enum tgi_operand_form {
    TGI_FORM_MATRIX,
    TGI_FORM_BIAS,
    TGI_FORM_SCALE,
} tgi_operand_form;
typedef enum tgi_operand_role {
    TGI_ROLE_PRODUCT,
    TGI_ROLE_EPILOGUE,
    TGI_ROLE_OUTPUT,
} tgi_operand_role;
typedef enum tgi_operand_extent {
    TGI_EXTENT_m,
    TGI_EXTENT_n,
    TGI_EXTENT_k,
    TGI_EXTENT_one,
} tgi_operand_extent;
typedef enum tgi_operand_type {
    TGI_ELEMENT_a_type,
    TGI_ELEMENT_b_type,
    TGI_ELEMENT_d_type,
    TGI_ELEMENT_fp32,
} tgi_operand_type;

/* An executor is code that applies the epilogue (core/epilogue.h): the CPU on rows of D, a GPU on
 * elements, or a GPU on register fragments. Each has a bit. */
typedef enum tgi_executor {
    TGI_BY_ROWS = 1,
    TGI_BY_ELEMENTS = 2,
    TGI_BY_FRAGMENTS = 4,
    TGI_BY_ALL = TGI_BY_ROWS | TGI_BY_ELEMENTS | TGI_BY_FRAGMENTS,
} tgi_executor;

typedef struct tgi_operand_row {
    const char *name, *title;
    tgi_operand_form form;
    tgi_operand_role role;
    tgi_operand_extent rows, cols;
    tgi_operand_type type;
    tgi_operand_id partner;
    const char *key;
    unsigned executors;
} tgi_operand_row;

/* Returns the row of an operand. */
static inline const tgi_operand_row *tgi_operands_get(int id)
{
    static const tgi_operand_row table[] = {
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, key, executors, is_used)   \
    {#name,                                                                                        \
     title,                                                                                        \
     TGI_FORM_##form,                                                                              \
     TGI_ROLE_##role,                                                                              \
     TGI_EXTENT_##rows,                                                                            \
     TGI_EXTENT_##cols,                                                                            \
     TGI_ELEMENT_##type,                                                                           \
     TGI_OPERAND_##partner,                                                                        \
     key,                                                                                          \
     executors},
#include "core/operands.def"
#undef TGI_OPERAND
    };
    return &table[id];
}

/* Holds bit 1 << tgi_operand_id of each operand of the epilogue. */
enum {
    TGI_OPERANDS_EPILOGUE = 0
#define TGI_OPERAND(name, title, form, role, ...)                                                  \
    +(TGI_ROLE_##role == TGI_ROLE_EPILOGUE ? 1 << TGI_OPERAND_##name : 0)
#include "core/operands.def"
#undef TGI_OPERAND
};

/* Declares a pointer to an operand under its name, by form and role. */
#define TGI_POINTER_MATRIX_PRODUCT(name) const void *name
#define TGI_POINTER_MATRIX_EPILOGUE(name) const void *name
#define TGI_POINTER_MATRIX_OUTPUT(name) void *name
#define TGI_POINTER_BIAS_EPILOGUE(name) const void *name
#define TGI_POINTER_SCALE_EPILOGUE(name) const float *name

/* Keeps the code of an operand that every product has. */
#define TGI_OF_PRODUCT_PRODUCT(code) code
#define TGI_OF_PRODUCT_EPILOGUE(code)
#define TGI_OF_PRODUCT_OUTPUT(code) code

/* Keeps the code of an operand that the epilogue reads or writes. */
#define TGI_OF_EPILOGUE_PRODUCT(code)
#define TGI_OF_EPILOGUE_EPILOGUE(code) code
#define TGI_OF_EPILOGUE_OUTPUT(code) code

/* --------------------------------------------------- members of the structs of tilegemm.h -- */

/* Case labels of a switch over operands. Forms without the member have none. */
#define TGI_MATRIX_CASE_MATRIX(name, statement)                                                    \
    case TGI_OPERAND_##name:                                                                       \
        statement;
#define TGI_MATRIX_CASE_BIAS(name, statement)
#define TGI_MATRIX_CASE_SCALE(name, statement)
#define TGI_VECTOR_CASE_MATRIX(name, statement)
#define TGI_VECTOR_CASE_BIAS(name, statement) TGI_MATRIX_CASE_MATRIX(name, statement)
#define TGI_VECTOR_CASE_SCALE(name, statement) TGI_MATRIX_CASE_MATRIX(name, statement)

/* The enum of a vector's kinds. */
#define TGI_KIND_BIAS tg_bias
#define TGI_KIND_SCALE tg_scale

/* The member of tg_problem that points to an operand. */
#define TGI_DATA_MATRIX(problem, name) ((problem)->name.data)
#define TGI_DATA_BIAS(problem, name) ((problem)->name##_data)
#define TGI_DATA_SCALE(problem, name) ((problem)->name##_data)

/* Returns the view of a matrix, or NULL for a vector. Like strchr it takes a constant problem and
 * returns a view that is not constant. */
static inline tg_matrix *tgi_operands_get_matrix(const tg_problem *problem, int id)
{
    switch (id) {
#define TGI_OPERAND(name, title, form, ...)                                                        \
    TGI_MATRIX_CASE_##form(name, return (tg_matrix *)&problem->name)
#include "core/operands.def"
#undef TGI_OPERAND
    }
    return NULL;
}

/* Returns the kind of a vector, a tg_bias or a tg_scale, or 0 for a matrix. */
static inline int tgi_operands_get_kind(const tg_problem *problem, int id)
{
    switch (id) {
#define TGI_OPERAND(name, title, form, ...) TGI_VECTOR_CASE_##form(name, return (int)problem->name)
#include "core/operands.def"
#undef TGI_OPERAND
    }
    return 0;
}

static inline void tgi_operands_set_kind(tg_problem *problem, int id, int kind)
{
    switch (id) {
#define TGI_OPERAND(name, title, form, ...)                                                        \
    TGI_VECTOR_CASE_##form(name, problem->name = (TGI_KIND_##form)kind; return )
#include "core/operands.def"
#undef TGI_OPERAND
    }
}

/* Returns the type of an operand's elements. */
static inline tg_type tgi_operands_get_type(const tg_problem *problem, int id)
{
    switch (tgi_operands_get(id)->type) {
    case TGI_ELEMENT_a_type:
        return problem->a.type;
    case TGI_ELEMENT_b_type:
        return problem->b.type;
    case TGI_ELEMENT_d_type:
        return problem->d.type;
    case TGI_ELEMENT_fp32:
        break;
    }
    return TG_TYPE_FP32;
}

static inline const void *tgi_operands_get_data(const tg_problem *problem, int id)
{
    switch (id) {
#define TGI_OPERAND(name, title, form, ...)                                                        \
    case TGI_OPERAND_##name:                                                                       \
        return TGI_DATA_##form(problem, name);
#include "core/operands.def"
#undef TGI_OPERAND
    }
    return NULL;
}

static inline void tgi_operands_set_data(tg_problem *problem, int id, const void *data)
{
    switch (id) {
#define TGI_OPERAND(name, title, form, ...)                                                        \
    case TGI_OPERAND_##name:                                                                       \
        memcpy(&TGI_DATA_##form(problem, name), &data, sizeof data);                               \
        break;
#include "core/operands.def"
#undef TGI_OPERAND
    }
}

/* Returns the set of operands whose memory the problem reads or writes. The library rounds alpha
 * and beta first, so it may use fewer. */
static inline unsigned tgi_operands_find_used(const tg_problem *p)
{
    unsigned used = 0;
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, key, executors, is_used)   \
    used |= (unsigned)(is_used) << TGI_OPERAND_##name;
#include "core/operands.def"
#undef TGI_OPERAND
    return used;
}

/* Returns 1 for a matrix that the epilogue of the problem reads. */
static inline int tgi_operands_is_matrix_used(const tg_problem *problem, int id)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    return row->form == TGI_FORM_MATRIX && row->role == TGI_ROLE_EPILOGUE &&
           (tgi_operands_find_used(problem) >> id & 1u);
}

/* Returns the number of values of a vector of that kind for a D of m x n, or 0 for kind 0, none. */
static inline int64_t tgi_operands_count_values(int id, int kind, int64_t m, int64_t n)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    if (kind == 0)
        return 0;
    if (row->form == TGI_FORM_BIAS)
        return kind == TG_BIAS_ROW ? m : n;
    if (kind != TG_SCALE_VECTOR)
        return 1;
    return row->rows == TGI_EXTENT_m ? m : row->cols == TGI_EXTENT_n ? n : 1;
}

#endif
