#include "cpu/transposed.h"

#include <stdlib.h>

/* Tiles of D^T read a B along n as an A along m, in narrow columns, which pays if its rows lie at
 * most so many bytes apart and A does not lie along k. */
#define NEAR_STEP_BYTES 2048

/* For so few columns of D tiles of D^T read a long A along m in place, in narrow columns too. */
#define FEW_COLS 16
#define LONG_ROWS 128

int tgi_cpu_can_transpose(const tgi_problem *p)
{
    const int64_t step_bytes = llabs(p->b.row) * tgi_type_bytes(p->type);
    const int is_b_near = p->b.col != 1 || (p->a.col != 1 && step_bytes <= NEAR_STEP_BYTES);
    const int is_a_narrow = p->a.row == 1 && p->a.col != 1 && p->n <= FEW_COLS && p->m >= LONG_ROWS;
    return is_b_near && !is_a_narrow && p->type == p->b_type &&
           tgi_type_bytes(p->type) == tgi_type_sum_bytes(p->type) && tgi_cpu_is_d_plain(p) &&
           tgi_epilogue_is_sum_alone(&p->epilogue);
}

void tgi_cpu_run_transposed(const tgi_micropanels *given)
{
    const tgi_problem *p = given->call->problem;
    const int64_t bytes = given->tiles->accum_bytes, cols = given->b.cols;
    tgi_micropanels s = *given;
    s.sums_row = cols;
    s.is_added = !given->is_first;
    for (int64_t left = given->cols; left > 0; left -= cols, s.col += cols) {
        s.cols = left < cols ? left : cols;
        void *d = (void *)tgi_cpu_at(s.call->d, &p->d, s.batch, s.row, s.col, bytes);
        const tgi_copy from_d = {.target = s.sums,
                                 .target_stride = cols,
                                 .source = d,
                                 .outer = s.rows,
                                 .inner = s.cols,
                                 .outer_stride = 1,
                                 .inner_stride = p->d.col};
        const tgi_copy to_d = {.target = d,
                               .target_stride = p->d.col,
                               .source = s.sums,
                               .outer = s.cols,
                               .inner = s.rows,
                               .outer_stride = 1,
                               .inner_stride = cols};
        if (s.is_added)
            s.kernels->widen(&from_d);
        tgi_cpu_run_micropanels(&s);
        s.kernels->widen(&to_d);
        s.b.data = (const char *)s.b.data + s.b.micropanel_elems * s.tiles->elem_bytes;
    }
}
