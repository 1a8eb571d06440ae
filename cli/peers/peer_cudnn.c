#include "peers/peer_cudnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The values of cudnn_graph.h that are in use here: descriptors, */
enum { pointwise_descriptor = 0, config_descriptor = 3, heuristics_descriptor = 4 };
enum { plan_descriptor = 5, pointwise_operation = 13, graph_descriptor = 15 };
enum { pack_descriptor = 16, tensor_descriptor = 17, product_descriptor = 18 };
enum { product_operation = 19, reduction_descriptor = 21, reduction_operation = 22 };
/* their attributes, */
enum { pointwise_mode = 0, pointwise_precision = 1, pointwise_axis = 9 };
enum { heuristics_mode = 200, heuristics_graph = 201, heuristics_results = 202 };
enum { plan_handle = 400, plan_config = 401, plan_workspace_bytes = 402 };
enum { pointwise_kind = 750, pointwise_x = 751, pointwise_b = 752, pointwise_y = 753 };
enum { pointwise_alpha1 = 754, pointwise_alpha2 = 755, pointwise_t = 758 };
enum { graph_handle = 800, graph_operations = 801 };
enum { tensor_alignment = 900, tensor_type = 901, tensor_sizes = 902, tensor_strides = 903 };
enum { tensor_id = 906, tensor_is_virtual = 907, tensor_is_by_value = 908 };
enum { pack_ids = 1000, pack_pointers = 1001, pack_workspace = 1003 };
enum { product_precision = 1500, product_a = 1520, product_b = 1521, product_c = 1522 };
enum { product_kind = 1523, reduction_operator = 1600, reduction_precision = 1601 };
enum { reduction_x = 1610, reduction_y = 1611, reduction_kind = 1612 };
/* the types of attributes, and heuristics. */
enum { of_handle = 0, of_data_type = 1, of_boolean = 2, of_int64 = 3, of_float = 4 };
enum { of_pointer = 6, of_heuristic = 8, of_pointwise_mode = 14, of_descriptor = 15 };
enum { of_reduction = 18, heuristic_fallback = 2, heuristic_a = 3 };

enum { config_capacity = 16 };

static struct {
    size_t (*get_version)(void);
    void (*get_error)(char *text, size_t text_bytes);
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*make)(int kind, void **descriptor);
    int (*free)(void *descriptor);
    int (*set)(void *descriptor, int attribute, int type, int64_t count, const void *values);
    int (*get)(const void *descriptor, int attribute, int type, int64_t capacity, int64_t *count,
               void *values);
    int (*finish)(void *descriptor);
    int (*run)(void *handle, void *plan, void *pack);
} cudnn;

int cli_bind_cudnn(cli_peer *peer)
{
    const struct {
        const char *symbol;
        void *function;
    } functions[] = {
        {"cudnnGetVersion", &cudnn.get_version},
        {"cudnnGetLastErrorString", &cudnn.get_error},
        {"cudnnCreate", &cudnn.create},
        {"cudnnSetStream", &cudnn.set_stream},
        {"cudnnBackendCreateDescriptor", &cudnn.make},
        {"cudnnBackendDestroyDescriptor", &cudnn.free},
        {"cudnnBackendSetAttribute", &cudnn.set},
        {"cudnnBackendGetAttribute", &cudnn.get},
        {"cudnnBackendFinalize", &cudnn.finish},
        {"cudnnBackendExecute", &cudnn.run},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = cli_find_function(peer, functions[i].symbol);
        if (!found)
            return 0;
        *(void **)functions[i].function = found;
    }
    cli_find_symbol_path(dlsym(peer->handle, "cudnnGetVersion"), peer->path);
    const size_t version = cudnn.get_version();
    snprintf(peer->version, sizeof peer->version, "cuDNN %zu.%zu.%zu", version / 10000,
             version / 100 % 100, version % 100);
    snprintf(peer->kernel, sizeof peer->kernel, "the first plan of its heuristic");
    return 1;
}

/* Keeps the first failure, with cuDNN's words for it. Returns 1 if there is none so far. */
static int check(cudnn_graph *graph, const char *step, int status)
{
    char text[PEER_TEXT_BYTES - 64] = "";
    if (status == 0 || graph->error[0])
        return !graph->error[0];
    cudnn.get_error(text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    snprintf(graph->error, sizeof graph->error, "it refuses %s (status %d) %s", step, status, text);
    return 0;
}

static void *make(cudnn_graph *graph, int kind)
{
    void *descriptor = NULL;
    if (graph->error[0])
        return NULL;
    if (graph->descriptor_count == cudnn_descriptor_capacity) {
        snprintf(graph->error, sizeof graph->error, "its graph has too many parts");
        return NULL;
    }
    if (!check(graph, "a descriptor", cudnn.make(kind, &descriptor)))
        return NULL;
    graph->descriptors[graph->descriptor_count++] = descriptor;
    return descriptor;
}

static void set(cudnn_graph *graph, void *descriptor, int attribute, int type, int64_t count,
                const void *values)
{
    char step[32];
    snprintf(step, sizeof step, "attribute %d", attribute);
    if (!graph->error[0])
        check(graph, step, cudnn.set(descriptor, attribute, type, count, values));
}

static void set_int(cudnn_graph *graph, void *descriptor, int attribute, int type, int value)
{
    set(graph, descriptor, attribute, type, 1, &value);
}

static void set_part(cudnn_graph *graph, void *descriptor, int attribute, void *part)
{
    if (part)
        set(graph, descriptor, attribute, of_descriptor, 1, &part);
}

static int finish(cudnn_graph *graph, const char *step, void *descriptor)
{
    return !graph->error[0] && check(graph, step, cudnn.finish(descriptor));
}

void cli_start_cudnn_graph(cudnn_graph *graph, const tg_context *context)
{
    static void *handle; /* making it takes longer than most shapes */
    *graph = (cudnn_graph){.context = context};
    if (tg_activate_device(context) != TG_STATUS_OK)
        snprintf(graph->error, sizeof graph->error, "the GPU cannot be used");
    else if (!handle && !check(graph, "a handle", cudnn.create(&handle)))
        handle = NULL;
    graph->handle = handle;
}

void *cli_make_cudnn_tensor(cudnn_graph *graph, const cudnn_tensor *tensor)
{
    const int64_t alignment_bytes = 16, id = ++graph->tensor_count;
    const uint8_t is_virtual = !tensor->data, is_by_value = tensor->is_scalar != 0;
    void *made = make(graph, tensor_descriptor);
    set_int(graph, made, tensor_type, of_data_type, tensor->type);
    set(graph, made, tensor_sizes, of_int64, 4, tensor->sizes);
    set(graph, made, tensor_strides, of_int64, 4, tensor->strides);
    set(graph, made, tensor_id, of_int64, 1, &id);
    set(graph, made, tensor_alignment, of_int64, 1, &alignment_bytes);
    set(graph, made, tensor_is_virtual, of_boolean, 1, &is_virtual);
    set(graph, made, tensor_is_by_value, of_boolean, 1, &is_by_value);
    if (tensor->data && graph->operand_count < cudnn_operand_capacity) {
        graph->ids[graph->operand_count] = id;
        graph->pointers[graph->operand_count++] = tensor->data;
    }
    return finish(graph, "a tensor", made) ? made : NULL;
}

static void add_operation(cudnn_graph *graph, const char *step, void *operation)
{
    if (finish(graph, step, operation) && graph->operation_count < cudnn_operation_capacity)
        graph->operations[graph->operation_count++] = operation;
}

void cli_add_cudnn_product(cudnn_graph *graph, void *a, void *b, void *c)
{
    void *kind = make(graph, product_descriptor);
    set_int(graph, kind, product_precision, of_data_type, cudnn_fp32);
    finish(graph, "a kind of product", kind);
    void *operation = make(graph, product_operation);
    set_part(graph, operation, product_a, a);
    set_part(graph, operation, product_b, b);
    set_part(graph, operation, product_c, c);
    set_part(graph, operation, product_kind, kind);
    add_operation(graph, "a product", operation);
}

void cli_add_cudnn_pointwise(cudnn_graph *graph, const cudnn_pointwise *pointwise)
{
    static const float one = 1.0F;
    void *kind = make(graph, pointwise_descriptor);
    set_int(graph, kind, pointwise_mode, of_pointwise_mode, pointwise->mode);
    set_int(graph, kind, pointwise_precision, of_data_type, pointwise->precision);
    if (pointwise->mode == cudnn_index)
        set(graph, kind, pointwise_axis, of_int64, 1, &pointwise->axis);
    finish(graph, "a kind of pointwise operation", kind);
    void *operation = make(graph, pointwise_operation);
    set_part(graph, operation, pointwise_kind, kind);
    set_part(graph, operation, pointwise_x, pointwise->x);
    set_part(graph, operation, pointwise_y, pointwise->y);
    set_part(graph, operation, pointwise_b, pointwise->b);
    set_part(graph, operation, pointwise_t, pointwise->t);
    set(graph, operation, pointwise_alpha1, of_float, 1, &one);
    set(graph, operation, pointwise_alpha2, of_float, 1, &one);
    add_operation(graph, "a pointwise operation", operation);
}

void cli_add_cudnn_reduction(cudnn_graph *graph, int reduction, void *x, void *y)
{
    void *kind = make(graph, reduction_descriptor);
    set_int(graph, kind, reduction_precision, of_data_type, cudnn_fp32);
    set_int(graph, kind, reduction_operator, of_reduction, reduction);
    finish(graph, "a kind of reduction", kind);
    void *operation = make(graph, reduction_operation);
    set_part(graph, operation, reduction_kind, kind);
    set_part(graph, operation, reduction_x, x);
    set_part(graph, operation, reduction_y, y);
    add_operation(graph, "a reduction", operation);
}

/* Returns a plan of a configuration that the heuristic proposed, or NULL if its engine refuses. */
static void *make_plan(cudnn_graph *graph, void *config)
{
    void *plan = make(graph, plan_descriptor);
    set(graph, plan, plan_handle, of_handle, 1, &graph->handle);
    set_part(graph, plan, plan_config, config);
    if (finish(graph, "every plan of its heuristic:", plan))
        return plan;
    return NULL;
}

/* Tries the proposals of a heuristic in its order. */
static void *choose_plan(cudnn_graph *graph, void *operations, int mode)
{
    void *configs[config_capacity], *plan = NULL;
    int64_t count = 0;
    void *heuristics = make(graph, heuristics_descriptor);
    set_part(graph, heuristics, heuristics_graph, operations);
    set_int(graph, heuristics, heuristics_mode, of_heuristic, mode);
    if (!finish(graph, "the graph, for its heuristic:", heuristics))
        return NULL;
    for (int i = 0; i < config_capacity; i++)
        configs[i] = make(graph, config_descriptor);
    if (graph->error[0] || !check(graph, "the results of its heuristic",
                                  cudnn.get(heuristics, heuristics_results, of_descriptor,
                                            config_capacity, &count, configs)))
        return NULL;
    for (int64_t i = 0; i < count && i < config_capacity && !plan; i++) {
        graph->error[0] = '\0';
        plan = make_plan(graph, configs[i]);
    }
    return plan;
}

/* Allocates the plan's workspace and packs it with the operands. */
static int pack_operands(cudnn_graph *graph)
{
    int64_t workspace_bytes = 0, count = 0;
    if (!check(graph, "to tell its workspace",
               cudnn.get(graph->plan, plan_workspace_bytes, of_int64, 1, &count, &workspace_bytes)))
        return 0;
    if (workspace_bytes > 0 &&
        tg_allocate_memory(graph->context, workspace_bytes, &graph->workspace) != TG_STATUS_OK) {
        snprintf(graph->error, sizeof graph->error, "its workspace of %.1f MB does not fit",
                 (double)workspace_bytes * 1e-6);
        return 0;
    }
    graph->pack = make(graph, pack_descriptor);
    set(graph, graph->pack, pack_ids, of_int64, graph->operand_count, graph->ids);
    set(graph, graph->pack, pack_pointers, of_pointer, graph->operand_count, graph->pointers);
    set(graph, graph->pack, pack_workspace, of_pointer, 1, &graph->workspace);
    return finish(graph, "the operands", graph->pack);
}

int cli_plan_cudnn_graph(cudnn_graph *graph)
{
    void *operations = make(graph, graph_descriptor);
    set(graph, operations, graph_handle, of_handle, 1, &graph->handle);
    set(graph, operations, graph_operations, of_descriptor, graph->operation_count,
        graph->operations);
    if (!finish(graph, "the graph", operations))
        return 0;
    graph->plan = choose_plan(graph, operations, heuristic_a);
    if (!graph->plan && !graph->error[0])
        graph->plan = choose_plan(graph, operations, heuristic_fallback);
    if (!graph->plan && !graph->error[0])
        snprintf(graph->error, sizeof graph->error, "its heuristics know no engine for this graph");
    return graph->plan && pack_operands(graph);
}

int cli_run_cudnn_graph(const cudnn_graph *graph, void *stream)
{
    static void *current; /* a new handle has the stream NULL */
    if (stream != current && cudnn.set_stream(graph->handle, stream) != 0)
        return 0;
    current = stream;
    return cudnn.run(graph->handle, graph->plan, graph->pack) == 0;
}

void cli_free_cudnn_graph(cudnn_graph *graph)
{
    while (graph->descriptor_count > 0)
        cudnn.free(graph->descriptors[--graph->descriptor_count]);
    if (graph->workspace)
        tg_release_memory(graph->context, graph->workspace);
    graph->workspace = NULL;
}
