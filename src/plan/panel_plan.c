/* This file cuts a product into panels if memory does not hold all of it. */
#include <math.h>
#include <string.h>

#include "core/checked.h"
#include "core/operand_list.h"
#include "core/problem.h"
#include "core/status.h"
#include "core/structs.h"
#include "plan/panel_plan.h"
#include "tilegemm_lab.h"

/* With this many streamed rows or columns a product is about as fast as with more. */
#define NARROW_LENGTH 1024
/* Panels of at least two units have whole units. The tiles of kernels divide 128. */
#define UNIT_LENGTH 128
/* A flop limit does not make streamed panels narrower than this. */
#define STREAM_LENGTH_MIN 128
/* If copies overlap with products, panels are small so that the first product starts early. This
 * many panels are held at once, and the streamed operand has at least as many. Streamed panels are
 * longer, because each arriving held panel is multiplied by one of them at once. */
#define HELD_PANEL_COUNT 8
#define STREAM_PANEL_COUNT 4

/* Returns the length of a held panel, if `held` rows or columns are on the device at once. With one
 * buffer the panel has all of them. With two buffers new panels replace finished ones, so that
 * there are at least two panels unless the whole operand is on the device. */
static int64_t get_panel_length(const tgi_panel_cut *cut, int buffer_count, int64_t held)
{
    const int64_t most = held < cut->held_length ? tgi_divide_up(held, 2) : held;
    const int64_t panel_length = tgi_divide_up(held, HELD_PANEL_COUNT);
    if (buffer_count == 1)
        return held;
    return panel_length > NARROW_LENGTH ? panel_length
           : most < NARROW_LENGTH       ? most
                                        : NARROW_LENGTH;
}

/* Returns the number of streamed panels, of `streamed` rows or columns, on the device at once. In a
 * batch the panels of the next entry arrive during a product, even if one panel is the whole
 * operand. */
static int64_t count_streamed(const tgi_panel_cut *cut, int64_t streamed)
{
    return streamed >= cut->stream_length && cut->entry_count == 1 ? 1 : cut->stream_count;
}

/* Returns the number of panels of D on the device at once. */
static int64_t count_d(const tgi_panel_cut *cut, int64_t held, int64_t streamed)
{
    const int is_whole = held >= cut->held_length && streamed >= cut->stream_length;
    return is_whole && cut->entry_count == 1 ? 1 : cut->d_count;
}

/* Returns the bytes that the panels take on the GPU: `held_count` panels of `held` rows or columns,
 * and the slots for streamed panels of `streamed` rows or columns, for D and for C. */
static double get_need(const tgi_panel_cut *cut, int64_t held_count, int64_t held, int64_t streamed)
{
    return (double)held_count * (double)held * cut->held_bytes +
           (double)count_streamed(cut, streamed) * (double)streamed * cut->stream_bytes +
           (double)count_d(cut, held, streamed) * (double)held * (double)streamed *
               (cut->d_bytes + cut->c_bytes);
}

double tgi_panels_count_need(const tgi_panel_cut *cut)
{
    return get_need(cut, cut->held_count, cut->held, cut->streamed);
}

/* Returns these bytes for `held` rows or columns in panels of get_panel_length. */
static double get_held_need(const tgi_panel_cut *cut, int buffer_count, int64_t held,
                            int64_t streamed)
{
    const int64_t panel_length = get_panel_length(cut, buffer_count, held);
    return get_need(cut, tgi_divide_up(held, panel_length), panel_length, streamed);
}

/* Returns the greatest length within the limit for the operand whose length is given as 0. The
 * other operand has `held` rows or columns in panels, or one panel of `streamed`. Returns 0 if a
 * length of 1 exceeds the limit. */
static int64_t fit(const tgi_panel_cut *cut, const tg_panel_limits *limits, int64_t held,
                   int64_t streamed)
{
    int64_t low = 0, high = held ? cut->stream_length : cut->held_length;
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        const double need = held ? get_need(cut, cut->held_count, held, middle)
                                 : get_held_need(cut, limits->buffer_count, middle, streamed);
        if (need <= (double)limits->memory_bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

int64_t tgi_panels_even_out(int64_t length, int64_t most)
{
    if (most >= length)
        return length;
    if (most >= 2 * UNIT_LENGTH)
        most -= most % UNIT_LENGTH;
    const int64_t count = tgi_divide_up(length, most), panel_length = tgi_divide_up(length, count);
    const int64_t whole = tgi_divide_up(panel_length, UNIT_LENGTH) * UNIT_LENGTH;
    return most >= 2 * UNIT_LENGTH && whole <= most ? whole : panel_length;
}

/* Cuts the entry. It holds as much of one operand as fits beside a narrow panel of the other
 * operand, whose panel then takes the remaining memory. Returns 0 if the limit is below one element
 * of D. */
static int cut_entry(tgi_panel_cut *cut, const tg_panel_limits *limits)
{
    int64_t streamed = cut->stream_length < NARROW_LENGTH ? cut->stream_length : NARROW_LENGTH;
    cut->stream_count = cut->d_count = limits->buffer_count;
    int64_t held = fit(cut, limits, 0, streamed);
    while (held < cut->held_length && held < streamed && streamed > 1) {
        streamed /= 2;
        held = fit(cut, limits, 0, streamed);
    }
    if (held == 0)
        return 0;
    cut->held =
        tgi_panels_even_out(cut->held_length, get_panel_length(cut, limits->buffer_count, held));
    const int64_t panel_count = tgi_divide_up(cut->held_length, cut->held);
    /* At least one panel and at most all are held, and each walk of the stream has the same
     * number. */
    cut->held_count = tgi_divide_up(panel_count, tgi_divide_up(panel_count, held / cut->held));
    streamed = fit(cut, limits, cut->held, 0);
    if (limits->buffer_count > 1) {
        const int64_t panel_length = tgi_divide_up(cut->stream_length, STREAM_PANEL_COUNT);
        const int64_t most = panel_length > NARROW_LENGTH ? panel_length : NARROW_LENGTH;
        streamed = streamed < most ? streamed : most;
    }
    if (limits->flop_count > 0) {
        const double most = limits->flop_count / ((double)cut->held * cut->element_flops);
        const int64_t cap =
            most < STREAM_LENGTH_MIN ? STREAM_LENGTH_MIN : (int64_t)fmin(most, 1e15);
        streamed = streamed < cap ? streamed : cap;
    }
    cut->streamed = tgi_panels_even_out(cut->stream_length, streamed);
    return 1;
}

/* Returns the bytes of A and B that an entry reads. A single streamed panel stays in memory. If
 * several panels are held, the stream reverses after each walk past them, and its last two panels
 * stay. If there are three streamed panels, only one stays at the end where the stream began. */
static double count_reads(const tgi_panel_cut *cut)
{
    const int64_t walks = cut->streamed < cut->stream_length
                              ? tgi_divide_up(cut->held_length, cut->held * cut->held_count)
                              : 1;
    const int64_t count = tgi_divide_up(cut->stream_length, cut->streamed);
    const int64_t last = cut->stream_length - (count - 1) * cut->streamed;
    /* With three panels the slot that was filled first holds the panel that is needed next. */
    const int64_t at_start = count == 2   ? cut->stream_length
                             : count == 3 ? cut->streamed
                                          : 2 * cut->streamed;
    double lines = (double)walks * (double)cut->stream_length;
    if (cut->held_count > 1)
        lines -= (double)(walks / 2) * (double)(cut->streamed + last) +
                 (double)((walks - 1) / 2) * (double)at_start;
    return (double)cut->held_length * cut->held_bytes + lines * cut->stream_bytes;
}

static double get_bytes(const tg_problem *problem, unsigned used, int id, int64_t count)
{
    return used >> id & 1u
               ? (double)count * (double)tg_get_type_bytes(tgi_operands_get_type(problem, id))
               : 0;
}

static int is_shorter(int64_t stride, int64_t than)
{
    return (stride < 0 ? -stride : stride) < (than < 0 ? -than : than);
}

/* Returns 1 if lines of op(A) or op(B) lie across k. */
static int is_across_k(const tg_matrix *matrix, int has_k_rows)
{
    return has_k_rows ? is_shorter(matrix->col_stride, matrix->row_stride)
                      : is_shorter(matrix->row_stride, matrix->col_stride);
}

/* Returns the pitch of a caller's matrix in bytes, or 0 if its lines have gaps. */
static double get_pitch(const tg_problem *problem, int id)
{
    const tg_matrix *matrix = tgi_operands_get_matrix(problem, id);
    const int has_row_lines = is_shorter(matrix->col_stride, matrix->row_stride);
    const int64_t elem_stride = has_row_lines ? matrix->col_stride : matrix->row_stride;
    const int64_t line_stride = has_row_lines ? matrix->row_stride : matrix->col_stride;
    const int64_t elem_bytes = tg_get_type_bytes(tgi_operands_get_type(problem, id));
    return elem_stride == 1 ? (double)line_stride * (double)elem_bytes : 0;
}

tgi_panel_cut tgi_panels_describe(const tg_problem *problem, const tgi_problem *q, int is_b_held)
{
    unsigned used = tgi_operands_find_used(problem);
    if (q->k == 0)
        used &= ~(1u << TGI_OPERAND_a | 1u << TGI_OPERAND_b);
    const double a_bytes = get_bytes(problem, used, TGI_OPERAND_a, q->k);
    const double b_bytes = get_bytes(problem, used, TGI_OPERAND_b, q->k);
    const double a_lines =
        is_across_k(&problem->a, problem->op_a == TG_OPERATION_TRANSPOSE) ? (double)q->k : 0;
    const double b_lines =
        is_across_k(&problem->b, problem->op_b != TG_OPERATION_TRANSPOSE) ? (double)q->k : 0;
    const double a_pitch = get_pitch(problem, TGI_OPERAND_a);
    const double b_pitch = get_pitch(problem, TGI_OPERAND_b);
    const int has_row_lines = is_shorter(problem->d.col_stride, problem->d.row_stride);
    return (tgi_panel_cut){.held_length = is_b_held ? q->n : q->m,
                           .stream_length = is_b_held ? q->m : q->n,
                           .held_bytes = is_b_held ? b_bytes : a_bytes,
                           .stream_bytes = is_b_held ? a_bytes : b_bytes,
                           .d_bytes = get_bytes(problem, used, TGI_OPERAND_d, 1),
                           .c_bytes = get_bytes(problem, used, TGI_OPERAND_c, 1),
                           .element_flops = 2.0 * (double)q->k,
                           .entry_count = q->batch_count,
                           .held_lines = is_b_held ? b_lines : a_lines,
                           .stream_lines = is_b_held ? a_lines : b_lines,
                           .is_d_along_held = is_b_held == has_row_lines,
                           .held_pitch = is_b_held ? b_pitch : a_pitch,
                           .stream_pitch = is_b_held ? a_pitch : b_pitch,
                           .d_pitch = get_pitch(problem, TGI_OPERAND_d)};
}

/* Sets the counts that follow from a panel's sizes, and scales the bytes that an entry reads to all
 * panels. */
static void count_panels(tg_panels *panels, const tgi_problem *q, const tgi_panel_cut *cut)
{
    const double d_elems = (double)q->batch_count * (double)q->m * (double)q->n;
    panels->read_bytes = (double)q->batch_count * panels->read_bytes + cut->c_bytes * d_elems;
    panels->written_bytes = cut->d_bytes * d_elems;
    panels->row_panel_count = tgi_divide_up(q->m, panels->row_count);
    panels->col_panel_count = tgi_divide_up(q->n, panels->col_count);
    panels->panel_count = tgi_divide_up(q->batch_count, panels->batch_count) *
                          panels->row_panel_count * panels->col_panel_count;
}

void tgi_panels_set(tg_panels *panels, const tgi_problem *q, const tgi_panel_cut *cut,
                    int is_b_held)
{
    *panels = (tg_panels){.batch_count = 1,
                          .row_count = is_b_held ? cut->streamed : cut->held,
                          .col_count = is_b_held ? cut->held : cut->streamed,
                          .is_b_held = is_b_held,
                          .held_count = cut->held_count,
                          .stream_count = count_streamed(cut, cut->streamed),
                          .d_count = count_d(cut, cut->held, cut->streamed),
                          .memory_bytes = tgi_panels_count_need(cut),
                          .read_bytes = count_reads(cut)};
    count_panels(panels, q, cut);
}

static tg_status fail_limit(const tgi_panel_cut *cut, const tg_panel_limits *limits)
{
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "a memory limit of %lld bytes is less than the %.0f that one row of "
                           "op(A), one column of op(B) and their element of D take; allow more",
                           (long long)limits->memory_bytes,
                           ceil(get_held_need(cut, limits->buffer_count, 1, 1)));
}

/* Cuts one entry with either operand held, and keeps the cut that reads fewer bytes. */
static tg_status choose_cut(const tg_problem *problem, const tgi_problem *q,
                            const tg_panel_limits *limits, tg_panels *panels)
{
    tgi_panel_cut b_held = tgi_panels_describe(problem, q, 1);
    tgi_panel_cut a_held = tgi_panels_describe(problem, q, 0);
    if (!cut_entry(&b_held, limits) || !cut_entry(&a_held, limits))
        return fail_limit(&b_held, limits);
    const double b_reads = count_reads(&b_held), a_reads = count_reads(&a_held);
    /* If both cuts read equally many bytes, the longer side of D streams, because a flop limit cuts
     * only that side. */
    const int is_b_held =
        b_reads < a_reads || (b_reads == a_reads && b_held.stream_length >= b_held.held_length);
    tgi_panels_set(panels, q, is_b_held ? &b_held : &a_held, is_b_held);
    return TG_STATUS_OK;
}

/* Returns the number of whole batch entries in a panel; 0 if one entry exceeds the limit. */
static int64_t count_entries(const tgi_problem *p, const tgi_panel_cut *cut,
                             const tg_panel_limits *limits, double *entry_bytes)
{
    const double flops = (double)p->m * (double)p->n * cut->element_flops;
    const int64_t buffer_count = limits->buffer_count;
    double most = (double)p->batch_count;
    *entry_bytes = get_need(cut, 1, p->n, p->m);
    if (p->batch_count * *entry_bytes > (double)limits->memory_bytes)
        most = (double)limits->memory_bytes / (*entry_bytes * (double)buffer_count);
    if (limits->flop_count > 0 && flops > 0 && most >= 1)
        most = fmin(most, fmax(limits->flop_count / flops, 1));
    if (buffer_count > 1) /* a few large entries are cut like single products */
        most = fmin(most, (double)(p->batch_count / HELD_PANEL_COUNT));
    return (int64_t)most;
}

tg_status tgi_panels_read_problem(const tg_problem **problem, tg_problem *converted, tgi_problem *q)
{
    if (!*problem)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "problem = NULL; pass its address");
    *problem = tgi_struct_read(&tgi_struct_problem, *problem, converted);
    if (!*problem)
        return TG_STATUS_INVALID_ARGUMENT;
    const tg_status status = tgi_problem_validate(*problem, q);
    if (!status && q->is_swapped)
        tgi_problem_transpose(q);
    return status;
}

tg_status tg_choose_panels(const tg_problem *problem, const tg_panel_limits *limits,
                           tg_panels *panels)
{
    tgi_problem q;
    tg_problem converted;
    if (!limits || !panels)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               limits ? "panels" : "limits");
    memset(panels, 0, sizeof *panels);
    if (limits->memory_bytes < 0 || limits->buffer_count < 1 || limits->buffer_count > 2)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "memory_bytes = %lld, buffer_count = %d; pass 0 (no limit) or more "
                               "bytes, and 1 or 2 buffers",
                               (long long)limits->memory_bytes, limits->buffer_count);
    tg_status status = tgi_panels_read_problem(&problem, &converted, &q);
    if (status || tgi_problem_is_empty(&q))
        return status;
    tgi_panel_cut cut = tgi_panels_describe(problem, &q, 1);
    cut.stream_count = cut.d_count = 1;
    tg_panel_limits given = *limits;
    if (given.memory_bytes == 0)
        given.memory_bytes = INT64_MAX;
    double entry_bytes;
    const int64_t entries = q.batch_count > 1 ? count_entries(&q, &cut, &given, &entry_bytes) : 0;
    if (entries == 0)
        return choose_cut(problem, &q, &given, panels);
    *panels = (tg_panels){.batch_count = entries,
                          .row_count = q.m,
                          .col_count = q.n,
                          .held_count = 1,
                          .stream_count = given.buffer_count,
                          .d_count = given.buffer_count,
                          .memory_bytes = entry_bytes * (double)entries *
                                          (entries < q.batch_count ? given.buffer_count : 1)};
    panels->read_bytes = (double)q.n * cut.held_bytes + (double)q.m * cut.stream_bytes;
    count_panels(panels, &q, &cut);
    return TG_STATUS_OK;
}
