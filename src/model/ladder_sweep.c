/*
 * A part of a matrix may start anywhere within a sector, and the sectors that its requests touch
 * depend on that start. There are as many starts as elements in a sector. The parts of each kind
 * (whole, or at an edge) are therefore counted by their start, and the requests of one part of each
 * kind are counted. No loop runs over the matrix.
 */
#include "model/ladder_sweep.h"

#define SECTOR_ELEMS_MAX 16

/* Columns first .. last, or none if first > last. */
typedef struct run {
    int first, last;
} run;

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the columns of a line in the request of elements first .. last, in the threads' order. */
static run find_run(const tgi_cover *cover, int first, int last, int line)
{
    if (cover->is_by_columns) {
        const int lines = cover->line_count;
        return (run){first / lines + (line < first % lines), last / lines - (line > last % lines)};
    }
    const int cols = cover->col_count;
    return (run){line == first / cols ? first % cols : 0,
                 line == last / cols ? last % cols : cols - 1};
}

/* Returns the sectors of a request in the first line_count lines and col_count columns of a part
 * that starts `phase` elements behind the start of a sector, or 0 if no lane is active. Addresses
 * grow from line to line, so that only neighbouring runs can share a sector. */
static int64_t count_sectors(const tgi_cover *cover, int first, int last, int elem, int line_count,
                             int col_count, int64_t line_stride, int64_t phase)
{
    const int from = cover->is_by_columns ? 0 : first / cover->col_count;
    const int to = cover->is_by_columns ? line_count - 1 : last / cover->col_count;
    const int sector = cover->sector_elems;
    int64_t count = 0, last_before = -1;
    for (int line = from; line <= least(to, line_count - 1); line++) {
        run part = find_run(cover, first, last, line);
        part.first += elem;
        part.last = least(part.last, col_count - 1);
        if (part.first > part.last)
            continue;
        const int reach = (part.last - part.first) / cover->lane_elems * cover->lane_elems;
        const int64_t start = phase + line * line_stride + (cover->is_of_line ? 0 : part.first);
        const int64_t end = start + (cover->is_of_line ? 0 : reach);
        count += end / sector - start / sector + (start / sector != last_before);
        last_before = end / sector;
    }
    return count;
}

/* Adds down_count x across_count parts by the place where they start in a sector. */
static void add_places(int sector, int64_t phase, int64_t down_count, int64_t down_stride,
                       int64_t across_count, int64_t across_stride,
                       int64_t places[SECTOR_ELEMS_MAX])
{
    for (int64_t i = 0; i < sector && i < down_count; i++) {
        for (int64_t j = 0; j < sector && j < across_count; j++) {
            const int64_t alike_down = (down_count - i + sector - 1) / sector;
            const int64_t alike_across = (across_count - j + sector - 1) / sector;
            const int64_t place = phase + i * (down_stride % sector) + j * (across_stride % sector);
            places[place % sector] += alike_down * alike_across;
        }
    }
}

/* Adds the requests of parts of line_count x col_count elements. places[i] of the parts start i
 * elements behind the start of a sector. */
static void add_parts(const tgi_cover *cover, int line_count, int col_count, int64_t line_stride,
                      const int64_t places[SECTOR_ELEMS_MAX], tgi_sweep *sweep)
{
    const int elem_count = cover->line_count * cover->col_count;
    for (int first = 0; first < elem_count; first += cover->request_elems) {
        const int last = least(first + cover->request_elems, elem_count) - 1;
        for (int elem = 0; elem < cover->lane_elems; elem++) {
            for (int place = 0; place < cover->sector_elems; place++) {
                if (places[place] == 0)
                    continue;
                const int64_t sectors = count_sectors(cover, first, last, elem, line_count,
                                                      col_count, line_stride, place);
                sweep->request_count += sectors ? places[place] : 0;
                sweep->sector_count += places[place] * sectors;
            }
        }
    }
}

tgi_sweep tgi_model_sweep(const tgi_line_grid *span, const tgi_cover *cover, int used_col_count)
{
    const int lines = cover->line_count, cols = cover->is_of_line ? 1 : cover->col_count;
    const int sector = cover->sector_elems;
    const int64_t line_stride = span->line_stride;
    tgi_sweep sweep = {0, 0};
    for (int is_last_down = 0; is_last_down < 2; is_last_down++) {
        for (int is_last_across = 0; is_last_across < 2; is_last_across++) {
            const int64_t whole_down = span->line_count / lines;
            const int64_t whole_across = span->col_count / cols;
            const int line_count = is_last_down ? (int)(span->line_count % lines) : lines;
            const int col_count = is_last_across ? (int)(span->col_count % cols) : cols;
            if (line_count == 0 || col_count == 0)
                continue;
            const int64_t down_stride = lines * line_stride,
                          across_stride = cols * span->col_stride;
            const int64_t phase =
                (is_last_down ? whole_down % sector * (down_stride % sector) : 0) +
                (is_last_across ? whole_across % sector * (across_stride % sector) : 0);
            int64_t places[SECTOR_ELEMS_MAX] = {0};
            add_places(sector, phase, is_last_down ? 1 : whole_down, down_stride,
                       is_last_across ? 1 : whole_across, across_stride, places);
            add_parts(cover, line_count, cover->is_of_line ? used_col_count : col_count,
                      line_stride, places, &sweep);
        }
    }
    return sweep;
}
