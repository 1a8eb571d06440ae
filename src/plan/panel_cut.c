/* Returns the panels of a plan, in their order. */
#include <string.h>

#include "core/checked.h"
#include "core/operand_list.h"
#include "core/problem.h"
#include "core/status.h"
#include "core/structs.h"
#include "plan/panel_plan.h"
#include "tilegemm_lab.h"

/* A range of rows, columns or batch entries. */
typedef struct panel_range {
    int64_t first, count;
} panel_range;

static panel_range get_range(int64_t length, int64_t panel_length, int64_t index)
{
    const int64_t first = index * panel_length, rest = length - first;
    return (panel_range){first, rest < panel_length ? rest : panel_length};
}

/* Moves the data of an operand by `elems` elements; NULL stays NULL. The address is computed as an
 * integer, because the pointer need not be valid before the product reads it. */
static void move_data(tg_problem *panel, int id, int64_t elems)
{
    const void *data = tgi_operands_get_data(panel, id);
    const int64_t bytes = elems * tg_get_type_bytes(tgi_operands_get_type(panel, id));
    if (data)
        tgi_operands_set_data(panel, id, (const void *)((uintptr_t)data + (uintptr_t)bytes));
}

static void cut_matrix(tg_problem *panel, int id, panel_range entries, panel_range rows,
                       panel_range cols)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    tg_matrix *matrix = tgi_operands_get_matrix(panel, id);
    const int is_transposed = (id == TGI_OPERAND_a && panel->op_a == TG_OPERATION_TRANSPOSE) ||
                              (id == TGI_OPERAND_b && panel->op_b == TG_OPERATION_TRANSPOSE);
    int64_t *const row_count = is_transposed ? &matrix->col_count : &matrix->row_count;
    int64_t *const col_count = is_transposed ? &matrix->row_count : &matrix->col_count;
    const int64_t row_stride = is_transposed ? matrix->col_stride : matrix->row_stride;
    const int64_t col_stride = is_transposed ? matrix->row_stride : matrix->col_stride;
    int64_t offset = entries.first > 0 ? entries.first * matrix->batch_stride : 0;
    if (row->rows == TGI_EXTENT_m) {
        *row_count = rows.count;
        offset += rows.first * row_stride;
    }
    if (row->cols == TGI_EXTENT_n) {
        *col_count = cols.count;
        offset += cols.first * col_stride;
    }
    move_data(panel, id, offset);
}

static void cut_vector(tg_problem *panel, int id, panel_range rows, panel_range cols)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    const int kind = tgi_operands_get_kind(panel, id);
    const int is_bias = row->form == TGI_FORM_BIAS;
    if (is_bias ? kind == TG_BIAS_ROW : kind == TG_SCALE_VECTOR && row->rows == TGI_EXTENT_m)
        move_data(panel, id, rows.first);
    else if (is_bias ? kind == TG_BIAS_COL : kind == TG_SCALE_VECTOR && row->cols == TGI_EXTENT_n)
        move_data(panel, id, cols.first);
}

/* Returns 1 if the panels are those of a product of this size. */
static int are_panels_of(const tg_panels *panels, const tgi_problem *q)
{
    return panels->batch_count > 0 && panels->row_count > 0 && panels->col_count > 0 &&
           panels->held_count > 0 &&
           panels->row_panel_count == tgi_divide_up(q->m, panels->row_count) &&
           panels->col_panel_count == tgi_divide_up(q->n, panels->col_count) &&
           panels->panel_count == tgi_divide_up(q->batch_count, panels->batch_count) *
                                      panels->row_panel_count * panels->col_panel_count;
}

/* Finds product `index` of two streamed panels and `count` held ones. The second streamed panel
 * follows the first, `lag` products behind it. */
static tgi_panel_place find_in_pair(int64_t count, int64_t lag, int64_t index)
{
    const int64_t mixed = index - lag;
    if (mixed < 0)
        return (tgi_panel_place){index, 0};
    if (mixed >= 2 * (count - lag))
        return (tgi_panel_place){index - count, 1};
    return mixed % 2 ? (tgi_panel_place){mixed / 2, 1} : (tgi_panel_place){lag + mixed / 2, 0};
}

/* Finds product `index` of a walk of `streamed` panels over `count` held ones. The last two
 * streamed panels pass together, so that held panels are finished and replaced one at a time while
 * there is work. The first two also pass together, so that each arriving held panel allows two
 * products. */
static tgi_panel_place find_in_walk(int64_t count, int64_t streamed, int64_t index)
{
    if (streamed > 1 && index < 2 * count)
        return find_in_pair(count, 0, index);
    const int64_t tail = streamed > 3 ? streamed - 2 : streamed;
    if (index < tail * count)
        return (tgi_panel_place){index % count, index / count};
    tgi_panel_place place = find_in_pair(count, tgi_divide_up(count, 2), index - tail * count);
    place.streamed += tail;
    return place;
}

/* Finds product `index` of panels that all stay. They arrive in an order in which both operands
 * have about equally many bytes on the device, which allows the most products. */
static tgi_panel_place find_in_square(const tg_panels *panels, int64_t held, int64_t streamed,
                                      int64_t index)
{
    const int64_t held_length = panels->is_b_held ? panels->col_count : panels->row_count;
    const int64_t stream_length = panels->is_b_held ? panels->row_count : panels->col_count;
    int64_t held_there = 0, streamed_there = 0;
    for (;;) {
        const int is_streamed =
            held_there == held || (streamed_there < streamed &&
                                   streamed_there * stream_length <= held_there * held_length);
        const int64_t count = is_streamed ? held_there : streamed_there;
        if (index < count)
            return is_streamed ? (tgi_panel_place){index, streamed_there}
                               : (tgi_panel_place){held_there, index};
        index -= count;
        *(is_streamed ? &streamed_there : &held_there) += 1;
    }
}

tgi_panel_place tgi_panels_find_place(const tg_panels *panels, int64_t index)
{
    const int64_t rows = panels->row_panel_count, cols = panels->col_panel_count;
    const int64_t held = panels->is_b_held ? cols : rows;
    const int64_t streamed = panels->is_b_held ? rows : cols;
    if (streamed > 2 && panels->stream_count >= streamed && panels->held_count >= held)
        return find_in_square(panels, held, streamed, index);
    const int64_t most = panels->held_count < held ? panels->held_count : held;
    const int64_t walk = index / (most * streamed), of_walk = index % (most * streamed);
    const panel_range stay = get_range(held, most, walk);
    tgi_panel_place place = find_in_walk(stay.count, streamed, of_walk);
    place.held += stay.first;
    if (panels->held_count > 1 && walk % 2)
        place.streamed = streamed - 1 - place.streamed;
    return place;
}

tg_status tg_get_panel(const tg_problem *problem, const tg_panels *panels, int64_t index,
                       tg_problem *panel)
{
    tgi_problem q;
    tg_problem converted;
    if (!panels || !panel)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               panels ? "panel" : "panels");
    const tg_status status = tgi_panels_read_problem(&problem, &converted, &q);
    if (status)
        return status;
    if (tgi_problem_is_empty(&q) || !are_panels_of(panels, &q) || index < 0 ||
        index >= panels->panel_count)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "index = %lld of %lld panels; pass panels that tg_choose_panels "
                               "made of this problem, and 0 or more, less than their panel_count",
                               (long long)index, (long long)panels->panel_count);
    const int64_t in_entry = panels->row_panel_count * panels->col_panel_count;
    const tgi_panel_place place = tgi_panels_find_place(panels, index % in_entry);
    const panel_range entries = get_range(q.batch_count, panels->batch_count, index / in_entry);
    const panel_range rows =
        get_range(q.m, panels->row_count, panels->is_b_held ? place.streamed : place.held);
    const panel_range cols =
        get_range(q.n, panels->col_count, panels->is_b_held ? place.held : place.streamed);
    tg_problem cut = *problem;
    cut.batch_count = entries.count;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if (id == TGI_OPERAND_c && !tgi_operands_is_matrix_used(&cut, id))
            continue; /* its strides may be any */
        if (tgi_operands_get_matrix(&cut, id))
            cut_matrix(&cut, id, entries, rows, cols);
        else
            cut_vector(&cut, id, rows, cols);
    }
    *panel = cut;
    return TG_STATUS_OK;
}
