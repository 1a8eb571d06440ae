/*
 * Makes attention a graph of cuDNN's operations: a product, the softmax in parts, a product.
 */
#include "peers/peer_cudnn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { axis_m = 2, axis_n = 3 };

typedef struct cudnn_attention {
    cudnn_graph graph;
    const tg_attention *attention;
    float scale, hidden_score; /* scalars of the graph, read at each run */
    int32_t m, n;
} cudnn_attention;

static int has_simple_strides(const tg_heads *heads)
{
    return heads->element_stride == 1 && heads->row_stride > 0 && heads->row_stride % 8 == 0 &&
           heads->head_stride > 0 && heads->head_stride % 8 == 0 && heads->batch_stride > 0 &&
           heads->batch_stride % 8 == 0;
}

const char *cli_explain_cudnn(const tg_attention *a)
{
    if (a->type != TG_TYPE_BF16 && a->type != TG_TYPE_FP16)
        return "its attention takes bf16 and fp16 only";
    if (a->has_bias || a->has_slopes || a->soft_cap > 0 || a->keys_before >= 0 ||
        a->keys_after >= 0)
        return "it is measured without bias, slopes, soft cap and window";
    if (a->head_size % 8 != 0 || a->v_head_size % 8 != 0 || a->head_size > 256 ||
        a->v_head_size > 256)
        return "its attention takes head sizes that are multiples of 8, up to 256";
    if (a->causal == TG_CAUSAL_BOTTOM_RIGHT && a->m > a->n)
        return "its bottom-right mask takes no more queries than keys";
    if (!has_simple_strides(&a->q) || !has_simple_strides(&a->k) || !has_simple_strides(&a->v) ||
        !has_simple_strides(&a->d))
        return "it is measured with an element stride of 1, and other strides that are positive "
               "multiples of 8";
    return NULL;
}

/* Makes the tensor of an operand: rows x cols of each head, or the transpose of that. */
static void *make_operand(cudnn_attention *made, const tg_heads *heads, int64_t head_count,
                          int64_t rows, int64_t cols, int is_transposed)
{
    const tg_attention *a = made->attention;
    const cudnn_tensor tensor = {.type = a->type == TG_TYPE_BF16 ? cudnn_bf16 : cudnn_fp16,
                                 .sizes = {a->batch_count, head_count, is_transposed ? cols : rows,
                                           is_transposed ? rows : cols},
                                 .strides = {heads->batch_stride, heads->head_stride,
                                             is_transposed ? 1 : heads->row_stride,
                                             is_transposed ? heads->row_stride : 1},
                                 .data = heads->data};
    return cli_make_cudnn_tensor(&made->graph, &tensor);
}

static void *make_scalar(cudnn_attention *made, int type, void *data)
{
    const cudnn_tensor tensor = {type, 1, {1, 1, 1, 1}, {1, 1, 1, 1}, data};
    return cli_make_cudnn_tensor(&made->graph, &tensor);
}

/* Makes a tensor between operations: n values for each query, or one. */
static void *make_rows(cudnn_attention *made, int type, int64_t n)
{
    const tg_attention *a = made->attention;
    const cudnn_tensor tensor = {.type = type,
                                 .sizes = {a->batch_count, a->head_count, a->m, n},
                                 .strides = {a->head_count * a->m * n, a->m * n, n, 1}};
    return cli_make_cudnn_tensor(&made->graph, &tensor);
}

/* Returns mode(x, b, t), computed and kept in `type`. */
static void *apply(cudnn_attention *made, int mode, int type, void *x, void *b, void *t)
{
    void *y = make_rows(made, type, made->attention->n);
    cli_add_cudnn_pointwise(
        &made->graph,
        &(cudnn_pointwise){.mode = mode, .precision = type, .x = x, .b = b, .t = t, .y = y});
    return y;
}

/* Returns the index along an axis of each score. */
static void *make_index(cudnn_attention *made, int64_t axis, void *scores)
{
    void *index = make_rows(made, cudnn_int32, made->attention->n);
    cli_add_cudnn_pointwise(
        &made->graph,
        &(cudnn_pointwise){
            .mode = cudnn_index, .precision = cudnn_fp32, .axis = axis, .x = scores, .y = index});
    return index;
}

/* Hides the scores of keys behind their query, whose place is m's index, + n - m from the bottom
 * right. */
static void *add_causal_mask(cudnn_attention *made, void *scores)
{
    const tg_attention *a = made->attention;
    void *query = make_index(made, axis_m, scores);
    void *key = make_index(made, axis_n, scores);
    if (a->causal == TG_CAUSAL_BOTTOM_RIGHT && a->m != a->n) {
        void *n = make_scalar(made, cudnn_int32, &made->n);
        query = apply(made, cudnn_add, cudnn_int32, query, n, NULL);
        void *m = make_scalar(made, cudnn_int32, &made->m);
        query = apply(made, cudnn_sub, cudnn_int32, query, m, NULL);
    }
    void *is_seen = apply(made, cudnn_greater_equal, cudnn_boolean, query, key, NULL);
    void *hidden_score = make_scalar(made, cudnn_fp32, &made->hidden_score);
    return apply(made, cudnn_select, cudnn_fp32, scores, hidden_score, is_seen);
}

/* Adds log_sum_exp = largest + log sum. The engines know only the pattern that has it, and leave it
 * out if nobody reads it. */
static void add_log_sum_exp(cudnn_attention *made, void *largest, void *sum)
{
    const tg_attention *a = made->attention;
    const tg_heads *heads = &a->log_sum_exp;
    const cudnn_tensor tensor = {
        .type = cudnn_fp32,
        .sizes = {a->batch_count, a->head_count, a->m, 1},
        .strides = {heads->batch_stride, heads->head_stride, heads->row_stride, 1},
        .data = heads->data};
    void *logarithm = make_rows(made, cudnn_fp32, 1);
    cli_add_cudnn_pointwise(
        &made->graph,
        &(cudnn_pointwise){.mode = cudnn_log, .precision = cudnn_fp32, .x = sum, .y = logarithm});
    void *log_sum_exp = a->has_log_sum_exp ? cli_make_cudnn_tensor(&made->graph, &tensor)
                                           : make_rows(made, cudnn_fp32, 1);
    cli_add_cudnn_pointwise(&made->graph, &(cudnn_pointwise){.mode = cudnn_add,
                                                             .precision = cudnn_fp32,
                                                             .x = largest,
                                                             .b = logarithm,
                                                             .y = log_sum_exp});
}

/* Returns the weights in the type of V, as cuDNN's second product takes them. */
static void *add_softmax(cudnn_attention *made, void *scores, int weight_type)
{
    cudnn_graph *graph = &made->graph;
    void *largest = make_rows(made, cudnn_fp32, 1);
    cli_add_cudnn_reduction(graph, cudnn_reduce_max, scores, largest);
    void *below = apply(made, cudnn_sub, cudnn_fp32, scores, largest, NULL);
    void *powers = apply(made, cudnn_exp, cudnn_fp32, below, NULL, NULL);
    void *sum = make_rows(made, cudnn_fp32, 1);
    cli_add_cudnn_reduction(graph, cudnn_reduce_add, powers, sum);
    add_log_sum_exp(made, largest, sum);
    void *weights = make_rows(made, weight_type, made->attention->n);
    cli_add_cudnn_pointwise(
        graph,
        &(cudnn_pointwise){
            .mode = cudnn_div, .precision = cudnn_fp32, .x = powers, .b = sum, .y = weights});
    return weights;
}

static int make_graph(cudnn_attention *made)
{
    const tg_attention *a = made->attention;
    cudnn_graph *graph = &made->graph;
    void *q = make_operand(made, &a->q, a->head_count, a->m, a->head_size, 0);
    void *k = make_operand(made, &a->k, a->kv_head_count, a->n, a->head_size, 1);
    void *scores = make_rows(made, cudnn_fp32, a->n);
    cli_add_cudnn_product(graph, q, k, scores);
    void *scale = make_scalar(made, cudnn_fp32, &made->scale);
    scores = apply(made, cudnn_mul, cudnn_fp32, scores, scale, NULL);
    if (a->causal != TG_CAUSAL_NONE)
        scores = add_causal_mask(made, scores);
    void *weights = add_softmax(made, scores, a->type == TG_TYPE_BF16 ? cudnn_bf16 : cudnn_fp16);
    void *v = make_operand(made, &a->v, a->kv_head_count, a->n, a->v_head_size, 0);
    void *d = make_operand(made, &a->d, a->head_count, a->m, a->v_head_size, 0);
    cli_add_cudnn_product(graph, weights, v, d);
    return cli_plan_cudnn_graph(graph);
}

int cli_prepare_cudnn(const cli_peer *peer, const tg_attention *attention, void **state,
                      char *reason)
{
    cudnn_attention *made = calloc(1, sizeof *made);
    if (!made) {
        snprintf(reason, PEER_TEXT_BYTES, "out of memory");
        return 0;
    }
    made->attention = attention;
    made->scale = (float)attention->scale;
    made->hidden_score = -INFINITY;
    made->m = (int32_t)attention->m;
    made->n = (int32_t)attention->n;
    cli_start_cudnn_graph(&made->graph, peer->context);
    if (!make_graph(made)) {
        snprintf(reason, PEER_TEXT_BYTES, "%s", made->graph.error);
        cli_release_cudnn(made);
        return 0;
    }
    *state = made;
    return 1;
}

int cli_run_cudnn(void *state, void *stream)
{
    const cudnn_attention *made = state;
    return cli_run_cudnn_graph(&made->graph, stream);
}

void cli_release_cudnn(void *state)
{
    cudnn_attention *made = state;
    cli_free_cudnn_graph(&made->graph);
    free(made);
}
