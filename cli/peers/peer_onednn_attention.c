/*
 * Computes attention by three of oneDNN's primitives, which has none of its own for the CPU: a
 * product with a scale and a mask, a softmax, a product. The peer is bound by its matmul.
 */
#include "peers/peer.h"
#include "peers/peer_onednn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { part_q, part_k, part_v, part_d, part_scores, part_weights, part_mask, part_count };
enum { step_scores, step_softmax, step_product, step_count };

/* The primitives of one attention, their memory and its contents. */
typedef struct onednn_attention {
    const tg_attention *attention;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_desc_t shapes[part_count];
    dnnl_memory_t parts[part_count];
    dnnl_primitive_t steps[step_count];
    float *scores, *mask; /* owned; the mask is -Inf where a key is hidden */
    void *weights;        /* owned, or the scores */
} onednn_attention;

/* The query heads of a group are rows of one matrix, and the matrices of all batch entries lie at
 * even distances. With a first dimension of 1 and one for all of these oneDNN adds the mask in its
 * fast kernels, with any other order in its reference. */
static int64_t count_group_rows(const tg_attention *a)
{
    return a->head_count / a->kv_head_count * a->m;
}

static int is_even(const tg_attention *a, const tg_heads *heads, int64_t head_count)
{
    return heads->element_stride == 1 && heads->row_stride > 0 && heads->head_stride > 0 &&
           (a->batch_count == 1 || heads->batch_stride == head_count * heads->head_stride) &&
           (head_count == a->kv_head_count || heads->head_stride == a->m * heads->row_stride);
}

const char *cli_explain_onednn_attention(const tg_attention *a)
{
    if (a->type != TG_TYPE_FP32 && a->type != TG_TYPE_BF16)
        return "its CPU matmul multiplies fp32 and bf16 only";
    if (a->has_bias || a->has_slopes || a->soft_cap > 0 || a->has_log_sum_exp ||
        a->keys_before >= 0 || a->keys_after >= 0)
        return "it is measured without bias, slopes, soft cap, window and log_sum_exp";
    if (a->causal == TG_CAUSAL_BOTTOM_RIGHT && a->m > a->n)
        return "its softmax of a row without keys is NaN";
    if (!is_even(a, &a->q, a->head_count) || !is_even(a, &a->d, a->head_count) ||
        !is_even(a, &a->k, a->kv_head_count) || !is_even(a, &a->v, a->kv_head_count))
        return "it is measured on heads and batch entries at even distances, and on grouped heads "
               "without gaps";
    return NULL;
}

/* Describes a matrix of each head of keys, rows x cols. */
static int describe(onednn_attention *made, int part, dnnl_data_type_t type,
                    const dnnl_dims_t sizes, const dnnl_dims_t strides, void *data)
{
    return cli_onednn.dnnl_memory_desc_init_by_strides(&made->shapes[part], 4, sizes, type,
                                                       strides) == dnnl_success &&
           cli_onednn.dnnl_memory_create(&made->parts[part], &made->shapes[part], made->engine,
                                         data) == dnnl_success;
}

static int describe_all(onednn_attention *made)
{
    const tg_attention *a = made->attention;
    const int64_t heads = a->batch_count * a->kv_head_count, n = a->n;
    const int64_t rows = count_group_rows(a), group = a->head_count / a->kv_head_count;
    const int64_t count = heads * rows * n;
    const dnnl_data_type_t type = a->type == TG_TYPE_FP32 ? dnnl_f32 : dnnl_bf16;
    const tg_heads *q = &a->q, *k = &a->k, *v = &a->v, *d = &a->d;
    const struct {
        dnnl_data_type_t type;
        dnnl_dims_t sizes, strides;
        void *data;
    } parts[part_count] = {
        [part_q] = {type,
                    {1, heads, rows, a->head_size},
                    {heads * group * q->head_stride, group * q->head_stride, q->row_stride, 1},
                    q->data},
        [part_k] = {type,
                    {1, heads, a->head_size, n},
                    {heads * k->head_stride, k->head_stride, 1, k->row_stride},
                    k->data},
        [part_v] = {type,
                    {1, heads, n, a->v_head_size},
                    {heads * v->head_stride, v->head_stride, v->row_stride, 1},
                    v->data},
        [part_d] = {type,
                    {1, heads, rows, a->v_head_size},
                    {heads * group * d->head_stride, group * d->head_stride, d->row_stride, 1},
                    d->data},
        [part_scores] = {dnnl_f32, {1, heads, rows, n}, {count, rows * n, n, 1}, made->scores},
        [part_weights] = {type, {1, heads, rows, n}, {count, rows * n, n, 1}, made->weights},
        [part_mask] = {dnnl_f32, {1, 1, rows, n}, {rows * n, rows * n, n, 1}, made->mask},
    };
    for (int i = 0; i < part_count; i++) {
        if (parts[i].data &&
            !describe(made, i, parts[i].type, parts[i].sizes, parts[i].strides, parts[i].data))
            return 0;
    }
    return 1;
}

/* Allocates the scores, the weights and the mask. Returns 0 if they do not fit. */
static int make_scores(onednn_attention *made, double free_bytes)
{
    const tg_attention *a = made->attention;
    const int64_t rows = count_group_rows(a), n = a->n;
    const int64_t count = a->batch_count * a->kv_head_count * rows * n;
    if (8.0 * (double)count > 0.9 * free_bytes)
        return 0;
    made->scores = aligned_alloc(64, (size_t)(count * 4 + 63) / 64 * 64);
    made->weights = made->scores;
    if (a->type != TG_TYPE_FP32)
        made->weights = aligned_alloc(64, (size_t)(count * 2 + 63) / 64 * 64);
    if (a->causal != TG_CAUSAL_NONE)
        made->mask = malloc(sizeof *made->mask * (size_t)(rows * n));
    const int64_t shift = a->causal == TG_CAUSAL_BOTTOM_RIGHT ? n - a->m : 0;
    for (int64_t i = 0; i < rows && made->mask; i++) {
        for (int64_t j = 0; j < n; j++)
            made->mask[i * n + j] = j <= i % a->m + shift ? 0.0F : -INFINITY;
    }
    return made->scores && made->weights && (made->mask || a->causal == TG_CAUSAL_NONE);
}

/* Makes a primitive from its description, with attributes or NULL. */
static int make_step(onednn_attention *made, int step, const void *operation,
                     dnnl_primitive_attr_t attributes)
{
    dnnl_primitive_desc_t choice = NULL;
    if (cli_onednn.dnnl_primitive_desc_create(&choice, operation, attributes, made->engine, NULL) !=
        dnnl_success)
        return 0;
    const int is_made =
        cli_onednn.dnnl_primitive_create(&made->steps[step], choice) == dnnl_success;
    cli_onednn.dnnl_primitive_desc_destroy(choice);
    return is_made;
}

/* The first product is scaled, then the mask is added. */
static int make_first_product(onednn_attention *made)
{
    const float scale = (float)made->attention->scale;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t post_ops = NULL;
    dnnl_matmul_desc_t product;
    int is_made =
        cli_onednn.dnnl_primitive_attr_create(&attributes) == dnnl_success &&
        cli_onednn.dnnl_post_ops_create(&post_ops) == dnnl_success &&
        cli_onednn.dnnl_primitive_attr_set_output_scales(attributes, 1, 0, &scale) == dnnl_success;
    if (is_made && made->mask)
        is_made = cli_onednn.dnnl_post_ops_append_binary(post_ops, dnnl_binary_add,
                                                         &made->shapes[part_mask]) == dnnl_success;
    is_made =
        is_made &&
        cli_onednn.dnnl_primitive_attr_set_post_ops(attributes, post_ops) == dnnl_success &&
        cli_onednn.dnnl_matmul_desc_init(&product, &made->shapes[part_q], &made->shapes[part_k],
                                         NULL, &made->shapes[part_scores]) == dnnl_success &&
        make_step(made, step_scores, &product, attributes);
    if (post_ops)
        cli_onednn.dnnl_post_ops_destroy(post_ops);
    if (attributes)
        cli_onednn.dnnl_primitive_attr_destroy(attributes);
    return is_made;
}

static int make_steps(onednn_attention *made)
{
    const dnnl_memory_desc_t *shapes = made->shapes;
    dnnl_softmax_v2_desc_t softmax;
    dnnl_matmul_desc_t product;
    return cli_onednn.dnnl_engine_create(&made->engine, dnnl_cpu, 0) == dnnl_success &&
           cli_onednn.dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags) ==
               dnnl_success &&
           describe_all(made) && make_first_product(made) &&
           cli_onednn.dnnl_softmax_v2_forward_desc_init(&softmax, dnnl_forward_inference,
                                                        dnnl_softmax_accurate, &shapes[part_scores],
                                                        &shapes[part_weights], 3) == dnnl_success &&
           make_step(made, step_softmax, &softmax, NULL) &&
           cli_onednn.dnnl_matmul_desc_init(&product, &shapes[part_weights], &shapes[part_v], NULL,
                                            &shapes[part_d]) == dnnl_success &&
           make_step(made, step_product, &product, NULL);
}

int cli_prepare_onednn_attention(const cli_peer *peer, const tg_attention *attention, void **state,
                                 char *reason)
{
    onednn_attention *made = calloc(1, sizeof *made);
    if (!made) {
        snprintf(reason, PEER_TEXT_BYTES, "out of memory");
        return 0;
    }
    made->attention = attention;
    const int has_scores = make_scores(made, peer->free_bytes);
    if (!has_scores || !make_steps(made)) {
        snprintf(reason, PEER_TEXT_BYTES, "%s",
                 has_scores ? "the library refuses to prepare this shape"
                            : "its scores do not fit in the free memory");
        cli_release_onednn_attention(made);
        return 0;
    }
    *state = made;
    return 1;
}

static int run_step(const onednn_attention *made, int step, int arg_count,
                    const dnnl_exec_arg_t *args)
{
    return cli_onednn.dnnl_primitive_execute(made->steps[step], made->stream, arg_count, args) ==
           dnnl_success;
}

int cli_run_onednn_attention(void *state, void *stream)
{
    const onednn_attention *made = state;
    const dnnl_memory_t *parts = made->parts;
    (void)stream;
    const dnnl_exec_arg_t scores[] = {
        {DNNL_ARG_SRC, parts[part_q]},
        {DNNL_ARG_WEIGHTS, parts[part_k]},
        {DNNL_ARG_DST, parts[part_scores]},
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, parts[part_mask]}};
    const dnnl_exec_arg_t softmax[] = {{DNNL_ARG_SRC, parts[part_scores]},
                                       {DNNL_ARG_DST, parts[part_weights]}};
    const dnnl_exec_arg_t product[] = {{DNNL_ARG_SRC, parts[part_weights]},
                                       {DNNL_ARG_WEIGHTS, parts[part_v]},
                                       {DNNL_ARG_DST, parts[part_d]}};
    return run_step(made, step_scores, made->mask ? 4 : 3, scores) &&
           run_step(made, step_softmax, 2, softmax) && run_step(made, step_product, 3, product) &&
           cli_onednn.dnnl_stream_wait(made->stream) == dnnl_success;
}

void cli_release_onednn_attention(void *state)
{
    onednn_attention *made = state;
    for (int i = 0; i < step_count; i++) {
        if (made->steps[i])
            cli_onednn.dnnl_primitive_destroy(made->steps[i]);
    }
    for (int i = 0; i < part_count; i++) {
        if (made->parts[i])
            cli_onednn.dnnl_memory_destroy(made->parts[i]);
    }
    if (made->stream)
        cli_onednn.dnnl_stream_destroy(made->stream);
    if (made->engine)
        cli_onednn.dnnl_engine_destroy(made->engine);
    if (made->weights != made->scores)
        free(made->weights);
    free(made->scores);
    free(made->mask);
    free(made);
}
