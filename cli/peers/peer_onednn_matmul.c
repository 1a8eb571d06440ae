/*
 * oneDNN's matmul primitive on plain row-major memory, fp32 and bf16. Its structs come from
 * oneDNN 2's header at build time, its functions from dlsym.
 */
#include "peers/peer.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

/* The functions of the primitive, with the types of the header. */
#define ONEDNN_FUNCTIONS(row)                                                                      \
    row(dnnl_engine_create) row(dnnl_engine_destroy) row(dnnl_stream_create)                       \
        row(dnnl_stream_destroy) row(dnnl_stream_wait) row(dnnl_memory_desc_init_by_strides)       \
            row(dnnl_memory_create) row(dnnl_memory_destroy) row(dnnl_memory_set_data_handle)      \
                row(dnnl_matmul_desc_init) row(dnnl_primitive_desc_create)                         \
                    row(dnnl_primitive_desc_destroy) row(dnnl_primitive_create)                    \
                        row(dnnl_primitive_destroy) row(dnnl_primitive_execute)

static struct {
#define DECLARE_FUNCTION(name) __typeof__(name) *name;
    ONEDNN_FUNCTIONS(DECLARE_FUNCTION)
#undef DECLARE_FUNCTION
} dnnl;

/* A matmul with the memory that it reads and writes. */
typedef struct matmul {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[3]; /* A, B, D */
    const void *data[3];     /* current pointers of the arguments */
} matmul;

int cli_bind_onednn(cli_peer *peer)
{
    if (!cli_bind_onednn_version(peer))
        return 0;
    if (peer->version_major != DNNL_VERSION_MAJOR) {
        snprintf(peer->reason, sizeof peer->reason,
                 "library version %d, but built with the header of version %d; %s",
                 peer->version_major, DNNL_VERSION_MAJOR, peer->remedy);
        return 0;
    }
#define BIND_FUNCTION(name)                                                                        \
    dnnl.name = (__typeof__(name) *)dlsym(peer->handle, #name);                                    \
    if (!dnnl.name) {                                                                              \
        snprintf(peer->reason, sizeof peer->reason, "the library has no " #name);                  \
        return 0;                                                                                  \
    }
    ONEDNN_FUNCTIONS(BIND_FUNCTION)
#undef BIND_FUNCTION
    return 1;
}

const char *cli_explain_onednn(const peer_gemm *gemm)
{
    if (gemm->type != TG_TYPE_FP32 && gemm->type != TG_TYPE_BF16)
        return "its CPU matmul multiplies fp32 and bf16 only";
    if (gemm->alpha != 1.0)
        return "its matmul is measured with alpha = 1 only";
    return NULL;
}

static dnnl_data_type_t find_type(tg_type type)
{
    return type == TG_TYPE_FP32 ? dnnl_f32 : dnnl_bf16;
}

static int describe_matrix(dnnl_memory_desc_t *description, tg_type type, int64_t rows,
                           int64_t cols, int is_transposed, int64_t leading)
{
    const dnnl_dims_t sizes = {rows, cols};
    const dnnl_dims_t strides = {is_transposed ? 1 : leading, is_transposed ? leading : 1};
    return dnnl.dnnl_memory_desc_init_by_strides(description, 2, sizes, find_type(type), strides) ==
           dnnl_success;
}

static int create_matmul(matmul *made, const peer_gemm *gemm)
{
    static const int roles[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    dnnl_memory_desc_t matrices[3];
    dnnl_matmul_desc_t operation;
    dnnl_primitive_desc_t choice = NULL;
    if (!describe_matrix(&matrices[0], gemm->type, gemm->m, gemm->k, gemm->is_a_transposed,
                         gemm->lda) ||
        !describe_matrix(&matrices[1], gemm->type, gemm->k, gemm->n, gemm->is_b_transposed,
                         gemm->ldb) ||
        !describe_matrix(&matrices[2], gemm->d_type, gemm->m, gemm->n, 0, gemm->ldd))
        return 0;
    if (dnnl.dnnl_engine_create(&made->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl.dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags) !=
            dnnl_success)
        return 0;
    for (int i = 0; i < 3; i++) {
        made->args[i].arg = roles[i];
        if (dnnl.dnnl_memory_create(&made->args[i].memory, &matrices[i], made->engine,
                                    DNNL_MEMORY_NONE) != dnnl_success)
            return 0;
    }
    if (dnnl.dnnl_matmul_desc_init(&operation, &matrices[0], &matrices[1], NULL, &matrices[2]) !=
            dnnl_success ||
        dnnl.dnnl_primitive_desc_create(&choice, &operation, NULL, made->engine, NULL) !=
            dnnl_success)
        return 0;
    int is_made = dnnl.dnnl_primitive_create(&made->primitive, choice) == dnnl_success;
    dnnl.dnnl_primitive_desc_destroy(choice);
    return is_made;
}

int cli_prepare_onednn(const cli_peer *peer, const peer_gemm *gemm, void **state)
{
    (void)peer;
    matmul *made = calloc(1, sizeof *made);
    if (!made)
        return 0;
    if (!create_matmul(made, gemm)) {
        cli_release_onednn(made);
        return 0;
    }
    *state = made;
    return 1;
}

int cli_run_onednn(const cli_peer *peer, const peer_gemm *gemm, void *state, const void *a,
                   const void *b, void *d)
{
    (void)peer;
    (void)gemm;
    matmul *made = state;
    const void *data[3] = {a, b, d};
    for (int i = 0; i < 3; i++) {
        if (made->data[i] == data[i])
            continue;
        if (dnnl.dnnl_memory_set_data_handle(made->args[i].memory, (void *)(uintptr_t)data[i]) !=
            dnnl_success)
            return 0;
        made->data[i] = data[i];
    }
    return dnnl.dnnl_primitive_execute(made->primitive, made->stream, 3, made->args) ==
               dnnl_success &&
           dnnl.dnnl_stream_wait(made->stream) == dnnl_success;
}

void cli_release_onednn(void *state)
{
    matmul *made = state;
    if (made->primitive)
        dnnl.dnnl_primitive_destroy(made->primitive);
    for (int i = 0; i < 3; i++) {
        if (made->args[i].memory)
            dnnl.dnnl_memory_destroy(made->args[i].memory);
    }
    if (made->stream)
        dnnl.dnnl_stream_destroy(made->stream);
    if (made->engine)
        dnnl.dnnl_engine_destroy(made->engine);
    free(made);
}
