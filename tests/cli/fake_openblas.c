/*
 * A peer of known behaviour in the place of OpenBLAS: the textbook loop, wrong in its first element
 * where FAKE_OPENBLAS_WRONG is set. It tells the kernel that the environment asked for.
 */
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

const char *openblas_get_config(void)
{
    return "fake 1.0";
}

const char *openblas_get_corename(void)
{
    const char *asked = getenv("OPENBLAS_CORETYPE");
    return asked ? asked : "none";
}

void openblas_set_num_threads(int thread_count)
{
    (void)thread_count;
}

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    (void)order;
    (void)beta; /* bench passes 0 */
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
