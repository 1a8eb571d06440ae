/*
 * A product of PyTorch's tensors, from their handles to the library's call.
 */
#include "extension.h"
#include "torch_shims.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tgpy_torch_fail(tgpy_torch_product *product, const char *format, ...)
{
    if (product->fault[0])
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(product->fault, sizeof product->fault, format, values);
    va_end(values);
}

void tgpy_torch_finish(tgpy_torch_product *product, tgpy_torch_value *stack)
{
    void *const handles[] = {product->a.handle,
                             product->b.handle,
                             product->c.handle,
                             product->bias.handle,
                             product->a_scale.handle,
                             product->b_scale.handle,
                             product->fault[0] ? product->out.handle : NULL};
    for (int i = 0; i < 7; i++) {
        if (handles[i])
            tgpy_torch.aoti_torch_delete_tensor_object(handles[i]);
    }
    free(product->bias_place);
    if (product->fault[0])
        tgpy_torch.aoti_torch_check(0, "tilegemm", "tilegemm", __LINE__, product->fault);
    stack[0] = (tgpy_torch_value)(uintptr_t)product->out.handle;
}

double tgpy_torch_read_double(tgpy_torch_value value)
{
    double number;
    memcpy(&number, &value, sizeof number);
    return number;
}

/* Finds the library's type of a tensor. PyTorch numbers its types once and for all. */
static int find_type(int32_t dtype, tg_type *type)
{
    static int32_t numbers[6] = {-1, -1, -1, -1, -1, -1};
    if (numbers[TG_TYPE_FP8_E5M2] < 0) {
        numbers[TG_TYPE_FP32] = tgpy_torch.aoti_torch_dtype_float32();
        numbers[TG_TYPE_FP64] = tgpy_torch.aoti_torch_dtype_float64();
        numbers[TG_TYPE_BF16] = tgpy_torch.aoti_torch_dtype_bfloat16();
        numbers[TG_TYPE_FP16] = tgpy_torch.aoti_torch_dtype_float16();
        numbers[TG_TYPE_FP8_E4M3] = tgpy_torch.aoti_torch_dtype_float8_e4m3fn();
        numbers[TG_TYPE_FP8_E5M2] = tgpy_torch.aoti_torch_dtype_float8_e5m2();
    }
    for (int i = 0; i < 6; i++) {
        if (numbers[i] == dtype) {
            *type = (tg_type)i;
            return 1;
        }
    }
    return 0;
}

tgpy_torch_tensor tgpy_torch_read(tgpy_torch_value value)
{
    tgpy_torch_tensor tensor = {.handle = (void *)(uintptr_t)value};
    int64_t *sizes = NULL, *strides = NULL;
    tgpy_torch.aoti_torch_get_dim(tensor.handle, &tensor.dim_count);
    tgpy_torch.aoti_torch_get_sizes(tensor.handle, &sizes);
    tgpy_torch.aoti_torch_get_strides(tensor.handle, &strides);
    tgpy_torch.aoti_torch_get_dtype(tensor.handle, &tensor.dtype);
    tgpy_torch.aoti_torch_get_device_type(tensor.handle, &tensor.device_kind);
    tgpy_torch.aoti_torch_get_device_index(tensor.handle, &tensor.device_index);
    tgpy_torch.aoti_torch_get_data_ptr(tensor.handle, &tensor.data);
    tensor.sizes = sizes;
    tensor.strides = strides;
    tensor.is_multiplied = find_type(tensor.dtype, &tensor.type);
    return tensor;
}

void tgpy_torch_read_bias(tgpy_torch_product *product, tgpy_torch_value value)
{
    product->bias_place = (void *)(uintptr_t)value;
    if (product->bias_place)
        product->bias = tgpy_torch_read(*(tgpy_torch_value *)product->bias_place);
}

int tgpy_torch_needs_gradient(const tgpy_torch_product *product)
{
    if (!tgpy_torch.aoti_torch_grad_mode_is_enabled())
        return 0;
    const void *const handles[] = {product->a.handle, product->b.handle, product->c.handle,
                                   product->bias.handle};
    for (int i = 0; i < 4; i++) {
        /* A handle points at a pointer to the tensor. Unless it can be asked, Python decides. */
        if (handles[i] && (!tgpy_torch.requires_grad ||
                           tgpy_torch.requires_grad(*(const void *const *)handles[i])))
            return 1;
    }
    return 0;
}

void tgpy_torch_begin(tgpy_torch_product *product, tgpy_torch_value a, tgpy_torch_value b)
{
    product->fault[0] = 0;
    product->is_result_given = 0;
    product->bias_place = NULL;
    product->c = product->bias = product->a_scale = product->b_scale = product->out =
        (tgpy_torch_tensor){0};
    product->a = tgpy_torch_read(a);
    product->b = tgpy_torch_read(b);
    product->problem =
        (tg_problem){.struct_bytes = sizeof product->problem, .batch_count = 1, .alpha = 1};
    const tgpy_torch_tensor *x = &product->a, *y = &product->b;
    if (!x->is_multiplied || !y->is_multiplied)
        tgpy_torch_fail(product, "tilegemm multiplies float32, float64, float16, bfloat16, "
                                 "float8_e4m3fn and float8_e5m2; convert the operands");
    else if (x->dtype != y->dtype &&
             (tg_get_type_bytes(x->type) != 1 || tg_get_type_bytes(y->type) != 1))
        tgpy_torch_fail(product, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                        tgpy_type_find(x->type)->name, tgpy_type_find(y->type)->name);
    if (x->device_kind != y->device_kind || x->device_index != y->device_index)
        tgpy_torch_fail(product, "Expected all tensors to be on the same device");
}

static tg_matrix make_matrix(const tgpy_torch_tensor *tensor, int dim_count)
{
    const int row = dim_count - 2;
    return (tg_matrix){.data = tensor->data,
                       .type = tensor->type,
                       .row_count = tensor->sizes[row],
                       .col_count = tensor->sizes[row + 1],
                       .row_stride = tensor->strides[row],
                       .col_stride = tensor->strides[row + 1],
                       .batch_stride = dim_count == 3 ? tensor->strides[0] : 0};
}

void tgpy_torch_set_matrices(tgpy_torch_product *product, int dim_count)
{
    const tgpy_torch_tensor *a = &product->a, *b = &product->b;
    if (a->dim_count != dim_count || b->dim_count != dim_count)
        tgpy_torch_fail(product, dim_count == 2 ? "self must be a matrix"
                                                : "batch1 and batch2 must be 3D tensors");
    if (product->fault[0])
        return;
    const int row = dim_count - 2;
    if (a->sizes[row + 1] != b->sizes[row] || (dim_count == 3 && a->sizes[0] != b->sizes[0]))
        tgpy_torch_fail(product,
                        dim_count == 2 ? "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and "
                                         "%lldx%lld)"
                                       : "Expected size for first two dimensions of batch2 tensor "
                                         "to fit batch1: %lldx%lld and %lldx%lld",
                        (long long)a->sizes[row], (long long)a->sizes[row + 1],
                        (long long)b->sizes[row], (long long)b->sizes[row + 1]);
    product->problem.a = make_matrix(a, dim_count);
    product->problem.b = make_matrix(b, dim_count);
    if (dim_count == 3)
        product->problem.batch_count = a->sizes[0];
}

void tgpy_torch_set_linear(tgpy_torch_product *product)
{
    const tgpy_torch_tensor *input = &product->a, *weight = &product->b;
    const int64_t last = input->dim_count - 1;
    if (weight->dim_count != 2 || last < 0)
        tgpy_torch_fail(product, "linear takes an input of one dimension or more and a weight of "
                                 "two");
    if (product->fault[0])
        return;
    if (input->sizes[last] != weight->sizes[1])
        tgpy_torch_fail(product, "the input has %lld columns and the weight %lld",
                        (long long)input->sizes[last], (long long)weight->sizes[1]);
    /* The dimensions before the last become rows, which have one stride. */
    int64_t row_count = 1, row_stride = 0;
    for (int64_t dim = last - 1; dim >= 0; dim--) {
        if (input->sizes[dim] == 1)
            continue;
        if (row_count != 1 && input->strides[dim] != row_count * row_stride) {
            tgpy_torch_fail(product, "no one stride leads through the rows of the input; pass "
                                     "input.contiguous()");
            break;
        }
        row_stride = row_count == 1 ? input->strides[dim] : row_stride;
        row_count *= input->sizes[dim];
    }
    product->problem.a = (tg_matrix){.data = input->data,
                                     .type = input->type,
                                     .row_count = row_count,
                                     .col_count = input->sizes[last],
                                     .row_stride = row_stride,
                                     .col_stride = input->strides[last]};
    product->problem.b = (tg_matrix){.data = weight->data,
                                     .type = weight->type,
                                     .row_count = weight->sizes[1],
                                     .col_count = weight->sizes[0],
                                     .row_stride = weight->strides[1],
                                     .col_stride = weight->strides[0]};
}

void tgpy_torch_make_out(tgpy_torch_product *product, int64_t dim_count, const int64_t *sizes,
                         int32_t dtype)
{
    if (product->fault[0] || product->is_result_given)
        return;
    int64_t strides[64];
    int64_t reach = 1;
    for (int64_t dim = dim_count - 1; dim >= 0; dim--) {
        strides[dim] = reach;
        reach *= sizes[dim] > 1 ? sizes[dim] : 1;
    }
    void *handle = NULL;
    const tgpy_torch_tensor *a = &product->a;
    if (tgpy_torch.aoti_torch_empty_strided(dim_count, sizes, strides, dtype, a->device_kind,
                                            a->device_index, &handle)) {
        tgpy_torch_fail(product, "PyTorch could not allocate the result");
        return;
    }
    tgpy_torch_tensor *out = &product->out;
    *out = (tgpy_torch_tensor){.handle = handle, .dtype = dtype, .dim_count = dim_count};
    out->is_multiplied = find_type(dtype, &out->type);
    tgpy_torch.aoti_torch_get_data_ptr(handle, &out->data);
}

/* Calls the library with a workspace of PyTorch's allocator, whose memory a graph may capture. */
static tg_status run_on_gpu(const tgpy_torch_product *product, tg_context *context, void *stream)
{
    tg_plan *plan = NULL;
    tg_plan_info info;
    tg_buffers buffers;
    tg_status status = tg_create_plan(context, &product->problem, NULL, &plan);
    if (status != TG_STATUS_OK)
        return status;
    tg_get_plan_info(plan, &info, sizeof info);
    tg_init_buffers(&buffers, sizeof buffers, &product->problem);
    buffers.stream = stream;
    void *workspace = NULL;
    if (info.workspace_bytes > 0 && tgpy_torch.aoti_torch_cuda_caching_allocator_raw_alloc(
                                        (uint64_t)info.workspace_bytes, &workspace) == 0) {
        buffers.workspace = workspace;
        buffers.workspace_bytes = info.workspace_bytes;
    }
    status = tg_execute_plan(plan, &buffers);
    if (workspace)
        tgpy_torch.aoti_torch_cuda_caching_allocator_raw_delete(workspace);
    tg_destroy_plan(plan);
    return status;
}

void tgpy_torch_compute(tgpy_torch_product *product)
{
    if (product->fault[0])
        return;
    const int is_on_gpu = product->a.device_kind == tgpy_torch.aoti_torch_device_type_cuda();
    const int device_index = is_on_gpu ? product->a.device_index : 0;
    tg_context *context = NULL;
    tg_status status = tgpy_context_open(is_on_gpu, device_index, &context);
    if (status == TG_STATUS_OK && is_on_gpu) {
        void *stream = NULL;
        tgpy_torch.aoti_torch_get_current_cuda_stream(device_index, &stream);
        status = run_on_gpu(product, context, stream);
    } else if (status == TG_STATUS_OK) {
        status = tg_multiply(context, &product->problem);
    }
    if (status != TG_STATUS_OK)
        tgpy_torch_fail(product, "%s", tg_get_error_detail());
}
