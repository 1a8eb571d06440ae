/* Declares the panels of a product. The choice by traffic, the choice by time and the panels
 * themselves read a problem in the same way. */
#ifndef TGI_PANEL_PLAN_H
#define TGI_PANEL_PLAN_H

#include "core/problem.h"
#include "tilegemm_lab.h"

/* A cut describes one batch entry, seen from the operand that is held. Lengths are rows or columns
 * of D. Sizes are bytes and double, because sums of them may exceed 63 bits. */
typedef struct tgi_panel_cut {
    int64_t held_length, stream_length; /* rows or columns of D */
    double held_bytes, stream_bytes;    /* bytes of a row of op(A) or a column of op(B) */
    double d_bytes, c_bytes;            /* bytes of an element; 0 for a C that is not read */
    double element_flops;               /* 2 k */
    int64_t entry_count;                /* entries of the batch */
    /* Lines of a panel of the operands, k or 0: one of contiguous memory. Those of D are as long as
     * the panel of the held operand if is_d_along_held, else as that of the other. */
    double held_lines, stream_lines;
    int is_d_along_held;
    /* Bytes from a line of an operand to the next one; 0 if its elements are not contiguous. */
    double held_pitch, stream_pitch, d_pitch;
    int64_t held, streamed; /* lengths of a panel; an outcome, as the next ones are */
    /* Panels in memory at once: of the held operand, of the other operand and of D. A product
     * without a batch has one panel of an operand if that is the whole matrix. */
    int64_t held_count, stream_count, d_count;
} tgi_panel_cut;

/* A place has the panels of the two operands that a panel of D multiplies. */
typedef struct tgi_panel_place {
    int64_t held, streamed;
} tgi_panel_place;

/* Validates the caller's problem. *q becomes its canonical form with the caller's A and B. *problem
 * becomes a copy of this version's size, *converted, if the caller's struct is of another
 * version. */
tg_status tgi_panels_read_problem(const tg_problem **problem, tg_problem *converted,
                                  tgi_problem *q);

/* Returns the cut of an entry of the problem whose columns of op(B), or rows of op(A), are held.
 * Its outcome is not set. */
tgi_panel_cut tgi_panels_describe(const tg_problem *problem, const tgi_problem *q, int is_b_held);

/* Returns the bytes of the panels of a cut that are in use at once. */
double tgi_panels_count_need(const tgi_panel_cut *cut);

/* Returns a length of at most `most` that divides `length` into parts of about equal length. */
int64_t tgi_panels_even_out(int64_t length, int64_t most);

/* Sets the panels to those of the cut. */
void tgi_panels_set(tg_panels *panels, const tgi_problem *q, const tgi_panel_cut *cut,
                    int is_b_held);

/* Finds panel `index` of a batch entry. held_count panels stay while each panel of the other
 * operand passes all of them. Then the next ones follow, which the other operand passes in reverse.
 * If all panels of both operands stay, each new panel passes all that are in memory. */
tgi_panel_place tgi_panels_find_place(const tg_panels *panels, int64_t index);

#endif
