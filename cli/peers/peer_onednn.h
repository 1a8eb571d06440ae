/* Lists the functions of oneDNN's primitives that its two peers call. */
#ifndef PEER_ONEDNN_H
#define PEER_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#define ONEDNN_FUNCTIONS(row)                                                                      \
    row(dnnl_engine_create) row(dnnl_engine_destroy) row(dnnl_stream_create)                       \
        row(dnnl_stream_destroy) row(dnnl_stream_wait) row(dnnl_memory_desc_init_by_strides)       \
            row(dnnl_memory_create) row(dnnl_memory_destroy) row(dnnl_memory_set_data_handle)      \
                row(dnnl_matmul_desc_init) row(dnnl_softmax_v2_forward_desc_init)                  \
                    row(dnnl_primitive_desc_create) row(dnnl_primitive_desc_destroy)               \
                        row(dnnl_primitive_create) row(dnnl_primitive_destroy)                     \
                            row(dnnl_primitive_execute) row(dnnl_primitive_attr_create)            \
                                row(dnnl_primitive_attr_destroy)                                   \
                                    row(dnnl_primitive_attr_set_output_scales)                     \
                                        row(dnnl_primitive_attr_set_post_ops)                      \
                                            row(dnnl_post_ops_create) row(dnnl_post_ops_destroy)   \
                                                row(dnnl_post_ops_append_binary)                   \
                                                    row(dnnl_post_ops_append_eltwise)

/* They have the types of oneDNN's header, and are found when the peer is bound. */
typedef struct onednn_functions {
#define DECLARE_FUNCTION(name) __typeof__(name) *name;
    ONEDNN_FUNCTIONS(DECLARE_FUNCTION)
#undef DECLARE_FUNCTION
} onednn_functions;

extern onednn_functions cli_onednn;

#endif
