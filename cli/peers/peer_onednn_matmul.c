/*
 * Calls oneDNN's matmul primitive on plain row-major memory, fp32 and bf16, with a batch, a bias
 * and operations after it. Its structs come from oneDNN 2's header at build time, its functions
 * from dlsym.
 */
#include "peers/peer.h"
#include "peers/peer_onednn.h"

#include <stdio.h>
#include <stdlib.h>

onednn_functions cli_onednn;

enum { arg_a, arg_b, arg_d, arg_bias, arg_c, arg_capacity };

/* A matmul with the memory that it reads and writes. An argument that it lacks has role 0. */
typedef struct matmul {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_primitive_attr_t attributes;
    dnnl_post_ops_t post_ops;
    dnnl_memory_desc_t matrices[arg_capacity];
    dnnl_exec_arg_t args[arg_capacity], used[arg_capacity];
    const void *data[arg_capacity]; /* current pointers of the arguments */
    int used_count;
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
    cli_onednn.name = (__typeof__(name) *)cli_find_function(peer, #name);                          \
    if (!cli_onednn.name)                                                                          \
        return 0;
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
    if (gemm->beta != 0.0 && gemm->beta != 1.0)
        return "its matmul adds a C with beta = 1 only";
    return NULL;
}

static dnnl_data_type_t find_type(tg_type type)
{
    return type == TG_TYPE_FP32 ? dnnl_f32 : dnnl_bf16;
}

/* Describes a rows x cols matrix of each entry, rows `leading` elements apart if it is not
 * transposed. */
static int describe_matrix(dnnl_memory_desc_t *description, const peer_gemm *gemm, tg_type type,
                           const dnnl_dims_t sizes, const dnnl_dims_t strides)
{
    const int is_batch = gemm->batch_count > 1;
    return cli_onednn.dnnl_memory_desc_init_by_strides(
               description, is_batch ? 3 : 2, is_batch ? sizes : sizes + 1, find_type(type),
               is_batch ? strides : strides + 1) == dnnl_success;
}

static int describe_all(matmul *made, const peer_gemm *gemm)
{
    const int64_t count = gemm->batch_count, m = gemm->m, n = gemm->n, k = gemm->k;
    const int is_row = gemm->bias == TG_BIAS_ROW;
    const int is_a_t = gemm->is_a_transposed, is_b_t = gemm->is_b_transposed;
    const struct {
        tg_type type;
        dnnl_dims_t sizes, strides;
        int role;
    } rows[arg_capacity] = {
        [arg_a] = {gemm->type,
                   {count, m, k},
                   {gemm->batch_a, is_a_t ? 1 : gemm->lda, is_a_t ? gemm->lda : 1},
                   DNNL_ARG_SRC},
        [arg_b] = {gemm->type,
                   {count, k, n},
                   {gemm->batch_b, is_b_t ? 1 : gemm->ldb, is_b_t ? gemm->ldb : 1},
                   DNNL_ARG_WEIGHTS},
        [arg_d] = {gemm->d_type, {count, m, n}, {gemm->batch_d, gemm->ldd, 1}, DNNL_ARG_DST},
        [arg_bias] = {gemm->d_type,
                      {1, is_row ? m : 1, is_row ? 1 : n},
                      {is_row ? m : n, is_row ? 1 : n, 1},
                      gemm->bias ? DNNL_ARG_BIAS : 0},
        [arg_c] = {gemm->d_type,
                   {count, m, n},
                   {gemm->batch_c, gemm->ldc, 1},
                   gemm->beta != 0.0 ? DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1 : 0},
    };
    for (int i = 0; i < arg_capacity; i++) {
        made->args[i].arg = rows[i].role;
        if (rows[i].role &&
            (!describe_matrix(&made->matrices[i], gemm, rows[i].type, rows[i].sizes,
                              rows[i].strides) ||
             cli_onednn.dnnl_memory_create(&made->args[i].memory, &made->matrices[i], made->engine,
                                           DNNL_MEMORY_NONE)))
            return 0;
    }
    return 1;
}

/* C is added, then the activation is applied. */
static int make_post_ops(matmul *made, const peer_gemm *gemm)
{
    static const dnnl_alg_kind_t kinds[] = {[TG_ACTIVATION_RELU] = dnnl_eltwise_relu,
                                            [TG_ACTIVATION_GELU_ERF] = dnnl_eltwise_gelu_erf,
                                            [TG_ACTIVATION_GELU_TANH] = dnnl_eltwise_gelu_tanh,
                                            [TG_ACTIVATION_SILU] = dnnl_eltwise_swish};
    const float slope = gemm->activation == TG_ACTIVATION_SILU ? 1.0F : 0.0F;
    int error = cli_onednn.dnnl_primitive_attr_create(&made->attributes) ||
                cli_onednn.dnnl_post_ops_create(&made->post_ops);
    if (!error && gemm->beta != 0.0)
        error = cli_onednn.dnnl_post_ops_append_binary(made->post_ops, dnnl_binary_add,
                                                       &made->matrices[arg_c]);
    if (!error && gemm->activation != TG_ACTIVATION_NONE)
        error = cli_onednn.dnnl_post_ops_append_eltwise(made->post_ops, 1.0F,
                                                        kinds[gemm->activation], slope, 0.0F);
    return !error && !cli_onednn.dnnl_primitive_attr_set_post_ops(made->attributes, made->post_ops);
}

static int create_matmul(matmul *made, const peer_gemm *gemm)
{
    const dnnl_memory_desc_t *matrices = made->matrices;
    dnnl_matmul_desc_t operation;
    dnnl_primitive_desc_t choice = NULL;
    if (cli_onednn.dnnl_engine_create(&made->engine, dnnl_cpu, 0) != dnnl_success ||
        cli_onednn.dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags) !=
            dnnl_success)
        return 0;
    if (!describe_all(made, gemm) || !make_post_ops(made, gemm))
        return 0;
    if (cli_onednn.dnnl_matmul_desc_init(&operation, &matrices[arg_a], &matrices[arg_b],
                                         gemm->bias ? &matrices[arg_bias] : NULL,
                                         &matrices[arg_d]) != dnnl_success ||
        cli_onednn.dnnl_primitive_desc_create(&choice, &operation, made->attributes, made->engine,
                                              NULL) != dnnl_success)
        return 0;
    int is_made = cli_onednn.dnnl_primitive_create(&made->primitive, choice) == dnnl_success;
    cli_onednn.dnnl_primitive_desc_destroy(choice);
    for (int i = 0; i < arg_capacity; i++) {
        if (made->args[i].arg)
            made->used[made->used_count++] = made->args[i];
    }
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

int cli_run_onednn(const cli_peer *peer, const peer_gemm *gemm, void *state,
                   const tg_buffers *operands)
{
    (void)peer;
    (void)gemm;
    matmul *made = state;
    const void *data[arg_capacity] = {[arg_a] = operands->a,
                                      [arg_b] = operands->b,
                                      [arg_d] = operands->d,
                                      [arg_bias] = operands->bias,
                                      [arg_c] = operands->c};
    for (int i = 0; i < arg_capacity; i++) {
        if (!made->args[i].arg || made->data[i] == data[i])
            continue;
        if (cli_onednn.dnnl_memory_set_data_handle(made->args[i].memory,
                                                   (void *)(uintptr_t)data[i]) != dnnl_success)
            return 0;
        made->data[i] = data[i];
    }
    return cli_onednn.dnnl_primitive_execute(made->primitive, made->stream, made->used_count,
                                             made->used) == dnnl_success &&
           cli_onednn.dnnl_stream_wait(made->stream) == dnnl_success;
}

void cli_release_onednn(void *state)
{
    matmul *made = state;
    if (made->primitive)
        cli_onednn.dnnl_primitive_destroy(made->primitive);
    if (made->post_ops)
        cli_onednn.dnnl_post_ops_destroy(made->post_ops);
    if (made->attributes)
        cli_onednn.dnnl_primitive_attr_destroy(made->attributes);
    for (int i = 0; i < arg_capacity; i++) {
        if (made->args[i].memory)
            cli_onednn.dnnl_memory_destroy(made->args[i].memory);
    }
    if (made->stream)
        cli_onednn.dnnl_stream_destroy(made->stream);
    if (made->engine)
        cli_onednn.dnnl_engine_destroy(made->engine);
    free(made);
}
