/* Multiplies matrices in the memory of GPUs. A rank gathers op(A) of its rows and op(B) of its
 * columns, whole along k, so that each element of D is formed by one product. They come in pieces,
 * and what has come is multiplied while the next piece is under way. */
#include <math.h>

#include "dist_wire.h"

/* Pieces are a power of two smaller than all lines, the first two alike: 1/8, 1/8, 1/4, 1/2. They
 * end at multiples of lines with which tiles are whole. */
enum { PIECES_MAX = 4, PIECE_LINES = 256 };

/* op(A) or op(B) as it is gathered. */
typedef struct gathered {
    const tgi_dist_supply *supply;
    int is_gathered; /* 0: all of its k is here */
    int64_t piece_count;
    int64_t place;               /* bytes from the beginning of each rank's buffer */
    int64_t pitch;               /* bytes from line to line, or from k to k */
    int first_rank, rank_stride; /* the ranks that share my lines */
    tg_matrix view;              /* m x k or k x n */
} gathered;

/* Returns the line before which the first `count` pieces end. */
static int64_t find_piece_end(const gathered *operand, int64_t count)
{
    const int64_t lines = operand->supply->line_count;
    const int64_t end = (lines >> (operand->piece_count - count)) / PIECE_LINES * PIECE_LINES;
    if (count == 0)
        return 0;
    return operand->is_gathered && count < operand->piece_count ? end : lines;
}

/* Returns the bytes that an operand of the rank with the most lines needs. */
static int64_t find_most_bytes(const gathered *operand, const tgi_dist_axis *lines)
{
    const tgi_dist_supply *supply = operand->supply;
    int64_t most = 0;
    for (int portion = 0; portion < lines->portion_count; portion++) {
        const int64_t count = tgi_dist_count_local(lines, portion);
        most = count > most ? count : most;
    }
    const int64_t element_bytes = tg_get_type_bytes(supply->type), k = supply->k_axis.count;
    if (!operand->is_gathered)
        return 0;
    return supply->is_along_k ? most * tgi_dist_round_up(k * element_bytes)
                              : k * tgi_dist_round_up(most * element_bytes);
}

/* Describes an operand whose place in the buffers is known; the buffer's address is not yet. */
static gathered describe_gathered(const tgi_dist_product *work, const tgi_dist_supply *supply,
                                  int64_t place)
{
    const tg_dist_grid *grid = work->grid;
    const int64_t element_bytes = tg_get_type_bytes(supply->type), k = supply->k_axis.count;
    const int is_a = supply == &work->a;
    gathered made = {.supply = supply,
                     .is_gathered = supply->k_axis.portion_count > 1,
                     .piece_count = work->piece_count,
                     .place = place,
                     .first_rank = is_a ? grid->my_row * grid->col_count : grid->my_col,
                     .rank_stride = is_a ? 1 : grid->col_count};
    made.pitch = tgi_dist_round_up((supply->is_along_k ? k : supply->line_count) * element_bytes);
    int64_t line_stride = supply->line_stride, k_stride = supply->k_stride;
    if (made.is_gathered) {
        line_stride = supply->is_along_k ? made.pitch / element_bytes : 1;
        k_stride = supply->is_along_k ? 1 : made.pitch / element_bytes;
    }
    made.view = tg_make_matrix(supply->type, supply->data, is_a ? supply->line_count : k,
                               is_a ? k : supply->line_count);
    made.view.row_stride = is_a ? line_stride : k_stride;
    made.view.col_stride = is_a ? k_stride : line_stride;
    return made;
}

/* Returns lines of a block of my portion of k, from `k` on, which is my number `local`. */
static tgi_dist_piece cut_block(const gathered *operand, int64_t line, int64_t line_count,
                                int64_t k, int64_t local)
{
    const tgi_dist_supply *supply = operand->supply;
    const int64_t element_bytes = tg_get_type_bytes(supply->type);
    const int64_t width = tgi_dist_find_rest(&supply->k_axis, k);
    const int64_t from = line * supply->line_stride + local * supply->k_stride;
    tgi_dist_piece piece = {.from = supply->data + from * element_bytes,
                            .from_pitch = supply->line_stride * element_bytes,
                            .to = operand->place + line * operand->pitch + k * element_bytes,
                            .to_pitch = operand->pitch,
                            .line_bytes = width * element_bytes,
                            .line_count = line_count};
    if (!supply->is_along_k) {
        piece.from_pitch = supply->k_stride * element_bytes;
        piece.to = operand->place + k * operand->pitch + line * element_bytes;
        piece.line_bytes = line_count * element_bytes;
        piece.line_count = width;
    }
    return piece;
}

/* Puts lines of my portion of k on their way to a rank, which may be this one: they then go in the
 * default stream. */
static void send_lines(tgi_dist_product *work, const gathered *operand, int rank, int64_t line,
                       int64_t line_count)
{
    tgi_dist_wire *wire = work->grid->wire;
    const tgi_dist_axis *axis = &operand->supply->k_axis;
    for (int64_t local = 0, k = 0, width; k < axis->count; k += width) {
        width = tgi_dist_find_rest(axis, k);
        if (tgi_dist_find_portion(axis, k) != operand->supply->portion)
            continue;
        const tgi_dist_piece piece = cut_block(operand, line, line_count, k, local);
        if (rank == wire->rank)
            tgi_dist_copy(wire, (void *)(uintptr_t)wire->buffers[rank], &piece, NULL);
        else
            tgi_dist_put(wire, rank, &piece);
        local += width;
    }
}

/* Puts piece `number` of my portion of k on its way to the other ranks that share my lines. */
static void send_piece(tgi_dist_product *work, const gathered *operand, int64_t number)
{
    const tgi_dist_supply *supply = operand->supply;
    const int64_t line = find_piece_end(operand, number);
    const int64_t line_count = find_piece_end(operand, number + 1) - line;
    const int64_t k_count = tgi_dist_count_local(&supply->k_axis, supply->portion);
    for (int i = 1; i < supply->k_axis.portion_count; i++) {
        const int portion = (supply->portion + i) % supply->k_axis.portion_count;
        const int rank = operand->first_rank + portion * operand->rank_stride;
        send_lines(work, operand, rank, line, line_count);
        tgi_dist_post(work->grid->wire, rank);
        work->counts.bytes_sent += line_count * k_count * tg_get_type_bytes(supply->type);
    }
}

/* Makes the default stream wait for a piece of the other ranks that share my lines. */
static void await_piece(tgi_dist_product *work, const gathered *operand, int64_t number)
{
    const tgi_dist_supply *supply = operand->supply;
    const int64_t line_count =
        find_piece_end(operand, number + 1) - find_piece_end(operand, number);
    const int64_t k_count = tgi_dist_count_local(&supply->k_axis, supply->portion);
    for (int portion = 0; portion < supply->k_axis.portion_count; portion++)
        if (portion != supply->portion)
            tgi_dist_await(work->grid->wire, operand->first_rank + portion * operand->rank_stride,
                           NULL);
    work->counts.bytes_received +=
        line_count * (supply->k_axis.count - k_count) * tg_get_type_bytes(supply->type);
}

/* A region of D: rows and columns from the first ones to the last, which are not included. */
typedef struct d_region {
    int64_t row, row_end, col, col_end;
} d_region;

static void *find_element(const tg_matrix *matrix, int64_t row, int64_t col)
{
    if (!matrix->data)
        return NULL;
    return (char *)matrix->data +
           (row * matrix->row_stride + col * matrix->col_stride) * tg_get_type_bytes(matrix->type);
}

/* Returns the problem of a region of D. */
static tg_problem take_region(const tg_problem *whole, const d_region *region)
{
    tg_problem problem = *whole;
    problem.a.data = find_element(&whole->a, region->row, 0);
    problem.b.data = find_element(&whole->b, 0, region->col);
    problem.c.data = find_element(&whole->c, region->row, region->col);
    problem.d.data = find_element(&whole->d, region->row, region->col);
    problem.a.row_count = problem.c.row_count = problem.d.row_count = region->row_end - region->row;
    problem.b.col_count = problem.c.col_count = problem.d.col_count = region->col_end - region->col;
    return problem;
}

/* Multiplies what piece `number` of both operands makes possible, or adds its predicted seconds. */
static tg_status multiply_pieces(const tgi_dist_product *work, const tg_problem *whole,
                                 const gathered *a, const gathered *b, int64_t number,
                                 double *seconds)
{
    const int64_t row = find_piece_end(a, number), row_end = find_piece_end(a, number + 1);
    const int64_t col = find_piece_end(b, number), col_end = find_piece_end(b, number + 1);
    const d_region regions[] = {{row, row_end, 0, col_end}, {0, row, col, col_end}};
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < 2 && !status; i++) {
        const tg_problem problem = take_region(whole, &regions[i]);
        if (problem.d.row_count == 0 || problem.d.col_count == 0)
            continue;
        status = seconds
                     ? tgi_dist_predict(work->grid, work->context, &problem, seconds)
                     : tgi_dist_take_detail(tg_multiply_on_stream(work->context, &problem, NULL));
    }
    return status;
}

static tg_problem describe_whole(const tgi_dist_product *work, const gathered *a, const gathered *b,
                                 const void *c, void *d)
{
    tg_problem whole = tg_make_problem(a->view, b->view, tgi_dist_view_d(work, d));
    whole.c = tgi_dist_view_d(work, c);
    whole.alpha = work->problem->alpha;
    whole.beta = work->problem->beta;
    return whole;
}

/* Adds up the bytes that come with the first `count` pieces. */
static int64_t count_bytes(const gathered *operand, int64_t count)
{
    const tgi_dist_axis *k = &operand->supply->k_axis;
    const int64_t k_count = k->count - tgi_dist_count_local(k, operand->supply->portion);
    return operand->is_gathered
               ? find_piece_end(operand, count) * k_count * tg_get_type_bytes(operand->supply->type)
               : 0;
}

tg_status tgi_dist_choose_pieces(tgi_dist_product *work)
{
    static const char place[1] __attribute__((aligned(256))); /* stands for all operands */
    double shortest_s = INFINITY;
    int64_t chosen = 1;
    tg_status status = TG_STATUS_OK;
    for (int64_t count = 1; count <= PIECES_MAX && !status; count++) {
        work->piece_count = count;
        gathered a = describe_gathered(work, &work->a, 0);
        gathered b = describe_gathered(work, &work->b, 0);
        a.view.data = b.view.data = (void *)(uintptr_t)place;
        const tg_problem whole = describe_whole(work, &a, &b, place, a.view.data);
        double end_s = 0;
        for (int64_t number = 0; number < count && !status; number++) {
            const int64_t bytes = count_bytes(&a, number + 1) + count_bytes(&b, number + 1);
            const double here_s = bytes ? tgi_dist_predict_link(work->grid, bytes) : 0;
            end_s = here_s > end_s ? here_s : end_s;
            status = multiply_pieces(work, &whole, &a, &b, number, &end_s);
        }
        if (end_s < shortest_s) {
            shortest_s = end_s;
            chosen = count;
        }
    }
    work->piece_count = chosen;
    return status;
}

tg_status tgi_dist_run_gather(tgi_dist_product *work, const void *c, void *d)
{
    const tg_dist_grid *grid = work->grid;
    const tgi_dist_axis rows = tgi_dist_rows(&work->form.a, grid);
    const tgi_dist_axis cols = tgi_dist_cols(&work->form.b, grid);
    const int64_t start = tgi_dist_find_buffer_start(grid);
    gathered a = describe_gathered(work, &work->a, start);
    const int64_t middle = start + find_most_bytes(&a, &rows);
    gathered b = describe_gathered(work, &work->b, middle);
    tg_status status =
        tgi_dist_enter_wire(grid, &work->device, middle + find_most_bytes(&b, &cols), NULL, NULL);
    if (status)
        return status;
    gathered *operands[2] = {&a, &b};
    tgi_dist_follow(grid->wire, NULL);
    /* Each rank sends a piece before it awaits the same one of others, so that none waits in a
     * circle, and the GPU multiplies while the processor sends the next one. */
    for (int i = 0; i < 2; i++)
        if (operands[i]->is_gathered)
            operands[i]->view.data =
                (void *)(uintptr_t)(grid->wire->buffers[grid->rank] + (uint64_t)operands[i]->place);
    const tg_problem whole = describe_whole(work, &a, &b, c, d);
    for (int64_t number = 0; number < work->piece_count; number++) {
        for (int i = 0; i < 2; i++)
            if (operands[i]->is_gathered)
                send_piece(work, operands[i], number);
        for (int i = 0; i < 2; i++)
            if (operands[i]->is_gathered && number == 0) /* all lines of my own portion at once */
                send_lines(work, operands[i], grid->rank, 0, operands[i]->supply->line_count);
        for (int i = 0; i < 2; i++)
            if (operands[i]->is_gathered)
                await_piece(work, operands[i], number);
        if (!status && !grid->wire->status)
            status = multiply_pieces(work, &whole, &a, &b, number, NULL);
    }
    return tgi_dist_leave_wire(grid, status, NULL, 1);
}
