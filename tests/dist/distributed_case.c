#include "distributed_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t draw_number(uint64_t *state, int64_t least, int64_t most)
{
    return least + (int64_t)(check_next_random(state) % (uint64_t)(most - least + 1));
}

/* A factor that is 0 in FP32. */
#define LOST_FACTOR 0x1p-200

/* Returns beta as it counts. */
static double round_beta(const distributed_case *made)
{
    return made->a.type == TG_TYPE_FP64 ? made->problem.beta : (float)made->problem.beta;
}

/* The layout's arithmetic, written apart from the library's: index by index. */
static int find_owner(int64_t i, int64_t block, int source, int portions)
{
    return (int)((i / block + source) % portions);
}

static int64_t count_owned(int64_t count, int64_t block, int source, int portions, int portion)
{
    int64_t owned = 0;
    for (int64_t i = 0; i < count; i++)
        owned += find_owner(i, block, source, portions) == portion;
    return owned;
}

tg_dist_layout draw_layout(uint64_t *state, tg_type type, int64_t rows, int64_t cols,
                           const distributed_case *of)
{
    static const int64_t blocks[] = {1, 2, 3, 7, 16, 31, 128, 1000};
    tg_dist_layout layout = {.struct_bytes = sizeof layout,
                             .type = type,
                             .row_count = rows,
                             .col_count = cols,
                             .row_block = blocks[draw_number(state, 0, 7)],
                             .col_block = blocks[draw_number(state, 0, 7)],
                             .row_source = (int)draw_number(state, 0, of->grid_rows - 1),
                             .col_source = (int)draw_number(state, 0, of->grid_cols - 1),
                             .is_row_major = (int)draw_number(state, 0, 1)};
    const int64_t pad = draw_number(state, 0, 3);
    if (draw_number(state, 0, 2) == 0) { /* a submatrix */
        layout.row_start = draw_number(state, 0, 50);
        layout.col_start = draw_number(state, 0, 50);
    }
    const int64_t local_rows =
        count_owned(layout.row_start + rows, layout.row_block, layout.row_source, of->grid_rows,
                    of->rank / of->grid_cols);
    const int64_t local_cols =
        count_owned(layout.col_start + cols, layout.col_block, layout.col_source, of->grid_cols,
                    of->rank % of->grid_cols);
    if (pad)
        layout.local_leading_dimension = (layout.is_row_major ? local_cols : local_rows) + pad;
    return layout;
}

static void draw_types(uint64_t *state, int is_wide, tg_type *a, tg_type *b, tg_type *d)
{
    static const tg_type types[][3] = {{TG_TYPE_FP32, TG_TYPE_FP32, TG_TYPE_FP32},
                                       {TG_TYPE_FP64, TG_TYPE_FP64, TG_TYPE_FP64},
                                       {TG_TYPE_BF16, TG_TYPE_BF16, TG_TYPE_BF16},
                                       {TG_TYPE_FP16, TG_TYPE_FP16, TG_TYPE_FP16},
                                       {TG_TYPE_BF16, TG_TYPE_BF16, TG_TYPE_FP32},
                                       {TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2, TG_TYPE_BF16},
                                       {TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2},
                                       {TG_TYPE_FP8_E5M2, TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E4M3}};
    const tg_type *chosen = types[draw_number(state, 0, is_wide ? 1 : 7)];
    *a = chosen[0];
    *b = chosen[1];
    *d = chosen[2];
}

distributed_case draw_case(uint64_t *state, int64_t k_most, int rank, int rank_count, int is_wide)
{
    static const double factors[] = {0, 1, -1, 0.5, 1, LOST_FACTOR};
    const int64_t m = draw_number(state, 0, 41), n = draw_number(state, 0, 37);
    const int64_t k = draw_number(state, 0, k_most);
    distributed_case made = {.rank = rank};
    do
        made.grid_rows = (int)draw_number(state, 1, rank_count);
    while (rank_count % made.grid_rows);
    made.grid_cols = rank_count / made.grid_rows;
    tg_type a, b, d;
    draw_types(state, is_wide, &a, &b, &d);
    tg_dist_problem problem = {.struct_bytes = sizeof problem,
                               .op_a = (tg_operation)draw_number(state, 0, 1),
                               .op_b = (tg_operation)draw_number(state, 0, 1),
                               .alpha = factors[draw_number(state, 0, 4)],
                               .beta = factors[draw_number(state, 0, 5)]};
    made.a = draw_layout(state, a, problem.op_a ? k : m, problem.op_a ? m : k, &made);
    made.b = draw_layout(state, b, problem.op_b ? n : k, problem.op_b ? k : n, &made);
    made.d = draw_layout(state, d, m, n, &made);
    made.problem = problem;
    return made;
}

double get_case_element(tg_type type, char which, int64_t i, int64_t j)
{
    uint64_t state = (uint64_t)which * 1000003u + (uint64_t)i * 7919u + (uint64_t)j * 104729u;
    double value = 0;
    check_set_element(type, &value, 0, which == UNREAD ? INFINITY : check_next_uniform(&state));
    return check_get_element(type, &value, 0);
}

int visit_local(const tg_dist_layout *layout, const distributed_case *of, visit_element *visit,
                void *user)
{
    const int my_row = of->rank / of->grid_cols, my_col = of->rank % of->grid_cols;
    const int64_t rows = count_owned(layout->row_start + layout->row_count, layout->row_block,
                                     layout->row_source, of->grid_rows, my_row);
    const int64_t cols = count_owned(layout->col_start + layout->col_count, layout->col_block,
                                     layout->col_source, of->grid_cols, my_col);
    const int64_t leading = layout->local_leading_dimension ? layout->local_leading_dimension
                            : layout->is_row_major          ? cols
                                                            : rows;
    int64_t local_i = 0, bad = 0;
    for (int64_t i = -layout->row_start; i < layout->row_count; i++) {
        if (find_owner(i + layout->row_start, layout->row_block, layout->row_source,
                       of->grid_rows) != my_row)
            continue;
        int64_t local_j = 0;
        for (int64_t j = -layout->col_start; j < layout->col_count; j++) {
            if (find_owner(j + layout->col_start, layout->col_block, layout->col_source,
                           of->grid_cols) != my_col)
                continue;
            bad += i >= 0 && j >= 0 &&
                   !visit(user, i, j,
                          layout->is_row_major ? local_i * leading + local_j
                                               : local_j * leading + local_i);
            local_j++;
        }
        local_i++;
    }
    return bad == 0;
}

typedef struct fill_state {
    void *data;
    tg_type type;
    char which;
} fill_state;

static int fill_element(void *user, int64_t i, int64_t j, int64_t place)
{
    const fill_state *state = user;
    check_set_element(state->type, state->data, place,
                      get_case_element(state->type, state->which, i, j));
    return 1;
}

void *make_local(const tg_dist_layout *layout, const distributed_case *of, char which,
                 int64_t *bytes)
{
    const int64_t rows = count_owned(layout->row_start + layout->row_count, layout->row_block,
                                     layout->row_source, of->grid_rows, of->rank / of->grid_cols);
    const int64_t cols = count_owned(layout->col_start + layout->col_count, layout->col_block,
                                     layout->col_source, of->grid_cols, of->rank % of->grid_cols);
    const int64_t across = layout->is_row_major ? rows : cols;
    const int64_t leading = layout->local_leading_dimension ? layout->local_leading_dimension
                            : layout->is_row_major          ? cols
                                                            : rows;
    *bytes = (across * leading + 8) * tg_get_type_bytes(layout->type);
    fill_state state = {malloc((size_t)*bytes), layout->type, which};
    if (!state.data)
        abort();
    memset(state.data, POISON, (size_t)*bytes);
    if (which)
        visit_local(layout, of, fill_element, &state);
    return state.data;
}

void make_case_operands(distributed_case *made)
{
    made->local_a = make_local(&made->a, made, 'a', &made->bytes_a);
    made->local_b = make_local(&made->b, made, 'b', &made->bytes_b);
    made->local_c =
        make_local(&made->d, made, round_beta(made) != 0 ? 'c' : UNREAD, &made->bytes_d);
    made->local_d = make_local(&made->d, made, 0, &made->bytes_d);
}

void free_case(distributed_case *made)
{
    free(made->local_a);
    free(made->local_b);
    free(made->local_c);
    free(made->local_d);
}

static double largest_error(tg_type type)
{
    switch (type) {
    case TG_TYPE_FP64:
        return 0x1p-53;
    case TG_TYPE_FP32:
        return 0x1p-24;
    case TG_TYPE_FP16:
        return 0x1p-11;
    case TG_TYPE_BF16:
        return 0x1p-8;
    case TG_TYPE_FP8_E4M3:
        return 0x1p-4;
    default:
        return 0x1p-3;
    }
}

typedef struct compare_state {
    const distributed_case *made;
    unsigned char *seen; /* a copy of D in which the elements that are right are poisoned again */
} compare_state;

static int compare_element(void *user, int64_t i, int64_t j, int64_t place)
{
    const compare_state *state = user;
    const distributed_case *made = state->made;
    const tg_dist_problem *problem = &made->problem;
    const int is_a_transposed = problem->op_a == TG_OPERATION_TRANSPOSE;
    const int is_b_transposed = problem->op_b == TG_OPERATION_TRANSPOSE;
    const int64_t k = is_a_transposed ? made->a.row_count : made->a.col_count;
    long double sum = 0, magnitude = 0;
    for (int64_t p = 0; p < k && problem->alpha != 0; p++) {
        const long double x =
            get_case_element(made->a.type, 'a', is_a_transposed ? p : i, is_a_transposed ? i : p);
        const long double y =
            get_case_element(made->b.type, 'b', is_b_transposed ? j : p, is_b_transposed ? p : j);
        sum += x * y;
        magnitude += fabsl(x * y);
    }
    long double exact = problem->alpha * sum, bound = fabsl(problem->alpha * magnitude);
    const double beta = round_beta(made);
    if (beta != 0) {
        const long double c = get_case_element(made->d.type, 'c', i, j);
        exact += beta * c;
        bound += fabsl(beta * c);
    }
    const double unit = made->a.type == TG_TYPE_FP64 ? 0x1p-53 : 0x1p-24;
    bound = bound * (k + 3) * unit / (1 - (k + 3) * unit);
    bound += largest_error(made->d.type) * fabsl(exact) * (1 + 0x1p-20L);
    if (check_is_fp8(made->d.type)) /* subnormals, and the largest number */
        bound += fabsl(exact) > 448 ? fabsl(exact) : 0x1p-10;
    else if (made->d.type == TG_TYPE_FP16)
        bound += 0x1p-25;
    if (check_is_fp8(made->a.type)) /* tg_precision allows it */
        bound += 0x1p-5 * fabsl(problem->alpha * magnitude);
    const double got = check_get_element(made->d.type, made->local_d, place);
    const int64_t bytes = tg_get_type_bytes(made->d.type);
    memset(state->seen + place * bytes, POISON, (size_t)bytes);
    if (fabsl(got - exact) <= bound)
        return 1;
    fprintf(stderr, "rank %d: d(%lld, %lld) is %g, not %Lg\n", made->rank, (long long)i,
            (long long)j, got, exact);
    return 0;
}

int is_case_right(const distributed_case *made)
{
    compare_state state = {made, malloc((size_t)made->bytes_d)};
    if (!state.seen)
        abort();
    memcpy(state.seen, made->local_d, (size_t)made->bytes_d);
    int is_right = visit_local(&made->d, made, compare_element, &state);
    for (int64_t i = 0; i < made->bytes_d; i++)
        is_right &= state.seen[i] == POISON;
    free(state.seen);
    return is_right;
}

int failures;

void expect(int is_true, const char *what, int64_t number)
{
    int rank;
    if (is_true)
        return;
    failures++;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "rank %d: %s (%lld): %s\n", rank, what, (long long)number,
            tg_dist_get_error_detail());
}
