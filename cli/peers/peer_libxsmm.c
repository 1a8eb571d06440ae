/*
 * Calls LIBXSMM, which compiles a kernel for the sizes of a small product. It computes
 * column-major: our row-major D is its D^T = B^T A^T. A loop over the entries of a batch calls the
 * kernel.
 */
#include "peers/peer.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

/* The values of libxsmm's flags that are in use. */
enum { flag_transpose_a = 1, flag_transpose_b = 2 };
enum { longest_side = 256 };

typedef void (*xsmm_kernel)(const void *a, const void *b, void *c);

static struct {
    const char *(*get_arch)(void);
    xsmm_kernel (*dispatch_fp32)(int m, int n, int k, const int *lda, const int *ldb,
                                 const int *ldc, const float *alpha, const float *beta,
                                 const int *flags, const int *prefetch);
    xsmm_kernel (*dispatch_fp64)(int m, int n, int k, const int *lda, const int *ldb,
                                 const int *ldc, const double *alpha, const double *beta,
                                 const int *flags, const int *prefetch);
} library;
static int thread_count_asked;

int cli_bind_libxsmm(cli_peer *peer)
{
    void (*initialize)(void) = (void (*)(void))dlsym(peer->handle, "libxsmm_init");
    *(void **)&library.get_arch = dlsym(peer->handle, "libxsmm_get_target_arch");
    *(void **)&library.dispatch_fp32 = dlsym(peer->handle, "libxsmm_smmdispatch");
    *(void **)&library.dispatch_fp64 = dlsym(peer->handle, "libxsmm_dmmdispatch");
    if (!initialize || !library.get_arch || !library.dispatch_fp32 || !library.dispatch_fp64) {
        snprintf(peer->reason, sizeof peer->reason, "the library lacks a function of LIBXSMM 1: %s",
                 peer->remedy);
        return 0;
    }
    initialize();
    cli_find_symbol_path((const void *)initialize, peer->path);
    snprintf(peer->version, sizeof peer->version, "LIBXSMM 1");
    snprintf(peer->kernel, sizeof peer->kernel, "%s", library.get_arch());
    return 1;
}

void cli_set_libxsmm_threads(const cli_peer *peer, int thread_count)
{
    (void)peer;
    thread_count_asked = thread_count;
}

const char *cli_explain_libxsmm(const peer_gemm *gemm)
{
    if (gemm->type != TG_TYPE_FP32 && gemm->type != TG_TYPE_FP64)
        return "it is measured on fp32 and fp64";
    if (gemm->m > longest_side || gemm->n > longest_side || gemm->k > longest_side)
        return "it is measured on products of at most 256 a side";
    if (gemm->lda > INT_MAX || gemm->ldb > INT_MAX || gemm->ldd > INT_MAX)
        return "its interface takes sizes up to 2147483647 only";
    if (thread_count_asked > 1)
        return "it is measured on one thread";
    return cli_explain_blas_epilogue(gemm);
}

/* The state is the kernel. */
int cli_prepare_libxsmm(const cli_peer *peer, const peer_gemm *gemm, void **state)
{
    const int flags = (gemm->is_b_transposed ? flag_transpose_a : 0) |
                      (gemm->is_a_transposed ? flag_transpose_b : 0);
    const int m = (int)gemm->n, n = (int)gemm->m, k = (int)gemm->k;
    const int lda = (int)gemm->ldb, ldb = (int)gemm->lda, ldc = (int)gemm->ldd;
    const float alpha = (float)gemm->alpha, beta = 0.0F;
    const double beta_fp64 = 0.0;
    (void)peer;
    xsmm_kernel kernel =
        gemm->type == TG_TYPE_FP64
            ? library.dispatch_fp64(m, n, k, &lda, &ldb, &ldc, &gemm->alpha, &beta_fp64, &flags,
                                    NULL)
            : library.dispatch_fp32(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, NULL);
    *(xsmm_kernel *)state = kernel;
    return kernel != NULL;
}

int cli_run_libxsmm(const cli_peer *peer, const peer_gemm *gemm, void *state,
                    const tg_buffers *operands)
{
    const int64_t elem_bytes = tg_get_type_bytes(gemm->type);
    const char *a = operands->a, *b = operands->b;
    char *d = operands->d;
    xsmm_kernel kernel = *(xsmm_kernel *)&state;
    (void)peer;
    for (int64_t entry = 0; entry < gemm->batch_count; entry++) {
        kernel(b, a, d);
        a += gemm->batch_a * elem_bytes;
        b += gemm->batch_b * elem_bytes;
        d += gemm->batch_d * elem_bytes;
    }
    return 1;
}

void cli_release_libxsmm(void *state)
{
    (void)state; /* the library keeps its kernels */
}
