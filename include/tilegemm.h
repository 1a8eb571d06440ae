/*
 * tilegemm: matrix multiplication for any size, any layout, with a stated error bound.
 *
 *     D = activation(alpha * op(A) * op(B) + beta * C + bias)
 *
 * op(A) is m x k, op(B) is k x n, C and D are m x n. FP8 operands may have scales, see tg_scale.
 * Every size and offset of a matrix is an int64_t; strides count elements, never bytes. The
 * smallest program:
 *
 *     float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3 * 2] = {1, 0, 0, 1, 1, 1}, d[2 * 2];
 *     tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 2, 3),
 *                                          tg_make_matrix(TG_TYPE_FP32, b, 3, 2),
 *                                          tg_make_matrix(TG_TYPE_FP32, d, 2, 2));
 *     if (tg_multiply(NULL, &problem) != TG_STATUS_OK) puts(tg_get_error_detail());
 *
 * The sections of this page are version, structs and versions, status, types, context, memory,
 * problem, plan, execute, one-shot, problems as text. A title says since which version it exists.
 *
 * The bits of D do not depend on the number of threads, except the sign and the payload of a NaN.
 *
 * The library never prints (unless TILEGEMM_LOG asks for lines on descriptor 2 or in a file) and
 * never exits. It keeps no pointer of yours after a call returns. Any number of threads may call it
 * at once, with the same context and the same plan too; a context or a plan is destroyed after all
 * other calls that use it.
 *
 * The library's CPU threads belong to the process, and all contexts share them. They are made when
 * a product first needs them, block all signals but their own faults, and sleep 0.2 ms after the
 * last call. They round, flush subnormals and trap as the calling thread does. If a thread cannot
 * be made, a call runs on fewer threads. While another call uses the threads, a call runs on its
 * calling thread alone. Every call fits into a stack of 16 KiB. A child of fork() may use its
 * parent's contexts and plans on the CPU, but not on a GPU. The shared library stays loaded after
 * dlclose. A plugin that holds the static library ends its threads when it is unloaded, but does
 * not free the default context.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TILEGEMM_H
#define TILEGEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TG_BUILD_SHARED) && defined(__GNUC__)
#define TG_API __attribute__((visibility("default")))
#else
#define TG_API
#endif

/* ----------------------------------------------------------------------- version, since 0.1 -- */

#define TG_VERSION_MAJOR 0
#define TG_VERSION_MINOR 1
#define TG_VERSION_PATCH 0

/* Returns the version of the library that is running, "0.1.0", in static storage. */
TG_API const char *tg_get_version(void);

/* ---------------------------------------------------------- structs and versions, since 0.1 -- */

/* A program and the library that it loads may be of different versions. The first member of every
 * struct on this page but tg_matrix is therefore struct_bytes: the size that the program's compiler
 * knew. A later version adds members at the end alone, and their default is zero.
 *
 * The library reads tg_problem, tg_buffers, tg_context_options and tg_plan_options. A function
 * tg_init_... sets all members to their defaults and struct_bytes to the size that it is given. In
 * C an initializer does the same for all but tg_problem, whose defaults are not all zero:
 *     tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = a, .b = b, .d = d};
 * The members that a smaller struct, of an older version, lacks have their defaults. A larger
 * struct, of a newer version, is accepted if all bytes that this version does not know are zero.
 * Any other size, such as 0, is refused with INVALID_ARGUMENT.
 *
 * The library fills a struct in the tg_init_... functions, tg_parse_problem, tg_get_device_info and
 * tg_get_plan_info. Each of them takes the size as an argument, writes that many bytes and no more,
 * and sets the bytes that this version does not know to zero.
 *
 * tg_matrix is a member of other structs and never changes. An enum may gain values; those it has
 * keep their numbers. */

/* ------------------------------------------------------------------------ status, since 0.1 -- */

/* A status is the result of a call. tg_get_status_name and tg_get_status_text return its name and a
 * one-line text. */
typedef enum tg_status {
    TG_STATUS_OK = 0,
    TG_STATUS_INVALID_ARGUMENT = 1,    /* an argument is out of its range; the detail names it */
    TG_STATUS_SIZE_OVERFLOW = 2,       /* a size or an extent is above its limit, see tg_problem */
    TG_STATUS_OVERLAP = 3,             /* D shares memory with A, B, C, bias, a scale or itself */
    TG_STATUS_UNSUPPORTED = 4,         /* legal, but no kernel here computes it */
    TG_STATUS_UNKNOWN_NAME = 5,        /* no device, kernel, instruction set, ... of that name */
    TG_STATUS_OUT_OF_MEMORY = 6,       /* the detail says how many bytes were asked for */
    TG_STATUS_WORKSPACE_TOO_SMALL = 7, /* the caller's workspace is below the plan's need */
    TG_STATUS_NO_DEVICE = 8,           /* the device asked for is not on this machine */
    TG_STATUS_DEVICE_FAILURE = 9       /* the GPU or its driver failed; the detail has its error */
} tg_status;

/* Returns "TG_STATUS_OK", ..., or "TG_STATUS_UNKNOWN" for a value outside the enum, in static
 * storage. */
TG_API const char *tg_get_status_name(tg_status status);

/* Returns one sentence about the status, in static storage. */
TG_API const char *tg_get_status_text(tg_status status);

/* Returns the detail of the calling thread's last failed call: argument, value, limit and remedy,
 * for example "lda = 30 is less than k = 48; pass lda >= 48". It is "" before any failure, and a
 * successful call leaves it as it was. The text belongs to the library and holds until this
 * thread's next failed call. */
TG_API const char *tg_get_error_detail(void);

/* ------------------------------------------------------------------------- types, since 0.1 -- */

/* Element types. FP16 is IEEE binary16, BF16 the upper half of a binary32; both are stored as
 * uint16_t. The FP8 types are those of the Open Compute Project, stored as uint8_t. Products of all
 * four are summed in FP32. A number becomes FP8 by rounding to the nearest, ties to even. A number
 * that is too large, Inf included, becomes the largest finite one: 448 (E4M3), 57344 (E5M2). */
typedef enum tg_type {
    TG_TYPE_FP32 = 0,     /* float */
    TG_TYPE_FP64 = 1,     /* double */
    TG_TYPE_BF16 = 2,     /* uint16_t */
    TG_TYPE_FP16 = 3,     /* uint16_t */
    TG_TYPE_FP8_E4M3 = 4, /* uint8_t: no Inf, NaN is 0x7f and 0xff */
    TG_TYPE_FP8_E5M2 = 5  /* uint8_t: the upper half of an FP16 */
} tg_type;

/* A precision is a bound on the error of D. The library never chooses a kernel that may exceed it.
 * Every element d of D before the activation satisfies
 *     |d - exact| <= g (|alpha| (|A||B|) + |beta| |C| + |bias|) + u_D |exact| + underflow
 * where |A||B| is the product of magnitudes, u = 2^-24 (2^-53 for FP64 inputs), s = k + 3 (k + 6
 * where there are scales), g = s u / (1 - s u), and u_D is the unit roundoff of D's type. Here
 * A, B, d and exact include their scales. */
typedef enum tg_precision {
    /* DEFAULT is the bound above, for inputs of any type. BF16 instructions may take subnormal
       inputs and sums as zero: underflow <= k 2^-126 (max|A| + max|B| + 1) |alpha|, and 2^-126 for
       a BF16 D. FP16 instructions may align subnormal inputs as if they were 2^-14: underflow <=
       g k 2^-14 (max|A| + max|B| + 2^-14) |alpha|. FP8 instructions keep 13 fraction bits of a sum
       of 32 products: 2^-5 |alpha| (|A||B|) may come on top */
    TG_PRECISION_DEFAULT = 0,
    TG_PRECISION_IEEE_FP32 = 1, /* the bound above with every product and sum an IEEE binary32
                                   operation, subnormals kept; inputs FP32, BF16, FP16 or FP8 */
    TG_PRECISION_IEEE_FP64 = 2, /* the bound above with every product and sum an IEEE binary64
                                   operation; inputs FP64 */
    TG_PRECISION_TF32 = 3,      /* inputs FP32, which may be rounded to the nearest numbers of 10
                                   fraction bits: 1.001 * 2^-10 |alpha| (|A||B|) may come on top.
                                   Those above 2^128 - 2^116 may become infinite, subnormal ones
                                   zero (underflow as for BF16) */
    /* The following take FP32 inputs, which may be multiplied as sums of 16-bit numbers, by as many
       products as the name says (docs/numerics.md). FP32 operations keep these bounds too, and
       serve them on the CPU. Inf and NaN are those that FP32 gives. BF16X6 may serve DEFAULT where
       it keeps DEFAULT's bound. The bound of FP16X3 alone is not per element of A and B */
    TG_PRECISION_BF16X3 = 4, /* 2^-14 |alpha| (|A||B|) may come on top */
    TG_PRECISION_BF16X6 = 5, /* 2^-18 |alpha| (|A||B|) may come on top */
    TG_PRECISION_BF16X9 = 6, /* the bound of BF16X6, with all nine products formed */
    TG_PRECISION_FP16X3 = 7  /* |alpha| (2^-18 |A||B| + 2^-37 k max|a of the row| max|b of the
                                column|) may come on top */
} tg_precision;

typedef enum tg_operation { TG_OPERATION_NONE = 0, TG_OPERATION_TRANSPOSE = 1 } tg_operation;

/* The bias has one value of D's type for each row of D (m values) or for each column (n values). */
typedef enum tg_bias { TG_BIAS_NONE = 0, TG_BIAS_ROW = 1, TG_BIAS_COL = 2 } tg_bias;

/* GELU and SiLU have a small relative error, even far into the negative tail:
 * |error| <= 1.6 * 2^-14 |y| + 2^-119 for a D of 16 or 8 bits, 20 * 2^-24 |y| + 2^-149 for FP32 and
 * 8 * 2^-53 |y| + 2^-1069 for FP64, where y is the exact value. Rounding to D's type adds its own
 * error. NaN stays NaN, Inf stays Inf, and -Inf becomes zero. */
typedef enum tg_activation {
    TG_ACTIVATION_NONE = 0,
    TG_ACTIVATION_RELU = 1,      /* x < 0 ? 0 : x, where -0 may become 0; NaN stays NaN */
    TG_ACTIVATION_GELU_ERF = 2,  /* x/2 (1 + erf(x / sqrt 2)) */
    TG_ACTIVATION_GELU_TANH = 3, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    TG_ACTIVATION_SILU = 4       /* x / (1 + exp(-x)) */
} tg_activation;

/* Scales of FP8 operands are FP32 factors in memory:
 *     D = scale_d * activation(alpha * (scale_a[i] * scale_b[j]) * sum + beta * C + bias)
 * where sum is element (i, j) of op(A) op(B). An FP8 D is then rounded to its type. */
typedef enum tg_scale {
    TG_SCALE_NONE = 0,
    TG_SCALE_TENSOR = 1, /* one value for A, B or D, all of its batch included */
    TG_SCALE_VECTOR = 2  /* contiguous values, shared by the batch: m values for the rows of op(A),
                            n values for the columns of op(B); not for D */
} tg_scale;

/* Return the name that the command takes, "fp32", "default", "relu", ..., in static storage, or
 * NULL for a value outside the enum. */
TG_API const char *tg_get_type_name(tg_type type);
TG_API const char *tg_get_precision_name(tg_precision precision);
TG_API const char *tg_get_bias_name(tg_bias bias);
TG_API const char *tg_get_activation_name(tg_activation activation);
TG_API const char *tg_get_scale_name(tg_scale scale);

/* Returns the bytes of one element, 4, 8, 2, 2, 1 or 1, or 0 for a value outside the enum. */
TG_API int64_t tg_get_type_bytes(tg_type type);

/* ----------------------------------------------------------------------- context, since 0.1 -- */

/* A context is a device with its limits, its workspaces and its cache of plans. Its settings never
 * change after its creation, so any number of threads may share it. */
typedef struct tg_context tg_context;

/* Zero or NULL in any member but struct_bytes means its default. */
typedef struct tg_context_options {
    size_t struct_bytes;
    const char *device; /* "cpu", "cuda" (the first GPU), "cuda:N", or "sim": the ladder's GPU
                           kernels on the CPU, with every access to memory checked (default:
                           TILEGEMM_DEVICE, else "cpu") */
    const char *isa;    /* highest instruction set to use: "generic", "avx2", "avx512",
                           "avx512_bf16", "amx" on the CPU, "sm75", "sm80", "sm89", "sm90a" on
                           a GPU (default: TILEGEMM_ISA, else all that the device has) */
    int thread_count;   /* CPU threads, 1..1024; no more run than there are processors (default:
                           TILEGEMM_THREADS, else OMP_NUM_THREADS, else the processors that the
                           affinity mask and the CPU quota of the control groups leave) */
    int64_t workspace_limit_bytes; /* limit of the workspace on a GPU for slices of FP32 operands
                           and for splits of batch-invariant products. D is computed in
                           panels that stay within it, unless panels of 256 rows need more
                           (default: a sixteenth of the GPU's memory, at least 256 MiB). It also
                           limits the GPU memory that tg_multiply uses for panels of operands in
                           ordinary memory (default: three quarters of what is free) */
} tg_context_options;

/* Sets *options, which has `struct_bytes` bytes, to the defaults. Errors: INVALID_ARGUMENT. */
TG_API tg_status tg_init_context_options(tg_context_options *options, size_t struct_bytes);

/* Makes a context. `options` may be NULL: the defaults. Its strings are copied. On success the
 * caller owns *context and passes it to tg_destroy_context. Errors: UNKNOWN_NAME, NO_DEVICE (also
 * for an instruction set that the device lacks), INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_FAILURE;
 * then *context is NULL. A context on a GPU uses the GPU's primary context, as the CUDA runtime and
 * PyTorch do. It allocates 32 MiB of workspace if the GPU has room, so that first calls
 * seldom allocate. */
TG_API tg_status tg_create_context(const tg_context_options *options, tg_context **context);

/* Frees the context, its workspaces and its cache of plans. Plans made from it must be destroyed
 * before. NULL is allowed. */
TG_API void tg_destroy_context(tg_context *context);

/* tg_device_info describes the device of a context. */
typedef struct tg_device_info {
    size_t struct_bytes;
    const char *device; /* "cpu", "cuda:0" */
    const char *name;   /* the processor's own name */
    const char *isa;    /* highest instruction set in use */
    int thread_count;
    int64_t l1_bytes, l2_bytes, l3_bytes; /* data caches that a core sees; 0 where unknown */
    /* The members from here on describe a GPU and are 0 on the CPU. clock_hz is its highest
     * clock, and memory_bytes_per_s the bandwidth of its memory bus at the highest clock. */
    const char *bus;        /* PCI address, "0000:17:00.0"; "" on the CPU */
    int compute_capability; /* 10 major + minor: 90 */
    int sm_count, registers_per_sm;
    int64_t shared_bytes_per_sm, shared_bytes_per_block, memory_bytes;
    double clock_hz, memory_bytes_per_s;
} tg_device_info;

/* Fills *info, which has `struct_bytes` bytes: sizeof(tg_device_info). Its strings live as long as
 * the context. `context` may be NULL: the default one. Errors: INVALID_ARGUMENT, and those of
 * tg_create_context for the default context. */
TG_API tg_status tg_get_device_info(const tg_context *context, tg_device_info *info,
                                    size_t struct_bytes);

/* Sets *count to the number of devices that a context can be made for. `device` is "cpu", of which
 * there is 1, or "cuda", of which there are cuda:0 .. cuda:count - 1. Errors: NO_DEVICE (the
 * detail says why there is none), UNKNOWN_NAME, INVALID_ARGUMENT, DEVICE_FAILURE; then *count is
 * 0. */
TG_API tg_status tg_count_devices(const char *device, int *count);

/* Makes the device's primary context current on the calling thread, for CUDA libraries that are
 * called beside this one. `context` may be NULL: the default one. On the CPU nothing happens.
 * Errors: DEVICE_FAILURE, and those of tg_create_context for the default context. */
TG_API tg_status tg_activate_device(const tg_context *context);

/* ------------------------------------------------------------------------ memory, since 0.1 -- */

/* In each function of this section `context` may be NULL: the default context, whose creation adds
 * the errors of tg_create_context. Memory of any other allocator serves as well: a GPU context
 * takes every device pointer of its GPU. */

/* Allocates `size_bytes` >= 0 bytes on the context's device, aligned to 256 bytes on a GPU and to
 * 64 on the CPU. The caller passes *memory to tg_release_memory while the context lives. Errors:
 * OUT_OF_MEMORY, INVALID_ARGUMENT, DEVICE_FAILURE; then *memory is NULL. */
TG_API tg_status tg_allocate_memory(const tg_context *context, int64_t size_bytes, void **memory);

/* Frees memory of tg_allocate_memory. NULL is allowed. */
TG_API void tg_release_memory(const tg_context *context, void *memory);

/* Copy `size_bytes` bytes between ordinary memory and the device's, through pinned blocks. A copy
 * begins after the work of the default stream and is complete on return. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY, DEVICE_FAILURE. */
TG_API tg_status tg_copy_to_device(const tg_context *context, void *device, const void *host,
                                   int64_t size_bytes);
TG_API tg_status tg_copy_from_device(const tg_context *context, void *host, const void *device,
                                     int64_t size_bytes);

/* Waits until the work of the stream (NULL: the default one) is done. Errors: DEVICE_FAILURE, which
 * may stem from any call before it. */
TG_API tg_status tg_synchronize(const tg_context *context, void *stream);

/* ----------------------------------------------------------------------- problem, since 0.1 -- */

/* A matrix as it lies in memory. Element (i, j) of batch entry p is at
 *     data + p * batch_stride + i * row_stride + j * col_stride.
 * A, B and C may have any strides, negative and zero included. In D each stride must be larger than
 * the reach of the smaller ones, so that its elements are distinct. D may lie in the gaps of an
 * input, as rows or columns of one larger matrix or batch do. A D that shares memory with an input,
 * and is not C itself, is always refused. Any other D is accepted, unless strides that neither
 * repeat nor nest leave too many addresses to compare. */
typedef struct tg_matrix {
    void *data; /* not owned; never written where the matrix is A, B or C */
    tg_type type;
    int64_t row_count, col_count;   /* >= 0 */
    int64_t row_stride, col_stride; /* elements */
    int64_t batch_stride;           /* elements; unused where batch_count is 1 */
} tg_matrix;

/* A tg_problem describes one multiplication. Fill it with tg_make_problem or tg_init_problem and
 * change what differs.
 *
 * m, n, k and batch_count are at most 2^48. Over all batch entries D has at most 2^48 elements, and
 * op(A) and op(B) have at most 2^58 each, elements of stride 0 counted. No operand spans more
 * than 2^61 bytes. A problem beyond these limits is refused with SIZE_OVERFLOW. */
typedef struct tg_problem {
    size_t struct_bytes;
    tg_matrix a; /* op_a(a) is m x k */
    tg_matrix b; /* op_b(b) is k x n; same type as a, or another FP8 type */
    tg_matrix c; /* m x n, D's type; ignored and never read where beta is 0; may be D itself,
                    with D's strides, otherwise it must not overlap D */
    tg_matrix d; /* m x n. Its type is FP64 for FP64 inputs and FP32 for FP32 inputs; 16-bit inputs
                    allow FP32, BF16 and FP16, FP8 inputs also both FP8 types */
    tg_operation op_a, op_b;
    int64_t batch_count; /* >= 0 independent products */
    double alpha, beta;  /* rounded to FP32 where the inputs are not FP64. alpha = 0: A and B are
                            never read; beta = 0: C is never read */
    tg_precision precision;
    int is_batch_invariant; /* 1: the order in which a row of D is summed depends on n and k alone,
                               so the row has the same bits for every m, batch size and position;
                               else 0 */
    tg_bias bias;
    const void *bias_data; /* m or n contiguous values of D's type, shared by the batch */
    tg_activation activation;
    tg_scale a_scale, b_scale; /* FP8 inputs alone; the values are not read where alpha is 0 */
    tg_scale d_scale;          /* an FP8 D alone, TG_SCALE_TENSOR */
    const float *a_scale_data, *b_scale_data, *d_scale_data;
} tg_problem;

/* Tells a compiler that the function does not read through pointer argument `index`, so that it
 * does not warn of uninitialized memory there. */
#define TG_NOT_READ(index)
#if defined(__has_attribute)
#if __has_attribute(access)
#undef TG_NOT_READ
#define TG_NOT_READ(index) __attribute__((access(none, index)))
#endif
#endif

/* Sets *matrix to a view of a contiguous row-major matrix: row_stride = col_count, col_stride = 1,
 * batch_stride = 0. The data are not read here. */
TG_NOT_READ(3)
TG_API void tg_init_matrix(tg_matrix *matrix, tg_type type, const void *data, int64_t row_count,
                           int64_t col_count);

/* Sets *problem to D = A B: alpha 1, beta 0, no transpose, no bias, no activation, no scales, a
 * batch of one; c is a copy of d. `struct_bytes` is sizeof(tg_problem). Errors: INVALID_ARGUMENT;
 * then *problem is untouched. */
TG_API tg_status tg_init_problem(tg_problem *problem, size_t struct_bytes, const tg_matrix *a,
                                 const tg_matrix *b, const tg_matrix *d);

/* Return what tg_init_matrix and tg_init_problem set, for C and C++. */
TG_NOT_READ(2)
static inline tg_matrix tg_make_matrix(tg_type type, const void *data, int64_t row_count,
                                       int64_t col_count)
{
    tg_matrix matrix;
    tg_init_matrix(&matrix, type, data, row_count, col_count);
    return matrix;
}

static inline tg_problem tg_make_problem(tg_matrix a, tg_matrix b, tg_matrix d)
{
    tg_problem problem;
    tg_init_problem(&problem, sizeof problem, &a, &b, &d);
    return problem;
}

/* -------------------------------------------------------------------------- plan, since 0.1 -- */

/* A plan is a chosen kernel with its blocking for one problem: reusable, thread safe. */
typedef struct tg_plan tg_plan;

/* Zero or NULL in any member but struct_bytes means its default. */
typedef struct tg_plan_options {
    size_t struct_bytes;
    const char *kernel; /* name of a row of the kernel table, or its first words: "cpu_packed"
                           (default: what the planner chooses by predicted times) */
} tg_plan_options;

/* Sets *options, which has `struct_bytes` bytes, to the defaults. Errors: INVALID_ARGUMENT. */
TG_API tg_status tg_init_plan_options(tg_plan_options *options, size_t struct_bytes);

/* Plans `problem` for `context` (NULL: the default context). A plan depends on the shapes, strides,
 * types, alpha, beta and epilogue; data pointers may be NULL here. `options` may be NULL: the
 * defaults. On success the caller owns *plan and passes it to tg_destroy_plan. Planning a problem
 * again costs less than a microsecond. Errors: every status but WORKSPACE_TOO_SMALL; then *plan is
 * NULL. */
TG_API tg_status tg_create_plan(tg_context *context, const tg_problem *problem,
                                const tg_plan_options *options, tg_plan **plan);

/* Frees the plan. NULL is allowed. */
TG_API void tg_destroy_plan(tg_plan *plan);

/* tg_plan_info describes the choices of a plan. */
typedef struct tg_plan_info {
    size_t struct_bytes;
    const char *kernel;      /* row of the kernel table; lives as long as the plan */
    int64_t workspace_bytes; /* >= 0; what tg_execute_plan needs */
    int thread_count;        /* most CPU threads that it uses */
    double predicted_s;      /* seconds, by the model */
} tg_plan_info;

/* Fills *info, which has `struct_bytes` bytes: sizeof(tg_plan_info). Errors: INVALID_ARGUMENT. */
TG_API tg_status tg_get_plan_info(const tg_plan *plan, tg_plan_info *info, size_t struct_bytes);

/* ----------------------------------------------------------------------- execute, since 0.1 -- */

/* tg_buffers holds the memory of one execution. Pointers that a plan does not read may be NULL. */
typedef struct tg_buffers {
    size_t struct_bytes;
    const void *a, *b, *c;
    void *d;
    const void *bias;
    const float *a_scale, *b_scale, *d_scale;
    void *workspace;         /* the caller's, aligned to 64 bytes (on a GPU 256), or NULL: the
                                context's own */
    int64_t workspace_bytes; /* size of the caller's workspace */
    void *stream;            /* CUstream or cudaStream_t, NULL: the default one; on the CPU NULL */
} tg_buffers;

/* Sets *buffers to the pointers of `problem` (NULL: all of them NULL), without a workspace, on the
 * default stream. Errors: INVALID_ARGUMENT; then *buffers is untouched. */
TG_API tg_status tg_init_buffers(tg_buffers *buffers, size_t struct_bytes,
                                 const tg_problem *problem);

/* Runs the plan on the buffers. On the CPU D is complete on return. The context keeps its workspace
 * for the next call. Concurrent executions of one plan are allowed when their D differ. Errors:
 * INVALID_ARGUMENT (a needed pointer is NULL), OVERLAP, WORKSPACE_TOO_SMALL, OUT_OF_MEMORY; then D
 * is untouched. After DEVICE_FAILURE, and after OUT_OF_MEMORY on device "sim", D is undefined.
 *
 * On a GPU all pointers are device pointers, and the call only puts work into the stream. It waits
 * for nothing, and allocates nothing where the caller passes the workspace or the plan needs none.
 * The context keeps a workspace for each stream and a spare one. The first call of a stream takes
 * the spare one, or allocates if that is taken. Calls may be captured into a CUDA graph. Workspace
 * of the context that captured calls use belongs to the graph until the context is destroyed. A
 * program that captures many graphs should therefore pass its own workspace. */
TG_API tg_status tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers);

/* ---------------------------------------------------------------------- one-shot, since 0.1 -- */

/* Validates, plans (or finds the plan that it made before) and executes, with the pointers in
 * `problem` and the context's workspace. `context` may be NULL: the default context, which is made
 * at first use and shared by the process. Errors: those of tg_create_plan and tg_execute_plan.
 *
 * On a GPU all operands may instead lie in ordinary memory, pageable or pinned, and may be larger
 * than the GPU's memory. The call copies panels in, multiplies others and copies results back at
 * the same time. D is complete on return; after DEVICE_FAILURE it is undefined. Each panel uses the
 * best kernel for its shape, so D keeps the bound of its precision. Its bits are the same for the
 * same memory limit and number of threads, but differ from those of one product on the GPU. If D's
 * columns are cut, is_batch_invariant is UNSUPPORTED. A mix of operands in the GPU's memory and in
 * pageable memory is refused with INVALID_ARGUMENT, and the detail names one of each. If an earlier
 * product found an address on the GPU, an operand other than D at that address is taken to be there
 * until the next tg_release_memory. */
TG_API tg_status tg_multiply(tg_context *context, const tg_problem *problem);

/* Does what tg_multiply does, on a stream of a GPU, a CUstream or cudaStream_t. On the CPU `stream`
 * is NULL. A product of ordinary memory follows the work of the stream, which must not be
 * captured. */
TG_API tg_status tg_multiply_on_stream(tg_context *context, const tg_problem *problem,
                                       void *stream);

/* -------------------------------------------------------------- problems as text, since 0.1 -- */

/* A problem as text is MxNxK, then what differs from the default, each part after a colon:
 *     1000x1200x800                      FP32, row-major A, B and D
 *     512x512x64:nt:bf16:d=fp32          layout nn nt tn tt; input type; type of D
 *     8x8x8:fp8_e4m3:b=fp8_e5m2:d=bf16   type of B where it is another than A's
 *     8x8x8:fp8_e4m3:sa=vector:sb=tensor:sd=tensor   scales of A, B and D
 *     8x8x8:batch=4:alpha=2:beta=1:bias=col:act=gelu_erf:prec=ieee_fp32
 *     8x8x8:batch_invariant
 *     8x8x8:lda=10:ldb=12:ldc=9:ldd=9    leading dimensions in elements
 *     8x8x8:dcol                         D (and C) column-major
 *     8x8x8:rsa=1:csa=-8:bsa=64          any strides of a matrix (a, b, c, d)
 * A letter of the layout says how the operand is stored: nt has B as n x k, row-major. A batch
 * stride that is not given is 0 in a batch of one, else max(rows |row stride|, columns |column
 * stride|). C takes each stride of D that is not given for it, and is written only where beta is
 * not 0. */

/* Fills *problem, which has `struct_bytes` bytes, sizeof(tg_problem), with NULL data. Errors:
 * INVALID_ARGUMENT, which names the part, and OUT_OF_MEMORY. */
TG_API tg_status tg_parse_problem(const char *text, tg_problem *problem, size_t struct_bytes);

/* Writes the shortest text of the problem, with its NUL, into `text`, which has `text_bytes` bytes;
 * 640 always suffice. Errors: INVALID_ARGUMENT where `text_bytes` is too small or the problem is
 * not legal, and the others of tg_create_plan. */
TG_API tg_status tg_format_problem(const tg_problem *problem, char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif /* TILEGEMM_H */
