#include "dist.h"

/* Leaves out the blocks before the start. */
static tgi_dist_axis make_axis(int64_t count, int64_t block, int portion_count, int source,
                               int64_t start)
{
    return (tgi_dist_axis){count, block, portion_count,
                           (int)((start / block + source) % portion_count), start % block};
}

tgi_dist_axis tgi_dist_rows(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    return make_axis(layout->row_count, layout->row_block, grid->row_count, layout->row_source,
                     layout->row_start);
}

tgi_dist_axis tgi_dist_cols(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    return make_axis(layout->col_count, layout->col_block, grid->col_count, layout->col_source,
                     layout->col_start);
}

/* A block may be as long as INT64_MAX, and an index and a start are below 2^49. */
int tgi_dist_find_portion(const tgi_dist_axis *axis, int64_t i)
{
    return (int)(((i + axis->start) / axis->block + axis->source) % axis->portion_count);
}

int64_t tgi_dist_find_local(const tgi_dist_axis *axis, int64_t i)
{
    const int64_t place = i + axis->start;
    const int64_t local =
        place / axis->block / axis->portion_count * axis->block + place % axis->block;
    return tgi_dist_find_portion(axis, i) == axis->source ? local - axis->start : local;
}

int64_t tgi_dist_find_rest(const tgi_dist_axis *axis, int64_t i)
{
    const int64_t rest = axis->block - (i + axis->start) % axis->block;
    return rest < axis->count - i ? rest : axis->count - i;
}

int64_t tgi_dist_count_local(const tgi_dist_axis *axis, int portion)
{
    const int place = (portion - axis->source + axis->portion_count) % axis->portion_count;
    const int64_t end = axis->count + axis->start;
    const int64_t whole = end / axis->block; /* blocks */
    const int64_t rest = whole % axis->portion_count;
    const int64_t blocks = whole / axis->portion_count + (place < rest);
    return blocks * axis->block + (place == rest ? end % axis->block : 0) -
           (place == 0 ? axis->start : 0);
}

int tgi_dist_is_same_axis(const tgi_dist_axis *x, const tgi_dist_axis *y)
{
    return x->count == y->count && x->portion_count == y->portion_count &&
           (x->portion_count == 1 ||
            (x->block == y->block && x->source == y->source && x->start == y->start));
}

/* Returns the number of this rank's local rows (columns) before the layout's first one. */
static int64_t count_rows_before(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    const tgi_dist_axis axis = {layout->row_start, layout->row_block, grid->row_count,
                                layout->row_source, 0};
    return tgi_dist_count_local(&axis, grid->my_row);
}

static int64_t count_cols_before(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    const tgi_dist_axis axis = {layout->col_start, layout->col_block, grid->col_count,
                                layout->col_source, 0};
    return tgi_dist_count_local(&axis, grid->my_col);
}

int64_t tgi_dist_list_shared(const tgi_dist_axis *x, int x_portion, const tgi_dist_axis *y,
                             int y_portion, int64_t *places)
{
    int64_t count = 0, end;
    for (int64_t i = 0; i < x->count; i = end) {
        /* The next index at which a portion may change. */
        const int64_t x_rest = tgi_dist_find_rest(x, i), y_rest = tgi_dist_find_rest(y, i);
        end = i + (x_rest < y_rest ? x_rest : y_rest);
        if (tgi_dist_find_portion(x, i) != x_portion || tgi_dist_find_portion(y, i) != y_portion)
            continue;
        const int64_t first = tgi_dist_find_local(x, i);
        for (int64_t j = 0; places && j < end - i; j++)
            places[count + j] = first + j;
        count += end - i;
    }
    return count;
}

/* Returns INVALID_ARGUMENT if a number is below `least` or above `most`. */
static tg_status check_range(const char *layout, const char *member, int64_t value, int64_t least,
                             int64_t most)
{
    if (value >= least && value <= most)
        return TG_STATUS_OK;
    return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "%s of %s is %lld; pass %lld..%lld", member,
                         layout, (long long)value, (long long)least, (long long)most);
}

/* Returns the least leading dimension: what precedes a submatrix counts, what follows it is not
 * known. */
static int64_t find_least_dimension(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    const tgi_dist_axis rows = tgi_dist_rows(layout, grid), cols = tgi_dist_cols(layout, grid);
    return layout->is_row_major
               ? tgi_dist_count_local(&cols, grid->my_col) + count_cols_before(layout, grid)
               : tgi_dist_count_local(&rows, grid->my_row) + count_rows_before(layout, grid);
}

/* Returns the leading dimension, or the least possible one if it is not given. */
static int64_t find_leading_dimension(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    if (layout->local_leading_dimension)
        return layout->local_leading_dimension;
    const int64_t least = find_least_dimension(layout, grid);
    return least > 1 ? least : 1;
}

/* Bounds the elements of the matrix and those that its local portion spans, so that no number of
 * bytes of them, of sums or of buffers overflows. */
static tg_status check_size(const tg_dist_layout *layout, const char *name,
                            const tg_dist_grid *grid)
{
    const double elems_max = (double)((int64_t)1 << 56);
    const tgi_dist_axis rows = tgi_dist_rows(layout, grid), cols = tgi_dist_cols(layout, grid);
    const double row_count =
        (double)(tgi_dist_count_local(&rows, grid->my_row) + count_rows_before(layout, grid));
    const double col_count =
        (double)(tgi_dist_count_local(&cols, grid->my_col) + count_cols_before(layout, grid));
    const double lines = layout->is_row_major ? row_count : col_count;
    const double span = lines * (double)find_leading_dimension(layout, grid);
    const double all = (double)layout->row_count * (double)layout->col_count;
    if (all <= elems_max && span <= elems_max)
        return TG_STATUS_OK;
    return tgi_dist_fail(TG_STATUS_SIZE_OVERFLOW,
                         "%s has %.4g elements, and its local matrix spans %.4g; pass at most 2^56",
                         name, all, span);
}

tg_status tgi_dist_check_layout(const tg_dist_layout *layout, const char *name,
                                const tg_dist_grid *grid)
{
    const int64_t count_max = (int64_t)1 << 48;
    tg_status status = tgi_dist_check_struct(layout, sizeof *layout, name);
    if (!status && tg_get_type_bytes(layout->type) == 0)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "type of %s is %d; pass a tg_type", name,
                             (int)layout->type);
    if (status)
        return status;
    const struct {
        const char *member;
        int64_t value, least, most;
    } ranges[] = {{"row_count", layout->row_count, 0, count_max},
                  {"col_count", layout->col_count, 0, count_max},
                  {"row_block", layout->row_block, 1, INT64_MAX},
                  {"col_block", layout->col_block, 1, INT64_MAX},
                  {"row_source", layout->row_source, 0, grid->row_count - 1},
                  {"col_source", layout->col_source, 0, grid->col_count - 1},
                  {"is_row_major", layout->is_row_major, 0, 1},
                  {"row_start", layout->row_start, 0, count_max},
                  {"col_start", layout->col_start, 0, count_max}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && !status; i++)
        status =
            check_range(name, ranges[i].member, ranges[i].value, ranges[i].least, ranges[i].most);
    if (!status && layout->local_leading_dimension != 0)
        status = check_range(name, "local_leading_dimension", layout->local_leading_dimension,
                             find_least_dimension(layout, grid), count_max);
    return status ? status : check_size(layout, name, grid);
}

void tgi_dist_list_values(const tg_dist_layout *layout, tgi_dist_value *values)
{
    const tgi_dist_value all[TGI_DIST_LAYOUT_VALUES] = {
        {"type of a layout", layout->type},
        {"row_count of a layout", layout->row_count},
        {"col_count of a layout", layout->col_count},
        {"row_block of a layout", layout->row_block},
        {"col_block of a layout", layout->col_block},
        {"row_source of a layout", layout->row_source},
        {"col_source of a layout", layout->col_source},
        {"is_row_major of a layout", layout->is_row_major},
        {"row_start of a layout", layout->row_start},
        {"col_start of a layout", layout->col_start}};
    for (int i = 0; i < TGI_DIST_LAYOUT_VALUES; i++)
        values[i] = all[i];
}

void *tgi_dist_find_origin(const tg_dist_layout *layout, const tg_dist_grid *grid, const void *data)
{
    const int64_t place = count_rows_before(layout, grid) * tgi_dist_row_stride(layout, grid) +
                          count_cols_before(layout, grid) * tgi_dist_col_stride(layout, grid);
    return data ? (char *)(uintptr_t)data + place * tg_get_type_bytes(layout->type) : NULL;
}

int64_t tgi_dist_row_stride(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    return layout->is_row_major ? find_leading_dimension(layout, grid) : 1;
}

int64_t tgi_dist_col_stride(const tg_dist_layout *layout, const tg_dist_grid *grid)
{
    return layout->is_row_major ? 1 : find_leading_dimension(layout, grid);
}

tg_status tg_dist_get_local_size(const tg_dist_layout *layout, const tg_dist_grid *grid,
                                 int grid_row, int grid_col, int64_t *rows, int64_t *cols)
{
    if (!grid || !rows || !cols)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "%s is NULL; pass one",
                             !grid   ? "grid"
                             : !rows ? "rows"
                                     : "cols");
    tg_status status = check_range("the rank", "grid_row", grid_row, 0, grid->row_count - 1);
    if (!status)
        status = check_range("the rank", "grid_col", grid_col, 0, grid->col_count - 1);
    if (!status)
        status = tgi_dist_check_layout(layout, "layout", grid);
    if (status)
        return status;
    const tgi_dist_axis row_axis = tgi_dist_rows(layout, grid);
    const tgi_dist_axis col_axis = tgi_dist_cols(layout, grid);
    *rows = tgi_dist_count_local(&row_axis, grid_row);
    *cols = tgi_dist_count_local(&col_axis, grid_col);
    return TG_STATUS_OK;
}
