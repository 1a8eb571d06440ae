#include "plan/operand_lines.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/alloc.h"
#include "core/checked.h"
#include "model/figures.h"
#include "threads/threads.h"

/* A thread moves this much at a time. */
#define TASK_BYTES ((int64_t)64 << 10)

/* The part of the next line that is prefetched. */
#define READ_AHEAD_BYTES 4096

/* The largest pitch that a GPU's driver takes. */
#define LONG_PITCH_MAX INT32_MAX

/* More threads than this do not use more of the memory bandwidth. */
#define THREAD_COUNT_MAX 16

int tgi_operand_lines_choose_threads(void)
{
    const int count = tgi_threads_choose_count();
    return count < THREAD_COUNT_MAX ? count : THREAD_COUNT_MAX;
}

int tgi_operand_lines_are_long(double line_bytes, double line_pitch)
{
    const tgi_panel_figures *f = tgi_figures_find_panels();
    return line_pitch >= line_bytes && line_pitch <= LONG_PITCH_MAX &&
           line_bytes >= (line_pitch <= f->near_pitch_ratio * line_bytes ? f->long_line_bytes
                                                                         : f->long_far_line_bytes);
}

static int64_t get_distance(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Returns 1 if the lines of the matrix are its columns. */
static int has_column_lines(const tg_matrix *matrix)
{
    if (matrix->row_count == 1 || matrix->col_count == 1)
        return matrix->col_count == 1;
    return get_distance(matrix->row_stride) < get_distance(matrix->col_stride);
}

/* Merges lines without gaps into one line, and treats entries as lines. */
static tgi_operand_lines close_up(tgi_operand_lines lines)
{
    for (int i = 0; i < 2; i++) {
        if (lines.line_count > 1 && lines.line_pitch != lines.elem_count * lines.elem_pitch)
            break;
        lines.elem_count *= lines.line_count;
        lines.line_pitch = lines.entry_pitch;
        lines.line_count = lines.entry_count;
        lines.entry_pitch = 0;
        lines.entry_count = 1;
    }
    return lines;
}

tgi_operand_lines tgi_operand_lines_find(const tg_problem *problem, int id)
{
    const tg_matrix *matrix = tgi_operands_get_matrix(problem, id);
    const int64_t elem_bytes = tg_get_type_bytes(tgi_operands_get_type(problem, id));
    tgi_operand_lines lines = {
        .elem_bytes = elem_bytes, .elem_pitch = elem_bytes, .line_count = 1, .entry_count = 1};
    const void *data = tgi_operands_get_data(problem, id);
    memcpy(&lines.data, &data, sizeof data);
    if (!matrix) {
        lines.elem_count = tgi_operands_count_values(id, tgi_operands_get_kind(problem, id),
                                                     problem->d.row_count, problem->d.col_count);
        return lines;
    }
    const int by_column = has_column_lines(matrix);
    lines.elem_count = by_column ? matrix->row_count : matrix->col_count;
    lines.line_count = by_column ? matrix->col_count : matrix->row_count;
    lines.elem_pitch = elem_bytes * (by_column ? matrix->row_stride : matrix->col_stride);
    lines.line_pitch = elem_bytes * (by_column ? matrix->col_stride : matrix->row_stride);
    lines.entry_count = matrix->batch_stride ? problem->batch_count : 1;
    lines.entry_pitch = elem_bytes * matrix->batch_stride;
    return close_up(lines);
}

void tgi_operand_lines_use_copy(tg_problem *problem, int id, void *memory)
{
    tg_matrix *matrix = tgi_operands_get_matrix(problem, id);
    tgi_operands_set_data(problem, id, memory);
    if (!matrix)
        return;
    const int by_column = has_column_lines(matrix);
    matrix->row_stride = by_column ? 1 : matrix->col_count;
    matrix->col_stride = by_column ? matrix->row_count : 1;
    if (matrix->batch_stride)
        matrix->batch_stride = matrix->row_count * matrix->col_count;
}

/* Bytes of a copy that threads move. */
typedef struct line_move {
    const tgi_operand_lines *lines;
    int64_t first, bytes;
    char *piece;
    int is_in;
} line_move;

/* Copies with streaming stores, into memory that nobody reads soon. The caller calls
 * complete_copies once after all lines, because it waits for the stores. */
static void copy_past_caches(char *to, const char *from, size_t bytes)
{
#if defined(__SSE2__)
    const size_t ahead = -(uintptr_t)to % sizeof(__m128i);
    if (bytes > 256) {
        memcpy(to, from, ahead);
        for (to += ahead, from += ahead, bytes -= ahead; bytes >= 64;
             to += 64, from += 64, bytes -= 64) {
            for (int i = 0; i < 64; i += 16)
                _mm_stream_si128((void *)(to + i), _mm_loadu_si128((const void *)(from + i)));
        }
    }
#endif
    memcpy(to, from, bytes);
}

static void complete_copies(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* Prefetches the next line while this one is copied. Lines lie too far apart for the hardware
 * prefetcher. */
static void read_ahead(const char *line, int64_t bytes)
{
    for (int64_t i = 0; i < bytes && i < READ_AHEAD_BYTES; i += TGI_CACHE_LINE_BYTES)
        __builtin_prefetch(line + i);
}

static void move_elements(const tgi_operand_lines *lines, char *operand, char *piece, int64_t bytes,
                          int is_in)
{
    const size_t elem_bytes = (size_t)lines->elem_bytes;
    if (lines->elem_pitch == lines->elem_bytes) {
        if (is_in)
            memcpy(piece, operand, (size_t)bytes);
        else
            copy_past_caches(operand, piece, (size_t)bytes);
        return;
    }
    for (int64_t done = 0; done < bytes; done += lines->elem_bytes) {
        memcpy(is_in ? piece + done : operand, is_in ? operand : piece + done, elem_bytes);
        operand += lines->elem_pitch;
    }
}

/* Moves the part of a task: one line, or the task's part of it, at a time. */
static void move_task(void *state, int64_t index, int thread)
{
    const line_move *move = state;
    const tgi_operand_lines *lines = move->lines;
    const int64_t line_bytes = lines->elem_bytes * lines->elem_count;
    int64_t done = index * TASK_BYTES;
    const int64_t end = done + TASK_BYTES < move->bytes ? done + TASK_BYTES : move->bytes;
    (void)thread;
    while (done < end) {
        const int64_t at = move->first + done, line = at / line_bytes, offset = at % line_bytes;
        const int64_t rest = line_bytes - offset;
        const int64_t bytes = end - done < rest ? end - done : rest;
        const int has_next = line % lines->line_count + 1 < lines->line_count;
        char *operand = lines->data + line / lines->line_count * lines->entry_pitch +
                        line % lines->line_count * lines->line_pitch +
                        offset / lines->elem_bytes * lines->elem_pitch;
        if (move->is_in && has_next && lines->elem_pitch == lines->elem_bytes)
            read_ahead(operand - offset + lines->line_pitch, line_bytes);
        move_elements(lines, operand, move->piece + done, bytes, move->is_in);
        done += bytes;
    }
    complete_copies();
}

void tgi_operand_lines_move(const tgi_operand_lines *lines, int64_t first, int64_t bytes,
                            char *piece, int is_in, int thread_count)
{
    line_move move = {lines, first, bytes, piece, is_in};
    tgi_threads_run(move_task, &move, tgi_divide_up(bytes, TASK_BYTES), thread_count);
}
