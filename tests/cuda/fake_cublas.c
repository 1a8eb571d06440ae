/*
 * This library replaces cuBLAS and cuBLASLt as far as the bench calls them, for a driver whose
 * device memory is the host's. It forms column-major products by three loops. It proposes three
 * candidates: the first is of no use, and the second fails when it is run.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* These values of cublas_api.h, cublasLt.h and library_types.h are in use. */
enum { operation_n = 0, success = 0, invalid_value = 7, execution_failed = 13, not_supported = 15 };
enum { data_fp32 = 0, data_fp64 = 1, description_op_a = 3, description_op_b = 4 };
enum { description_epilogue = 7, description_bias = 8, description_bias_type = 26 };
enum { layout_batch_count = 5, layout_batch_stride = 6, epilogue_relu_bias = 6 };
enum { candidate_count = 3, useless = 0, failing = 1, working = 2 };

#define EXPORTED __attribute__((visibility("default")))
/* The functions are found by name alone. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static double read_element(int type, const void *data, int64_t index)
{
    return type == data_fp64 ? ((const double *)data)[index] : (double)((const float *)data)[index];
}

typedef struct product {
    int type, op_a, op_b;
    int64_t m, n, k, lda, ldb, ldc;
    double alpha;
} product;

static void multiply(const product *p, const void *a, const void *b, void *c)
{
    for (int64_t col = 0; col < p->n; col++) {
        for (int64_t row = 0; row < p->m; row++) {
            double sum = 0.0;
            for (int64_t i = 0; i < p->k; i++) {
                int64_t at_a = p->op_a == operation_n ? row + i * p->lda : i + row * p->lda;
                int64_t at_b = p->op_b == operation_n ? i + col * p->ldb : col + i * p->ldb;
                sum += read_element(p->type, a, at_a) * read_element(p->type, b, at_b);
            }
            if (p->type == data_fp64)
                ((double *)c)[row + col * p->ldc] = p->alpha * sum;
            else
                ((float *)c)[row + col * p->ldc] = (float)(p->alpha * sum);
        }
    }
}

static int make(void **object, size_t bytes)
{
    *object = calloc(1, bytes);
    return *object ? success : invalid_value;
}

static int destroy(void *object)
{
    free(object);
    return success;
}

/* ---- cuBLAS */

EXPORTED int cublasCreate_v2(void **handle)
{
    return make(handle, 1);
}

EXPORTED int cublasDestroy_v2(void *handle)
{
    return destroy(handle);
}

EXPORTED int cublasGetVersion_v2(void *handle, int *version)
{
    (void)handle;
    *version = 130000;
    return success;
}

EXPORTED int cublasSetStream_v2(void *handle, void *stream)
{
    return handle && !stream ? success : invalid_value;
}

EXPORTED int cublasSgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k,
                            const float *alpha, const void *a, int lda, const void *b, int ldb,
                            const float *beta, void *c, int ldc)
{
    const product p = {data_fp32, op_a, op_b, m, n, k, lda, ldb, ldc, (double)*alpha};
    if (!handle || *beta != 0.0F)
        return invalid_value;
    multiply(&p, a, b, c);
    return success;
}

EXPORTED int cublasDgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k,
                            const double *alpha, const void *a, int lda, const void *b, int ldb,
                            const double *beta, void *c, int ldc)
{
    const product p = {data_fp64, op_a, op_b, m, n, k, lda, ldb, ldc, *alpha};
    if (!handle || *beta != 0.0)
        return invalid_value;
    multiply(&p, a, b, c);
    return success;
}

EXPORTED int cublasGemmStridedBatchedEx(void *handle, int op_a, int op_b, int m, int n, int k,
                                        const void *alpha, const void *a, int type_a, int lda,
                                        long long batch_a, const void *b, int type_b, int ldb,
                                        long long batch_b, const void *beta, void *c, int type_c,
                                        int ldc, long long batch_c, int batch_count, int compute,
                                        int algorithm)
{
    const int64_t elem_bytes = type_a == data_fp64 ? 8 : 4;
    const product p = {type_a, op_a, op_b, m, n, k, lda, ldb, ldc, read_element(type_a, alpha, 0)};
    if (!handle || type_a != type_b || type_a != type_c || algorithm != -1 ||
        compute != (type_a == data_fp64 ? 70 : 68) || read_element(type_a, beta, 0) != 0.0)
        return invalid_value;
    for (int64_t i = 0; i < batch_count; i++)
        multiply(&p, (const char *)a + i * batch_a * elem_bytes,
                 (const char *)b + i * batch_b * elem_bytes, (char *)c + i * batch_c * elem_bytes);
    return success;
}

EXPORTED int cublasGemmEx(void)
{
    return not_supported; /* no kernel here has the 16-bit types */
}

/* ---- cuBLASLt */

typedef struct description {
    int type, op_a, op_b, epilogue, bias_type;
    const void *bias;
} description;

typedef struct layout {
    int type;
    int64_t rows, cols, leading, batch_stride;
    int32_t batch_count;
} layout;

/* This struct has the layout of cublasLtMatmulHeuristicResult_t. */
typedef struct candidate {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status;
    float wave_count;
    int reserved[4];
} candidate;

EXPORTED int cublasLtCreate(void **handle)
{
    return make(handle, 1);
}

EXPORTED int cublasLtDestroy(void *handle)
{
    return destroy(handle);
}

EXPORTED size_t cublasLtGetVersion(void)
{
    return 130000;
}

EXPORTED int cublasLtMatmulDescCreate(void **made, int compute, int scale_type)
{
    (void)compute;
    int status = make(made, sizeof(description));
    if (status == success)
        ((description *)*made)->type = scale_type;
    return status;
}

EXPORTED int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value,
                                            size_t bytes)
{
    description *d = object;
    void *target = attribute == description_op_a        ? (void *)&d->op_a
                   : attribute == description_op_b      ? (void *)&d->op_b
                   : attribute == description_epilogue  ? (void *)&d->epilogue
                   : attribute == description_bias_type ? (void *)&d->bias_type
                   : attribute == description_bias      ? (void *)&d->bias
                                                        : NULL;
    if (!target || bytes != (attribute == description_bias ? sizeof(void *) : sizeof(int)))
        return invalid_value;
    memcpy(target, value, bytes);
    return success;
}

EXPORTED int cublasLtMatmulDescDestroy(void *object)
{
    return destroy(object);
}

EXPORTED int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t cols,
                                        int64_t leading)
{
    int status = make(made, sizeof(layout));
    if (status == success)
        *(layout *)*made = (layout){type, (int64_t)rows, (int64_t)cols, leading, 0, 1};
    return status;
}

EXPORTED int cublasLtMatrixLayoutSetAttribute(void *object, int attribute, const void *value,
                                              size_t bytes)
{
    layout *l = object;
    if (attribute == layout_batch_count && bytes == sizeof l->batch_count)
        memcpy(&l->batch_count, value, bytes);
    else if (attribute == layout_batch_stride && bytes == sizeof l->batch_stride)
        memcpy(&l->batch_stride, value, bytes);
    else
        return invalid_value;
    return success;
}

EXPORTED int cublasLtMatrixLayoutDestroy(void *object)
{
    return destroy(object);
}

EXPORTED int cublasLtMatmulPreferenceCreate(void **made)
{
    return make(made, 1);
}

EXPORTED int cublasLtMatmulPreferenceSetAttribute(void *object, int attribute, const void *value,
                                                  size_t bytes)
{
    return object && attribute == 1 && value && bytes == sizeof(uint64_t) ? success : invalid_value;
}

EXPORTED int cublasLtMatmulPreferenceDestroy(void *object)
{
    return destroy(object);
}

EXPORTED int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b,
                                            void *c, void *d, void *preference, int wanted,
                                            candidate *found, int *found_count)
{
    if (!handle || !operation || !a || !b || !c || !d || !preference || wanted < candidate_count)
        return invalid_value;
    for (int i = 0; i < candidate_count; i++) {
        found[i].algorithm[0] = (uint64_t)i;
        found[i].status = i == useless ? not_supported : success;
    }
    *found_count = candidate_count;
    return success;
}

/* Adds beta times C and, if the epilogue has them, the bias of each row and ReLU. */
static void finish(const description *how, double beta, const layout *out, int64_t leading_c,
                   const float *c, float *d)
{
    for (int64_t i = 0; i < out->rows * out->cols; i++) {
        const int64_t row = i % out->rows, col = i / out->rows;
        float *element = &d[row + col * out->leading];
        if (beta != 0.0)
            *element += (float)beta * c[row + col * leading_c];
        if (how->epilogue == epilogue_relu_bias)
            *element += ((const float *)how->bias)[row];
        if (how->epilogue == epilogue_relu_bias && *element < 0.0F)
            *element = 0.0F;
    }
}

EXPORTED int cublasLtMatmul(void *handle, void *operation, const void *alpha, const void *a,
                            void *layout_a, const void *b, void *layout_b, const void *beta,
                            const void *c, void *layout_c, void *d, void *layout_d,
                            const uint64_t *algorithm, void *workspace, size_t workspace_bytes,
                            void *stream)
{
    const description *how = operation;
    const layout *left = layout_a, *right = layout_b, *in = layout_c, *out = layout_d;
    const double beta_read = read_element(how->type, beta, 0);
    const int64_t elem_bytes = how->type == data_fp64 ? 8 : 4;
    if (!handle || !workspace || workspace_bytes == 0 || stream || (c == d) != (beta_read == 0.0) ||
        algorithm[0] == useless || left->batch_count != out->batch_count ||
        right->batch_count != out->batch_count)
        return invalid_value;
    if (algorithm[0] == failing)
        return execution_failed;
    const product p = {how->type,     how->op_a,
                       how->op_b,     out->rows,
                       out->cols,     how->op_a == operation_n ? left->cols : left->rows,
                       left->leading, right->leading,
                       out->leading,  read_element(how->type, alpha, 0)};
    for (int64_t i = 0; i < out->batch_count; i++) {
        char *at_d = (char *)d + i * out->batch_stride * elem_bytes;
        multiply(&p, (const char *)a + i * left->batch_stride * elem_bytes,
                 (const char *)b + i * right->batch_stride * elem_bytes, at_d);
        if (how->type == data_fp32)
            finish(how, beta_read, out, in->leading, (const float *)c + i * in->batch_stride,
                   (float *)at_d);
    }
    return success;
}
