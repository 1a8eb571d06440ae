/*
 * Declares graphs of cuDNN's operations, which its engines compute as one kernel. A graph is made,
 * planned and given its operands before its first run.
 */
#ifndef TG_CLI_PEER_CUDNN_H
#define TG_CLI_PEER_CUDNN_H

#include "peers/peer.h"

/* The values of cudnn_graph.h that callers use: types, pointwise modes and reductions. */
enum { cudnn_fp32 = 0, cudnn_fp16 = 2, cudnn_int32 = 4, cudnn_bf16 = 9, cudnn_boolean = 11 };
enum { cudnn_add = 0, cudnn_mul = 1, cudnn_div = 6, cudnn_sub = 9, cudnn_exp = 13 };
enum { cudnn_log = 15, cudnn_greater_equal = 303, cudnn_index = 501, cudnn_select = 601 };
enum { cudnn_reduce_add = 0, cudnn_reduce_max = 3 };

enum { cudnn_descriptor_capacity = 192, cudnn_operation_capacity = 20, cudnn_operand_capacity = 8 };

/* The first failure stays in `error`; later calls then do nothing. */
typedef struct cudnn_graph {
    const tg_context *context;
    void *handle;
    void *descriptors[cudnn_descriptor_capacity]; /* owned: all that were made */
    int descriptor_count;
    void *operations[cudnn_operation_capacity];
    int operation_count, tensor_count, operand_count;
    int64_t ids[cudnn_operand_capacity];
    void *pointers[cudnn_operand_capacity]; /* in the GPU's memory; of scalars in the host's */
    void *plan, *pack, *workspace;          /* workspace: owned, or NULL */
    char error[PEER_TEXT_BYTES];
} cudnn_graph;

/* A tensor of four dimensions. With `data` it is in memory, where it stays; without it lies between
 * two operations. */
typedef struct cudnn_tensor {
    int type, is_scalar; /* a scalar's data are the host's */
    int64_t sizes[4], strides[4];
    void *data;
} cudnn_tensor;

/* y = mode(x, b, t), where b and t may be NULL; `axis` is that of cudnn_index. */
typedef struct cudnn_pointwise {
    int mode, precision;
    int64_t axis;
    void *x, *b, *t, *y;
} cudnn_pointwise;

/* Starts an empty graph on the device of `context`. */
void cli_start_cudnn_graph(cudnn_graph *graph, const tg_context *context);

/* Make a tensor, which the graph owns, and add operations on such. The order of the operations is
 * that of the pattern which cuDNN's engines know. */
void *cli_make_cudnn_tensor(cudnn_graph *graph, const cudnn_tensor *tensor);
void cli_add_cudnn_product(cudnn_graph *graph, void *a, void *b, void *c);
void cli_add_cudnn_pointwise(cudnn_graph *graph, const cudnn_pointwise *pointwise);
void cli_add_cudnn_reduction(cudnn_graph *graph, int reduction, void *x, void *y);

/* Chooses the first plan of cuDNN's heuristic that can be made, and allocates its workspace.
 * Returns 0, with graph->error filled, if that or an earlier step failed. */
int cli_plan_cudnn_graph(cudnn_graph *graph);

/* Puts a run into the stream. Returns 0 if it fails. */
int cli_run_cudnn_graph(const cudnn_graph *graph, void *stream);
/* Frees what the graph owns, not *graph. */
void cli_free_cudnn_graph(cudnn_graph *graph);

#endif /* TG_CLI_PEER_CUDNN_H */
