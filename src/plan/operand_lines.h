/* Describes an operand of a product as lines of contiguous elements, for a copy without gaps. */
#ifndef TGI_OPERAND_LINES_H
#define TGI_OPERAND_LINES_H

#include "core/operand_list.h"

/* Element e of line i of entry p lies at data + p * entry_pitch + i * line_pitch + e * elem_pitch.
 * The copy has the elements one behind another, line by line. Pitches are bytes. */
typedef struct tgi_operand_lines {
    char *data;
    int64_t elem_bytes, elem_pitch, elem_count;
    int64_t line_pitch, line_count;
    int64_t entry_pitch, entry_count;
} tgi_operand_lines;

/* Describes an operand of a valid problem that uses it. Lines run along the shorter stride. A
 * matrix whose batch stride is 0 has one entry. */
tgi_operand_lines tgi_operand_lines_find(const tg_problem *problem, int id);

/* Returns the bytes of the copy. */
static inline int64_t tgi_operand_lines_count_bytes(const tgi_operand_lines *lines)
{
    return lines->elem_bytes * lines->elem_count * lines->line_count * lines->entry_count;
}

/* Replaces the problem's operand by the copy at `memory`. */
void tgi_operand_lines_use_copy(tg_problem *problem, int id, void *memory);

/* Returns 1 if a bus copies lines of line_bytes bytes, which lie line_pitch bytes apart in pinned
 * memory, at least as fast as threads fill pinned blocks with them. Lines without gaps between them
 * count as one. */
int tgi_operand_lines_are_long(double line_bytes, double line_pitch);

/* Returns the number of threads that move an operand in the shortest time. */
int tgi_operand_lines_choose_threads(void);

/* Copies bytes first .. first + bytes - 1 of the copy, which are whole elements, between the
 * operand and `piece`: to `piece` if is_in is 1, else from it. In `piece` they lie one behind
 * another. At most `thread_count` threads of the processor copy. */
void tgi_operand_lines_move(const tgi_operand_lines *lines, int64_t first, int64_t bytes,
                            char *piece, int is_in, int thread_count);

#endif
