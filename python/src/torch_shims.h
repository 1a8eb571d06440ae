/*
 * libtorch's C interface, which is opened where PyTorch is loaded, and what the operators of
 * PyTorch share. None of these functions needs the GIL, except where it says so.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TGPY_TORCH_SHIMS_H
#define TGPY_TORCH_SHIMS_H

#include <stdint.h>
#include <tilegemm.h>

/* A value on the stack of a kernel: an integer, the bits of a double, or a pointer. An optional
 * value is 0 or a pointer to a value in memory of malloc. The kernel owns its arguments and leaves
 * its result in stack[0]. */
typedef uint64_t tgpy_torch_value;
typedef void tgpy_torch_kernel(tgpy_torch_value *stack, uint64_t argument_count,
                               uint64_t result_count);

typedef struct tgpy_torch_shims {
#define TGPY_SHIM(result, name, parameters) result(*name) parameters;
#define TGPY_SHIM_CUDA(result, name, parameters) result(*name) parameters;
#include "torch_shims.def"
#undef TGPY_SHIM
#undef TGPY_SHIM_CUDA
    int has_cuda; /* libtorch_cuda is loaded, and has all of its functions */
    /* c10::TensorImpl::requires_grad, which no C function tells; NULL where libc10 lacks it */
    _Bool (*requires_grad)(const void *tensor);
} tgpy_torch_shims;

extern tgpy_torch_shims tgpy_torch;

/* Finds the functions in the libraries that are loaded. Returns NULL, or the name of what is
 * missing. */
const char *tgpy_torch_open(void);

/* A tensor as a problem needs it. */
typedef struct tgpy_torch_tensor {
    void *handle; /* NULL: an optional tensor that was not given */
    void *data;
    int is_multiplied; /* the library has its type, `type` */
    tg_type type;
    int32_t dtype, device_kind, device_index;
    int64_t dim_count;
    const int64_t *sizes, *strides;
} tgpy_torch_tensor;

enum { TGPY_FAULT_BYTES = 512 };

/* A product of tensors. `fault` is "" or says why it cannot be computed. */
typedef struct tgpy_torch_product {
    tgpy_torch_tensor a, b, c, bias, a_scale, b_scale, out;
    void *bias_place; /* holds the bias's handle, to be freed by free(); NULL without a bias */
    int is_result_given;
    tg_problem problem;
    char fault[TGPY_FAULT_BYTES];
} tgpy_torch_product;

/* Starts a product of a and b. Takes over neither handle. */
void tgpy_torch_begin(tgpy_torch_product *product, tgpy_torch_value a, tgpy_torch_value b);

tgpy_torch_tensor tgpy_torch_read(tgpy_torch_value value);

/* Reads the bias, an optional tensor. */
void tgpy_torch_read_bias(tgpy_torch_product *product, tgpy_torch_value value);

/* Returns 1 if autograd is to record the product. */
int tgpy_torch_needs_gradient(const tgpy_torch_product *product);

/* Sets the fault, unless there is one. */
void tgpy_torch_fail(tgpy_torch_product *product, const char *format, ...);

/* Sets D of the problem, which `out` holds as rows and columns or as a batch of them, and C. */
void tgpy_torch_set_out(tgpy_torch_product *product, int dim_count);

/* Describe the matrices of a product of two matrices (dim_count 2) or batches of them (3), and of a
 * linear layer; c and the bias follow. */
void tgpy_torch_set_matrices(tgpy_torch_product *product, int dim_count);
void tgpy_torch_set_linear(tgpy_torch_product *product);
void tgpy_torch_set_addend(tgpy_torch_product *product, double beta, double alpha);
void tgpy_torch_set_bias(tgpy_torch_product *product);
void tgpy_torch_set_scales(tgpy_torch_product *product);

/* Makes `out`, contiguous, where it is not given, from PyTorch's allocator. `dtype` is the result's
 * type. */
void tgpy_torch_make_out(tgpy_torch_product *product, int64_t dim_count, const int64_t *sizes,
                         int32_t dtype);

/* Computes the product, on a GPU in PyTorch's current stream with a workspace of its allocator. The
 * fault says why it did not. */
void tgpy_torch_compute(tgpy_torch_product *product);

/* Ends a kernel: deletes its arguments, leaves its result on the stack, or throws the fault as
 * PyTorch's exception. */
void tgpy_torch_finish(tgpy_torch_product *product, tgpy_torch_value *stack);

/* Returns the number whose bits a value is. */
double tgpy_torch_read_double(tgpy_torch_value value);

/* An operator: its name, the rest of its schema and its kernel. */
typedef struct tgpy_torch_row {
    const char *name, *signature;
    tgpy_torch_kernel *kernel;
} tgpy_torch_row;

/* Registers the rows' kernels for the operators of a namespace and a dispatch key. They stay until
 * *library is deleted. Returns 0, or -1 where PyTorch refuses. */
int tgpy_torch_implement(const char *space, const char *key, const tgpy_torch_row *rows, int count,
                         void **library);

/* Defines the operators of the namespace tilegemm. Returns 0, or -1 where PyTorch refuses. */
int tgpy_torch_define(void);

/* Lists the operators by which Python replaces addmm and baddbmm. */
const tgpy_torch_row *tgpy_torch_list_addmm(int *count);

/* The products that the kernels in place of PyTorch's own take. */
typedef struct tgpy_torch_choice {
    int takes[6]; /* by tg_type */
    int is_batch_invariant;
} tgpy_torch_choice;
extern tgpy_torch_choice tgpy_torch_chosen;

/* Put our kernels in place of aten's mm and bmm and back. Return 0, or -1 where PyTorch refuses. */
int tgpy_torch_override(void);
int tgpy_torch_restore(void);

#endif
