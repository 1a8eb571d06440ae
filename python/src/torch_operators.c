/*
 * The operators of the namespace tilegemm in PyTorch, for the CPU and for CUDA.
 *
 * An operator X with a gradient is three: X computes at once, and passes a call that autograd must
 * record on to _X_recorded, which is Python's and calls _X_unrecorded. Python also passes X on to
 * _X_recorded where a mode, a subclass of Tensor or a transform of functions stands in between, so
 * that graphs hold _X_unrecorded.
 */
#include "torch_shims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Computes the product, or passes the call on to the operator `recorded` where autograd records
 * it, and leaves the result on the stack. */
static void complete(tgpy_torch_product *product, tgpy_torch_value *stack, const char *recorded)
{
    if (product->fault[0] || !tgpy_torch_needs_gradient(product)) {
        tgpy_torch_compute(product);
        tgpy_torch_finish(product, stack);
        return;
    }
    tgpy_torch.aoti_torch_delete_tensor_object(product->out.handle);
    const int32_t code = tgpy_torch.aoti_torch_call_dispatcher(recorded, "", stack);
    tgpy_torch.aoti_torch_check(!code, "tilegemm", "tilegemm", __LINE__,
                                "the record of the gradient failed; PyTorch has printed why");
}

/* Makes the result of a product of matrices or of their batches, in a's type. */
static void make_matrices_out(tgpy_torch_product *product, int dim_count)
{
    const int64_t sizes[] = {product->problem.batch_count, product->problem.a.row_count,
                             product->problem.b.col_count};
    tgpy_torch_make_out(product, dim_count, sizes + 3 - dim_count, product->a.dtype);
    tgpy_torch_set_out(product, dim_count);
}

static void multiply(tgpy_torch_value *stack, int dim_count, const char *recorded)
{
    tgpy_torch_product product;
    tgpy_torch_begin(&product, stack[0], stack[1]);
    tgpy_torch_set_matrices(&product, dim_count);
    make_matrices_out(&product, dim_count);
    complete(&product, stack, recorded);
}

static void run_mm(tgpy_torch_value *stack, uint64_t argument_count, uint64_t result_count)
{
    (void)argument_count;
    (void)result_count;
    multiply(stack, 2, "tilegemm::_mm_recorded");
}

static void run_bmm(tgpy_torch_value *stack, uint64_t argument_count, uint64_t result_count)
{
    (void)argument_count;
    (void)result_count;
    multiply(stack, 3, "tilegemm::_bmm_recorded");
}

static void run_addmm(tgpy_torch_value *stack, uint64_t argument_count, uint64_t result_count)
{
    (void)argument_count;
    (void)result_count;
    tgpy_torch_product product;
    tgpy_torch_begin(&product, stack[1], stack[2]);
    product.c = tgpy_torch_read(stack[0]);
    tgpy_torch_set_matrices(&product, 2);
    make_matrices_out(&product, 2);
    tgpy_torch_set_addend(&product, tgpy_torch_read_double(stack[3]),
                          tgpy_torch_read_double(stack[4]));
    complete(&product, stack, "tilegemm::_addmm_recorded");
}

/* Computes linear(input, weight, bias, activation), where the activation is a tg_activation. */
static void run_linear(tgpy_torch_value *stack, uint64_t argument_count, uint64_t result_count)
{
    (void)argument_count;
    (void)result_count;
    tgpy_torch_product product;
    tgpy_torch_begin(&product, stack[0], stack[1]);
    tgpy_torch_read_bias(&product, stack[2]);
    const int64_t activation = (int64_t)stack[3];
    if (activation < 0 || !tg_get_activation_name((tg_activation)activation))
        tgpy_torch_fail(&product, "activation = %lld is none", (long long)activation);
    product.problem.activation = (tg_activation)activation;
    tgpy_torch_set_linear(&product);
    const int64_t dim_count = product.a.dim_count;
    int64_t sizes[64];
    if (dim_count > 64)
        tgpy_torch_fail(&product, "the input has more than 64 dimensions");
    if (!product.fault[0]) {
        memcpy(sizes, product.a.sizes, (size_t)dim_count * sizeof *sizes);
        sizes[dim_count - 1] = product.problem.b.col_count;
    }
    tgpy_torch_make_out(&product, dim_count, sizes, product.a.dtype);
    tgpy_torch_set_out(&product, 2);
    tgpy_torch_set_bias(&product);
    if (activation && tgpy_torch_needs_gradient(&product))
        tgpy_torch_fail(&product, "linear with an activation has no gradient; call the activation "
                                  "of torch.nn.functional instead");
    complete(&product, stack, "tilegemm::_linear_recorded");
}

/* Computes scaled_mm(a, b, scale_a, scale_b, bias, out_dtype) of FP8 operands. */
static void run_scaled_mm(tgpy_torch_value *stack, uint64_t argument_count, uint64_t result_count)
{
    (void)argument_count;
    (void)result_count;
    tgpy_torch_product product;
    tgpy_torch_begin(&product, stack[0], stack[1]);
    product.a_scale = tgpy_torch_read(stack[2]);
    product.b_scale = tgpy_torch_read(stack[3]);
    tgpy_torch_read_bias(&product, stack[4]);
    int32_t dtype = tgpy_torch.aoti_torch_dtype_bfloat16();
    tgpy_torch_value *out_dtype = (tgpy_torch_value *)(uintptr_t)stack[5];
    if (out_dtype)
        dtype = (int32_t)*out_dtype;
    free(out_dtype);
    tgpy_torch_set_matrices(&product, 2);
    const int64_t sizes[] = {product.problem.a.row_count, product.problem.b.col_count};
    tgpy_torch_make_out(&product, 2, sizes, dtype);
    if (product.out.handle && !product.out.is_multiplied)
        tgpy_torch_fail(&product, "out_dtype is none that the library stores");
    tgpy_torch_set_out(&product, 2);
    tgpy_torch_set_scales(&product);
    tgpy_torch_set_bias(&product);
    tgpy_torch_compute(&product);
    tgpy_torch_finish(&product, stack);
}

static const tgpy_torch_row operators[] = {
    {"mm", "(Tensor self, Tensor mat2) -> Tensor", run_mm},
    {"bmm", "(Tensor self, Tensor mat2) -> Tensor", run_bmm},
    {"addmm", "(Tensor self, Tensor mat1, Tensor mat2, *, float beta=1., float alpha=1.) -> Tensor",
     run_addmm},
    {"linear", "(Tensor input, Tensor weight, Tensor? bias=None, *, int activation=0) -> Tensor",
     run_linear},
    {"scaled_mm",
     "(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, *, "
     "ScalarType? out_dtype=None) -> Tensor",
     run_scaled_mm},
};
enum { operator_count = sizeof operators / sizeof *operators, with_gradient_count = 4 };

int tgpy_torch_implement(const char *space, const char *key, const tgpy_torch_row *rows, int count,
                         void **library)
{
    if (tgpy_torch.aoti_torch_library_init_impl(space, key, "tilegemm", __LINE__, library))
        return -1;
    for (int i = 0; i < count; i++) {
        if (tgpy_torch.aoti_torch_library_impl(*library, rows[i].name, rows[i].kernel))
            return -1;
    }
    return 0;
}

/* Defines an operator for each row, with the row's signature and with its name between the prefix
 * and the suffix. If is_implemented, the operator has the row's kernel too. */
static int define(const tgpy_torch_row *rows, int count, const char *prefix, const char *suffix,
                  int is_implemented)
{
    tgpy_torch_row named[8];
    char names[8][32], schema[256];
    void *library = NULL; /* it lives as long as the process */
    if (tgpy_torch.aoti_torch_library_init_fragment("tilegemm", "tilegemm", __LINE__, &library))
        return -1;
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s%s%s", prefix, rows[i].name, suffix);
        snprintf(schema, sizeof schema, "%s%s", names[i], rows[i].signature);
        if (tgpy_torch.aoti_torch_library_def(library, schema))
            return -1;
        named[i] = (tgpy_torch_row){names[i], NULL, rows[i].kernel};
    }
    if (!is_implemented)
        return 0;
    return tgpy_torch_implement("tilegemm", "CPU", named, count, &library) ||
                   (tgpy_torch.has_cuda &&
                    tgpy_torch_implement("tilegemm", "CUDA", named, count, &library))
               ? -1
               : 0;
}

int tgpy_torch_define(void)
{
    int row_count = 0;
    const tgpy_torch_row *rows = tgpy_torch_list_addmm(&row_count);
    return define(operators, operator_count, "", "", 1) ||
                   define(operators, with_gradient_count, "_", "_unrecorded", 1) ||
                   define(operators, with_gradient_count, "_", "_recorded", 0) ||
                   define(rows, row_count, "", "", 1)
               ? -1
               : 0;
}
