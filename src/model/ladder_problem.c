#include "model/ladder_problem.h"

/* Element (i, j) lies at i * col_count + j. The stride of a dimension with one entry does not
 * count. */
static int is_dense(const tgi_layout *layout, int64_t row_count, int64_t col_count)
{
    return (col_count == 1 || layout->col == 1) && (row_count == 1 || layout->row == col_count);
}

int tgi_model_ladder_takes_problem(const tgi_problem *p, tgi_refusal *refusal)
{
    if (p->d_type != p->type)
        return tgi_refuse(refusal, TG_REFUSAL_OTHER_TYPE,
                          "the ladder's kernels store D in the type of A and B");
    if (p->batch_count != 1)
        return tgi_refuse(refusal, TG_REFUSAL_BATCH,
                          "the ladder's kernels take one product at a time, no batch");
    if (p->epilogue.alpha != 1.0 || p->epilogue.beta != 0.0)
        return tgi_refuse(refusal, TG_REFUSAL_EPILOGUE,
                          "the ladder's kernels form D = A B: alpha must be 1 and beta 0");
    if (!tgi_epilogue_is_linear(&p->epilogue))
        return tgi_refuse(refusal, TG_REFUSAL_EPILOGUE,
                          "the ladder's kernels apply no bias and no activation");
    if (!is_dense(&p->a, p->m, p->k) || !is_dense(&p->b, p->k, p->n) ||
        !is_dense(&p->d, p->m, p->n))
        return tgi_refuse(refusal, TG_REFUSAL_LAYOUT,
                          "the ladder's kernels take row-major matrices without gaps: row strides "
                          "k, n and n");
    return 1;
}
