/*
 * Kernels in place of PyTorch's own mm, bmm and their out= forms, and operators by which Python
 * replaces addmm and baddbmm: PyTorch's C interface does not pass the numbers beta and alpha of
 * their schemas. Types that were not chosen, and products that the library refuses, go to PyTorch's
 * own kernel.
 */
#include "torch_shims.h"

tgpy_torch_choice tgpy_torch_chosen;

typedef int32_t own_mm(void *out, void *a, void *b);
typedef int32_t own_addmm(void *out, void *c, void *a, void *b, double beta, double alpha);

typedef struct own_kernels {
    own_mm *mm, *bmm;
    own_addmm *addmm, *baddbmm;
} own_kernels;

static own_kernels find_own(const tgpy_torch_product *product)
{
    if (product->a.device_kind == tgpy_torch.aoti_torch_device_type_cuda())
        return (own_kernels){tgpy_torch.aoti_torch_cuda_mm_out, tgpy_torch.aoti_torch_cuda_bmm_out,
                             tgpy_torch.aoti_torch_cuda_addmm_out,
                             tgpy_torch.aoti_torch_cuda_baddbmm_out};
    return (own_kernels){tgpy_torch.aoti_torch_cpu_mm_out, tgpy_torch.aoti_torch_cpu_bmm_out,
                         tgpy_torch.aoti_torch_cpu_addmm_out,
                         tgpy_torch.aoti_torch_cpu_baddbmm_out};
}

static int is_chosen(const tgpy_torch_product *product)
{
    return product->a.is_multiplied && tgpy_torch_chosen.takes[product->a.type];
}

/* Begins a product. Faults in its shapes are reported in PyTorch's words. */
static void begin(tgpy_torch_product *product, tgpy_torch_value a, tgpy_torch_value b,
                  int dim_count)
{
    tgpy_torch_begin(product, a, b);
    if (!product->a.is_multiplied || !product->b.is_multiplied) {
        product->fault[0] = 0; /* PyTorch multiplies other types too */
        if (product->a.dtype != product->b.dtype)
            tgpy_torch_fail(product, "expected m1 and m2 to have the same dtype");
    }
    tgpy_torch_set_matrices(product, dim_count);
    product->problem.is_batch_invariant = tgpy_torch_chosen.is_batch_invariant;
}

/* Makes the result and computes it if tilegemm takes products of this type. Returns 1 if it did.
 * Otherwise PyTorch's kernel computes it, unless a fault is left that no kernel could help. */
static int multiply_here(tgpy_torch_product *product, int dim_count, double beta, double alpha)
{
    const int64_t sizes[] = {product->problem.batch_count, product->problem.a.row_count,
                             product->problem.b.col_count};
    tgpy_torch_make_out(product, dim_count, sizes + 3 - dim_count, product->a.dtype);
    if (product->fault[0] || !is_chosen(product))
        return 0;
    tgpy_torch_set_out(product, dim_count);
    tgpy_torch_set_addend(product, beta, alpha);
    tgpy_torch_compute(product);
    if (product->fault[0] == 0)
        return 1;
    product->fault[0] = 0; /* PyTorch's kernel decides */
    return 0;
}

static void finish(tgpy_torch_product *product, tgpy_torch_value *stack, int32_t code)
{
    if (code)
        tgpy_torch_fail(product, "PyTorch's own kernel failed; it has printed why");
    tgpy_torch_finish(product, stack);
}

static void replace_mm(tgpy_torch_value *stack, uint64_t argument_count, int dim_count)
{
    tgpy_torch_product product;
    int32_t code = 0;
    begin(&product, stack[0], stack[1], dim_count);
    if (argument_count == 3) {
        product.out = tgpy_torch_read(stack[2]);
        product.is_result_given = 1;
    }
    if (!multiply_here(&product, dim_count, 0, 1) && !product.fault[0]) {
        const own_kernels own = find_own(&product);
        own_mm *multiply = dim_count == 2 ? own.mm : own.bmm;
        code = multiply(product.out.handle, product.a.handle, product.b.handle);
    }
    finish(&product, stack, code);
}

static void run_mm_here(tgpy_torch_value *stack, uint64_t argument_count, uint64_t result_count)
{
    (void)result_count;
    replace_mm(stack, argument_count, 2);
}

static void run_bmm_here(tgpy_torch_value *stack, uint64_t argument_count, uint64_t result_count)
{
    (void)result_count;
    replace_mm(stack, argument_count, 3);
}

/* Computes c, a, b, beta, alpha, and writes to a sixth argument if there is one. */
static void replace_addmm(tgpy_torch_value *stack, uint64_t argument_count, int dim_count)
{
    tgpy_torch_product product;
    int32_t code = 0;
    const double beta = tgpy_torch_read_double(stack[3]);
    const double alpha = tgpy_torch_read_double(stack[4]);
    begin(&product, stack[1], stack[2], dim_count);
    product.c = tgpy_torch_read(stack[0]);
    if (argument_count == 6) {
        product.out = tgpy_torch_read(stack[5]);
        product.is_result_given = 1;
    }
    if (!multiply_here(&product, dim_count, beta, alpha) && !product.fault[0]) {
        const own_kernels own = find_own(&product);
        own_addmm *multiply = dim_count == 2 ? own.addmm : own.baddbmm;
        code = multiply(product.out.handle, product.c.handle, product.a.handle, product.b.handle,
                        beta, alpha);
    }
    finish(&product, stack, code);
}

static void run_addmm_here(tgpy_torch_value *stack, uint64_t argument_count, uint64_t result_count)
{
    (void)result_count;
    replace_addmm(stack, argument_count, 2);
}

static void run_baddbmm_here(tgpy_torch_value *stack, uint64_t argument_count,
                             uint64_t result_count)
{
    (void)result_count;
    replace_addmm(stack, argument_count, 3);
}

const tgpy_torch_row *tgpy_torch_list_addmm(int *count)
{
#define ADDMM_ARGUMENTS "(Tensor self, Tensor mat1, Tensor mat2, float beta, float alpha"
    static const tgpy_torch_row rows[] = {
        {"_addmm", ADDMM_ARGUMENTS ") -> Tensor", run_addmm_here},
        {"_addmm_out", ADDMM_ARGUMENTS ", Tensor(a!) out) -> Tensor(a!)", run_addmm_here},
        {"_baddbmm", ADDMM_ARGUMENTS ") -> Tensor", run_baddbmm_here},
        {"_baddbmm_out", ADDMM_ARGUMENTS ", Tensor(a!) out) -> Tensor(a!)", run_baddbmm_here},
    };
    *count = sizeof rows / sizeof *rows;
    return rows;
}

static void
    *libraries[2]; /* the registrations for the CPU and for CUDA; NULL where there is none */

int tgpy_torch_override(void)
{
    static const tgpy_torch_row rows[] = {
        {"mm", NULL, run_mm_here},
        {"mm.out", NULL, run_mm_here},
        {"bmm", NULL, run_bmm_here},
        {"bmm.out", NULL, run_bmm_here},
    };
    enum { ROW_COUNT = sizeof rows / sizeof *rows };
    if (tgpy_torch_implement("aten", "CPU", rows, ROW_COUNT, &libraries[0]) ||
        (tgpy_torch.has_cuda &&
         tgpy_torch_implement("aten", "CUDA", rows, ROW_COUNT, &libraries[1]))) {
        tgpy_torch_restore();
        return -1;
    }
    return 0;
}

int tgpy_torch_restore(void)
{
    int32_t code = 0;
    for (int i = 0; i < 2; i++) {
        if (libraries[i])
            code |= tgpy_torch.aoti_torch_delete_library_object(libraries[i]);
        libraries[i] = NULL;
    }
    return code ? -1 : 0;
}
