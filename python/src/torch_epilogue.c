/*
 * The result, the addend, the bias and the scales of a product of PyTorch's tensors.
 */
#include "torch_shims.h"

void tgpy_torch_set_out(tgpy_torch_product *product, int dim_count)
{
    const tgpy_torch_tensor *out = &product->out;
    tg_problem *problem = &product->problem;
    if (product->fault[0])
        return;
    const int64_t row_count = problem->a.row_count, col_count = problem->b.col_count;
    problem->d = (tg_matrix){.data = out->data,
                             .type = out->type,
                             .row_count = row_count,
                             .col_count = col_count,
                             .row_stride = col_count,
                             .col_stride = 1,
                             .batch_stride = row_count * col_count};
    if (product->is_result_given) {
        const int64_t *sizes = out->sizes, *strides = out->strides;
        const int row = dim_count - 2;
        if (!out->is_multiplied || out->dim_count != dim_count || sizes[row] != row_count ||
            sizes[row + 1] != col_count || (row && sizes[0] != problem->batch_count) ||
            out->device_kind != product->a.device_kind ||
            out->device_index != product->a.device_index || out->dtype != product->a.dtype) {
            tgpy_torch_fail(product, "out does not fit the result");
            return;
        }
        problem->d.row_stride = strides[row];
        problem->d.col_stride = strides[row + 1];
        problem->d.batch_stride = row ? strides[0] : 0;
    }
    problem->c = problem->d;
}

/* Returns the stride of the addend along a dimension of D, `from_last` from its last: 0 where the
 * addend broadcasts. Sets the fault if its size does not fit. */
static int64_t find_stride(tgpy_torch_product *product, int from_last, int64_t size)
{
    const tgpy_torch_tensor *c = &product->c;
    const int64_t dim = c->dim_count - 1 - from_last;
    if (dim < 0 || (c->sizes[dim] == 1 && size != 1))
        return 0;
    if (c->sizes[dim] != size)
        tgpy_torch_fail(product, "The size of the addend, %lld, does not fit the result's, %lld",
                        (long long)c->sizes[dim], (long long)size);
    return c->strides[dim];
}

void tgpy_torch_set_addend(tgpy_torch_product *product, double beta, double alpha)
{
    const tgpy_torch_tensor *c = &product->c;
    tg_problem *problem = &product->problem;
    problem->alpha = alpha;
    if (product->fault[0] || beta == 0)
        return;
    if (c->dtype != product->out.dtype || c->device_kind != product->a.device_kind ||
        c->device_index != product->a.device_index) {
        tgpy_torch_fail(product, "the addend's type and device are not the result's");
        return;
    }
    const int batch_dims = product->out.dim_count == 3;
    if (c->dim_count > product->out.dim_count)
        tgpy_torch_fail(product, "the addend has more dimensions than the result");
    const int64_t col_stride = find_stride(product, 0, problem->d.col_count);
    const int64_t row_stride = find_stride(product, 1, problem->d.row_count);
    const int64_t batch_stride = batch_dims ? find_stride(product, 2, problem->batch_count) : 0;
    if (beta == 1 && batch_stride == 0 && row_stride == 0 && col_stride == 1) {
        problem->bias = TG_BIAS_COL; /* one row for all of D */
        problem->bias_data = c->data;
        return;
    }
    problem->beta = beta;
    problem->c.data = c->data;
    problem->c.type = c->type;
    problem->c.col_stride = col_stride;
    problem->c.row_stride = row_stride;
    problem->c.batch_stride = batch_stride;
}

void tgpy_torch_set_bias(tgpy_torch_product *product)
{
    const tgpy_torch_tensor *bias = &product->bias;
    tg_problem *problem = &product->problem;
    if (product->fault[0] || !bias->handle)
        return;
    if (bias->dim_count != 1 || bias->sizes[0] != problem->d.col_count ||
        bias->dtype != product->out.dtype || bias->device_kind != product->a.device_kind ||
        bias->device_index != product->a.device_index) {
        tgpy_torch_fail(product,
                        "the bias has not one value of the result's type for each of its %lld "
                        "columns",
                        (long long)problem->d.col_count);
        return;
    }
    if (bias->sizes[0] > 1 && bias->strides[0] != 1) { /* C is every row of D */
        problem->beta = 1;
        problem->c.data = bias->data;
        problem->c.row_stride = 0;
        problem->c.col_stride = bias->strides[0];
        return;
    }
    problem->bias = TG_BIAS_COL;
    problem->bias_data = bias->data;
}

/* Sets the scale of A (dim 0) or B (dim 1): one value, or one for each row or column. */
static void set_scale(tgpy_torch_product *product, const tgpy_torch_tensor *tensor, int dim,
                      tg_scale *scale, const float **data)
{
    const int64_t length = dim ? product->problem.d.col_count : product->problem.d.row_count;
    int64_t count = 1, stride = 1;
    for (int64_t i = 0; i < tensor->dim_count; i++) {
        count *= tensor->sizes[i];
        stride = tensor->sizes[i] > 1 ? tensor->strides[i] : stride;
    }
    if (!tensor->is_multiplied || tensor->type != TG_TYPE_FP32 ||
        (count != 1 && (count != length || stride != 1)) ||
        tensor->device_kind != product->a.device_kind ||
        tensor->device_index != product->a.device_index)
        tgpy_torch_fail(product,
                        "scale_%c has %lld values; pass 1 or %lld contiguous ones in "
                        "float32, on the operands' device",
                        'a' + dim, (long long)count, (long long)length);
    *scale = count == 1 ? TG_SCALE_TENSOR : TG_SCALE_VECTOR;
    *data = tensor->data;
}

void tgpy_torch_set_scales(tgpy_torch_product *product)
{
    tg_problem *problem = &product->problem;
    if (product->fault[0])
        return;
    set_scale(product, &product->a_scale, 0, &problem->a_scale, &problem->a_scale_data);
    set_scale(product, &product->b_scale, 1, &problem->b_scale, &problem->b_scale_data);
}
