/* Calls the three libraries with the CBLAS interface: OpenBLAS, BLIS and MKL. */
#include "peers/peer.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* Values of the CBLAS standard's enums. */
enum { cblas_row_major = 101, cblas_no_transpose = 111, cblas_transpose = 112 };

/* The functions that all three libraries have. */
static int bind_cblas(cli_peer *peer, const char *thread_function)
{
    peer->sgemm = (peer_sgemm)dlsym(peer->handle, "cblas_sgemm");
    peer->dgemm = (peer_dgemm)dlsym(peer->handle, "cblas_dgemm");
    peer->sgemm_batch = (peer_sgemm_batch)dlsym(peer->handle, "cblas_sgemm_batch_strided");
    peer->dgemm_batch = (peer_dgemm_batch)dlsym(peer->handle, "cblas_dgemm_batch_strided");
    peer->thread_symbol = dlsym(peer->handle, thread_function);
    const char *missing = !peer->sgemm           ? "cblas_sgemm"
                          : !peer->dgemm         ? "cblas_dgemm"
                          : !peer->thread_symbol ? thread_function
                                                 : NULL;
    if (missing) {
        snprintf(peer->reason, sizeof peer->reason, "the library has no %s: %s", missing,
                 peer->remedy);
        return 0;
    }
    cli_find_symbol_path((const void *)peer->sgemm, peer->path);
    return 1;
}

/* Returns the text of a function without arguments; "" if the library lacks the function. */
static const char *ask_text(const cli_peer *peer, const char *function)
{
    const char *(*ask)(void) = (const char *(*)(void))dlsym(peer->handle, function);
    const char *text = ask ? ask() : NULL;
    return text ? text : "";
}

int cli_bind_openblas(cli_peer *peer)
{
    if (!bind_cblas(peer, "openblas_set_num_threads"))
        return 0;
    snprintf(peer->version, sizeof peer->version, "%s", ask_text(peer, "openblas_get_config"));
    snprintf(peer->kernel, sizeof peer->kernel, "%s", ask_text(peer, "openblas_get_corename"));
    return 1;
}

int cli_bind_blis(cli_peer *peer)
{
    if (!bind_cblas(peer, "bli_thread_set_num_threads"))
        return 0;
    snprintf(peer->version, sizeof peer->version, "BLIS %s",
             ask_text(peer, "bli_info_get_version_str"));
    /* Asking for the kernel before the library is initialized would abort the process. */
    void (*initialize)(void) = (void (*)(void))dlsym(peer->handle, "bli_init");
    int (*query_id)(void) = (int (*)(void))dlsym(peer->handle, "bli_arch_query_id");
    const char *(*name_id)(int) = (const char *(*)(int))dlsym(peer->handle, "bli_arch_string");
    if (initialize && query_id && name_id) {
        initialize();
        snprintf(peer->kernel, sizeof peer->kernel, "%s", name_id(query_id()));
    }
    return 1;
}

/* MKL loads one library of kernels, chosen by the processor: libmkl_avx512, _avx2, _def, ... */
static int find_mkl_kernel(struct dl_phdr_info *info, size_t size, void *data)
{
    static const char *const names[] = {"libmkl_avx10", "libmkl_avx512", "libmkl_avx2",
                                        "libmkl_mc3", "libmkl_def"};
    (void)size;
    cli_peer *peer = data;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(info->dlpi_name, names[i]))
            snprintf(peer->kernel, sizeof peer->kernel, "%s", names[i]);
    }
    return 0;
}

int cli_bind_mkl(cli_peer *peer)
{
    if (!bind_cblas(peer, "MKL_Set_Num_Threads"))
        return 0;
    void (*get_version)(char *, int) =
        (void (*)(char *, int))dlsym(peer->handle, "mkl_get_version_string");
    if (get_version) {
        get_version(peer->version, (int)sizeof peer->version - 1);
        for (size_t end = strlen(peer->version); end > 0 && peer->version[end - 1] == ' '; end--)
            peer->version[end - 1] = '\0';
    }
    /* MKL loads its library of kernels at the first product. */
    const double one = 1.0;
    double product = 0.0;
    peer->dgemm(cblas_row_major, cblas_no_transpose, cblas_no_transpose, 1, 1, 1, 1.0, &one, 1,
                &one, 1, 0.0, &product, 1);
    dl_iterate_phdr(find_mkl_kernel, peer);
    return 1;
}

void cli_set_peer_threads_int(const cli_peer *peer, int thread_count)
{
    ((void (*)(int))peer->thread_symbol)(thread_count);
}

void cli_set_peer_threads_int64(const cli_peer *peer, int thread_count)
{
    ((void (*)(int64_t))peer->thread_symbol)(thread_count);
}

static int exceeds_int(int64_t value)
{
    return value > INT_MAX || value < INT_MIN;
}

const char *cli_explain_cblas(const peer_gemm *gemm)
{
    if (gemm->type != TG_TYPE_FP32 && gemm->type != TG_TYPE_FP64)
        return "its CBLAS multiplies fp32 and fp64 only";
    if (exceeds_int(gemm->m) || exceeds_int(gemm->n) || exceeds_int(gemm->k) ||
        exceeds_int(gemm->lda) || exceeds_int(gemm->ldb) || exceeds_int(gemm->ldd))
        return "its CBLAS takes sizes up to 2147483647 only";
    return cli_explain_blas_epilogue(gemm);
}

/* Returns 1 if the library's own batch takes the entries: they follow one another, and its
 * distances are ints. */
static int has_batch(const cli_peer *peer, const peer_gemm *gemm)
{
    return gemm->batch_count > 1 && peer->sgemm_batch && peer->dgemm_batch && gemm->batch_a > 0 &&
           gemm->batch_b > 0 && gemm->batch_d > 0 && !exceeds_int(gemm->batch_a) &&
           !exceeds_int(gemm->batch_b) && !exceeds_int(gemm->batch_d) &&
           !exceeds_int(gemm->batch_count);
}

int cli_run_cblas(const cli_peer *peer, const peer_gemm *gemm, void *state,
                  const tg_buffers *operands)
{
    (void)state;
    const int transpose_a = gemm->is_a_transposed ? cblas_transpose : cblas_no_transpose;
    const int transpose_b = gemm->is_b_transposed ? cblas_transpose : cblas_no_transpose;
    const int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k;
    const int lda = (int)gemm->lda, ldb = (int)gemm->ldb, ldd = (int)gemm->ldd;
    const int batch_a = (int)gemm->batch_a, batch_b = (int)gemm->batch_b;
    const int batch_d = (int)gemm->batch_d, batch_count = (int)gemm->batch_count;
    const int is_batch = has_batch(peer, gemm);
    const double *a64 = operands->a, *b64 = operands->b;
    const float *a32 = operands->a, *b32 = operands->b;
    double *d64 = operands->d;
    float *d32 = operands->d;
    if (is_batch && gemm->type == TG_TYPE_FP64)
        peer->dgemm_batch(cblas_row_major, transpose_a, transpose_b, m, n, k, gemm->alpha, a64, lda,
                          batch_a, b64, ldb, batch_b, 0.0, d64, ldd, batch_d, batch_count);
    else if (is_batch)
        peer->sgemm_batch(cblas_row_major, transpose_a, transpose_b, m, n, k, (float)gemm->alpha,
                          a32, lda, batch_a, b32, ldb, batch_b, 0.0F, d32, ldd, batch_d,
                          batch_count);
    for (int64_t entry = 0; entry < gemm->batch_count && !is_batch; entry++) {
        const int64_t at_a = entry * gemm->batch_a, at_b = entry * gemm->batch_b;
        const int64_t at_d = entry * gemm->batch_d;
        if (gemm->type == TG_TYPE_FP64)
            peer->dgemm(cblas_row_major, transpose_a, transpose_b, m, n, k, gemm->alpha, a64 + at_a,
                        lda, b64 + at_b, ldb, 0.0, d64 + at_d, ldd);
        else
            peer->sgemm(cblas_row_major, transpose_a, transpose_b, m, n, k, (float)gemm->alpha,
                        a32 + at_a, lda, b32 + at_b, ldb, 0.0F, d32 + at_d, ldd);
    }
    return 1;
}
