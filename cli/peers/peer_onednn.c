/*
 * Calls oneDNN's sgemm, and has the functions that oneDNN's two ways share. They are declared here,
 * so the build needs no header.
 */
#include "peers/peer.h"

#include <dlfcn.h>
#include <stdio.h>

typedef int (*onednn_sgemm)(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k,
                            float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                            float beta, float *c, int64_t ldc);

/* The head of oneDNN's version struct; all versions share it. */
typedef struct onednn_version {
    int major, minor, patch;
} onednn_version;

static onednn_sgemm run_sgemm;

int cli_bind_onednn_version(cli_peer *peer)
{
    const onednn_version *(*get_version)(void) =
        (const onednn_version *(*)(void))cli_find_function(peer, "dnnl_version");
    if (!get_version)
        return 0;
    /* oneDNN runs on OpenMP threads, so the run-time sets their number. */
    peer->thread_symbol = cli_find_function(peer, "omp_set_num_threads");
    if (!peer->thread_symbol)
        return 0;
    const onednn_version *version = get_version();
    peer->version_major = version->major;
    snprintf(peer->version, sizeof peer->version, "oneDNN %d.%d.%d", version->major, version->minor,
             version->patch);
    cli_find_symbol_path((const void *)get_version, peer->path);
    int (*get_isa)(void) = (int (*)(void))dlsym(peer->handle, "dnnl_get_effective_cpu_isa");
    if (get_isa)
        snprintf(peer->kernel, sizeof peer->kernel, "dnnl_cpu_isa_t 0x%x", (unsigned)get_isa());
    return 1;
}

int cli_bind_onednn_sgemm(cli_peer *peer)
{
    if (!cli_bind_onednn_version(peer))
        return 0;
    run_sgemm = (onednn_sgemm)cli_find_function(peer, "dnnl_sgemm");
    return run_sgemm != NULL;
}

const char *cli_explain_onednn_sgemm(const peer_gemm *gemm)
{
    return gemm->type == TG_TYPE_FP32 ? cli_explain_blas_epilogue(gemm)
                                      : "dnnl_sgemm multiplies fp32 only";
}

int cli_run_onednn_sgemm(const cli_peer *peer, const peer_gemm *gemm, void *state,
                         const tg_buffers *operands)
{
    const float *a = operands->a, *b = operands->b;
    float *d = operands->d;
    int error = 0;
    (void)peer;
    (void)state;
    for (int64_t entry = 0; entry < gemm->batch_count && !error; entry++)
        error = run_sgemm(gemm->is_a_transposed ? 'T' : 'N', gemm->is_b_transposed ? 'T' : 'N',
                          gemm->m, gemm->n, gemm->k, (float)gemm->alpha, a + entry * gemm->batch_a,
                          gemm->lda, b + entry * gemm->batch_b, gemm->ldb, 0.0F,
                          d + entry * gemm->batch_d, gemm->ldd);
    return error == 0;
}

#ifndef TG_HAVE_ONEDNN_HEADER
int cli_bind_onednn(cli_peer *peer)
{
    snprintf(peer->reason, sizeof peer->reason,
             "its matmul (fp32, bf16) needs oneDNN's header when tilegemm is built: apt-get "
             "install libdnnl-dev and build again");
    return 0;
}
#endif
