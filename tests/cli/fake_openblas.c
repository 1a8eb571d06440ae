/*
 * A peer of known behaviour that replaces OpenBLAS: it runs the textbook loop, and its
 * first element is wrong if FAKE_OPENBLAS_WRONG is set. If FAKE_OPENBLAS_LOG is set, it writes
 * there what it was asked for, a line a call. It tells the kernel that the environment asked for.
 * In the place of oneDNN its sgemm fails after FAKE_ONEDNN_CALLS calls.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { transposed = 112 };

const char *openblas_get_config(void);
const char *openblas_get_corename(void);
void openblas_set_num_threads(int thread_count);
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
void cblas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);
const int *dnnl_version(void);
void omp_set_num_threads(int thread_count);
int dnnl_sgemm(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
               const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
               int64_t ldc);

const char *openblas_get_config(void)
{
    return "fake 1.0";
}

const char *openblas_get_corename(void)
{
    const char *asked = getenv("OPENBLAS_CORETYPE");
    return asked ? asked : "none";
}

static FILE *open_log(void)
{
    const char *path = getenv("FAKE_OPENBLAS_LOG");
    return path ? fopen(path, "a") : NULL;
}

void openblas_set_num_threads(int thread_count)
{
    FILE *log = open_log();
    if (log) {
        fprintf(log, "threads %d\n", thread_count);
        fclose(log);
    }
}

static void log_gemm(const void *c)
{
    FILE *log = open_log();
    if (log) {
        fprintf(log, "gemm %p\n", c);
        fclose(log);
    }
}

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    (void)order;
    (void)beta; /* bench passes 0 */
    log_gemm(c);
    for (int row = 0; row < m; row++) {
        for (int col = 0; col < n; col++) {
            double sum = 0.0;
            for (int i = 0; i < k; i++)
                sum += (double)a[transpose_a == transposed ? i * lda + row : row * lda + i] *
                       (double)b[transpose_b == transposed ? col * ldb + i : i * ldb + col];
            c[row * ldc + col] = (float)((double)alpha * sum);
        }
    }
    if (getenv("FAKE_OPENBLAS_WRONG"))
        c[0] += 1.0F;
}

void cblas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc)
{
    (void)order;
    (void)beta;
    for (int row = 0; row < m; row++) {
        for (int col = 0; col < n; col++) {
            double sum = 0.0;
            for (int i = 0; i < k; i++)
                sum += a[transpose_a == transposed ? i * lda + row : row * lda + i] *
                       b[transpose_b == transposed ? col * ldb + i : i * ldb + col];
            c[row * ldc + col] = alpha * sum;
        }
    }
}

const int *dnnl_version(void)
{
    static const int version[3] = {2, 0, 0};
    return version;
}

void omp_set_num_threads(int thread_count)
{
    (void)thread_count;
}

int dnnl_sgemm(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
               const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
               int64_t ldc)
{
    static int call_count;
    const char *limit = getenv("FAKE_ONEDNN_CALLS");
    if (limit && call_count++ >= atoi(limit))
        return 1;
    cblas_sgemm(101, transpose_a == 'T' ? transposed : 111, transpose_b == 'T' ? transposed : 111,
                (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
    return 0;
}
