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

EXPORTED int cublasGemmEx(void)
{
    return not_supported; /* no kernel here has the 16-bit types */
}

/* ---- cuBLASLt */

typedef struct description {
    int type, op_a, op_b;
} description;

typedef struct layout {
    int type;
    int64_t rows, cols, leading;
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
    if (bytes != sizeof(int) || (attribute != description_op_a && attribute != description_op_b))
        return invalid_value;
    memcpy(attribute == description_op_a ? &d->op_a : &d->op_b, value, bytes);
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
        *(layout *)*made = (layout){type, (int64_t)rows, (int64_t)cols, leading};
    return status;
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

EXPORTED int cublasLtMatmul(void *handle, void *operation, const void *alpha, const void *a,
                            void *layout_a, const void *b, void *layout_b, const void *beta,
                            const void *c, void *layout_c, void *d, void *layout_d,
                            const uint64_t *algorithm, void *workspace, size_t workspace_bytes,
                            void *stream)
{
    const description *how = operation;
    const layout *left = layout_a, *right = layout_b, *out = layout_d;
    if (!handle || !workspace || workspace_bytes == 0 || stream || c != d || layout_c != layout_d ||
        algorithm[0] == useless || read_element(how->type, beta, 0) != 0.0)
        return invalid_value;
    if (algorithm[0] == failing)
        return execution_failed;
    const product p = {how->type,     how->op_a,
                       how->op_b,     out->rows,
                       out->cols,     how->op_a == operation_n ? left->cols : left->rows,
                       left->leading, right->leading,
                       out->leading,  read_element(how->type, alpha, 0)};
    multiply(&p, a, b, d);
    return success;
}
