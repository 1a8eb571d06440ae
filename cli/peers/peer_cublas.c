/*
 * Calls cuBLAS with its default choice. It computes column-major: our row-major D is its D^T = B^T
 * A^T.
 */
#include "peers/peer.h"
#include "check.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* The values of cublas_api.h and library_types.h that are in use. */
enum { operation_n = 0, operation_t = 1, algorithm_default = -1 };
enum { compute_fp32 = 68, compute_fp64 = 70, compute_tf32 = 77 };
enum { data_fp32 = 0, data_fp64 = 1, data_fp16 = 2, data_bf16 = 14 };

typedef struct cublas {
    int (*create)(void **handle);
    int (*get_version)(void *handle, int *version);
    int (*set_stream)(void *handle, void *stream);
    int (*sgemm)(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                 const void *a, int lda, const void *b, int ldb, const float *beta, void *c,
                 int ldc);
    int (*dgemm)(void *handle, int op_a, int op_b, int m, int n, int k, const double *alpha,
                 const void *a, int lda, const void *b, int ldb, const double *beta, void *c,
                 int ldc);
    int (*gemm_ex)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                   const void *a, int type_a, int lda, const void *b, int type_b, int ldb,
                   const void *beta, void *c, int type_c, int ldc, int compute, int algorithm);
    int (*gemm_batch)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                      const void *a, int type_a, int lda, long long batch_a, const void *b,
                      int type_b, int ldb, long long batch_b, const void *beta, void *c, int type_c,
                      int ldc, long long batch_c, int batch_count, int compute, int algorithm);
} cublas;
static cublas library;

int cli_bind_cublas(cli_peer *peer)
{
    void *handle = peer->handle;
    *(void **)&library.create = dlsym(handle, "cublasCreate_v2");
    *(void **)&library.get_version = dlsym(handle, "cublasGetVersion_v2");
    *(void **)&library.set_stream = dlsym(handle, "cublasSetStream_v2");
    *(void **)&library.sgemm = dlsym(handle, "cublasSgemm_v2");
    *(void **)&library.dgemm = dlsym(handle, "cublasDgemm_v2");
    *(void **)&library.gemm_ex = dlsym(handle, "cublasGemmEx");
    *(void **)&library.gemm_batch = dlsym(handle, "cublasGemmStridedBatchedEx");
    if (!library.create || !library.get_version || !library.set_stream || !library.sgemm ||
        !library.dgemm || !library.gemm_ex || !library.gemm_batch) {
        snprintf(peer->reason, sizeof peer->reason, "the library lacks a function of cuBLAS: %s",
                 peer->remedy);
        return 0;
    }
    int version = 0;
    library.get_version(NULL, &version);
    cli_find_symbol_path(dlsym(handle, "cublasCreate_v2"), peer->path);
    snprintf(peer->version, sizeof peer->version, "cuBLAS %d", version);
    return 1;
}

const char *cli_explain_cublas(const peer_gemm *gemm)
{
    if (gemm->m > INT_MAX || gemm->n > INT_MAX || gemm->k > INT_MAX || gemm->lda > INT_MAX ||
        gemm->ldb > INT_MAX || gemm->ldd > INT_MAX || gemm->batch_count > INT_MAX)
        return "its interface takes sizes up to 2147483647 only";
    if (check_is_fp8(gemm->type))
        return "it has no FP8; cublas_lt and cublas_best have";
    return cli_explain_blas_epilogue(gemm);
}

/* The state is the cuBLAS handle, made once in the context of the device. */
int cli_prepare_cublas(const cli_peer *peer, const peer_gemm *gemm, void **state)
{
    static void *handle;
    (void)gemm;
    if (tg_activate_device(peer->context) != TG_STATUS_OK)
        return 0;
    if (!handle && library.create(&handle) != 0)
        handle = NULL;
    *state = handle;
    return handle != NULL;
}

static int find_data_type(tg_type type)
{
    return type == TG_TYPE_FP64   ? data_fp64
           : type == TG_TYPE_FP32 ? data_fp32
           : type == TG_TYPE_BF16 ? data_bf16
                                  : data_fp16;
}

static int find_compute(const peer_gemm *gemm)
{
    return gemm->type == TG_TYPE_FP64 ? compute_fp64 : gemm->is_tf32 ? compute_tf32 : compute_fp32;
}

static int run_batch(const peer_gemm *gemm, void *state, const tg_buffers *operands)
{
    const float alpha = (float)gemm->alpha, beta = 0.0F;
    const double beta_fp64 = 0.0;
    const int is_fp64 = gemm->type == TG_TYPE_FP64, type = find_data_type(gemm->type);
    return library.gemm_batch(
               state, gemm->is_b_transposed ? operation_t : operation_n,
               gemm->is_a_transposed ? operation_t : operation_n, (int)gemm->n, (int)gemm->m,
               (int)gemm->k, is_fp64 ? (const void *)&gemm->alpha : &alpha, operands->b, type,
               (int)gemm->ldb, gemm->batch_b, operands->a, type, (int)gemm->lda, gemm->batch_a,
               is_fp64 ? (const void *)&beta_fp64 : &beta, operands->d,
               find_data_type(gemm->d_type), (int)gemm->ldd, gemm->batch_d, (int)gemm->batch_count,
               find_compute(gemm), algorithm_default) == 0;
}

int cli_run_cublas(const cli_peer *peer, const peer_gemm *gemm, void *state,
                   const tg_buffers *operands)
{
    const void *a = operands->a, *b = operands->b;
    void *d = operands->d;
    const int op_a = gemm->is_a_transposed ? operation_t : operation_n;
    const int op_b = gemm->is_b_transposed ? operation_t : operation_n;
    const int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k;
    const int lda = (int)gemm->lda, ldb = (int)gemm->ldb, ldd = (int)gemm->ldd;
    const float alpha = (float)gemm->alpha, beta = 0.0F;
    const double beta_fp64 = 0.0;
    (void)peer;
    if (library.set_stream(state, operands->stream) != 0)
        return 0;
    if (gemm->batch_count > 1)
        return run_batch(gemm, state, operands);
    if (gemm->type == TG_TYPE_FP64)
        return library.dgemm(state, op_b, op_a, n, m, k, &gemm->alpha, b, ldb, a, lda, &beta_fp64,
                             d, ldd) == 0;
    if (gemm->type == TG_TYPE_FP32 && !gemm->is_tf32)
        return library.sgemm(state, op_b, op_a, n, m, k, &alpha, b, ldb, a, lda, &beta, d, ldd) ==
               0;
    const int type = find_data_type(gemm->type);
    return library.gemm_ex(state, op_b, op_a, n, m, k, &alpha, b, type, ldb, a, type, lda, &beta, d,
                           find_data_type(gemm->d_type), ldd, find_compute(gemm),
                           algorithm_default) == 0;
}
