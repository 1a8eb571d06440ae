/*
 * Declares the libraries to measure against, which are opened at run time. A row of peer.c
 * describes a peer; a peer_call is one of our problems, or an attention, in the peer's terms.
 */
#ifndef TG_CLI_PEER_H
#define TG_CLI_PEER_H

#include "tilegemm_attention.h"
#include "tilegemm_lab.h"

#include <stddef.h>

enum { PEER_LIBRARY_CAPACITY = 6, PEER_SETTING_CAPACITY = 3, PEER_TEXT_BYTES = 256 };

/* D = activation(alpha op(A) op(B) + beta C + bias) with row-major matrices, for each entry of a
 * batch. A column-major D is computed as the transpose of a row-major one: a of this struct is then
 * our B, and b our A. */
typedef struct peer_gemm {
    int is_swapped;
    int is_a_transposed, is_b_transposed;
    int64_t m, n, k, lda, ldb, ldc, ldd;
    int64_t batch_count, batch_a, batch_b, batch_c, batch_d; /* elements from entry to entry */
    double alpha, beta;
    tg_type type, b_type, d_type; /* b_type differs from type only if both are FP8 */
    int is_tf32;                  /* FP32 inputs may be rounded to TF32 */
    tg_bias bias;                 /* m values (ROW) or n (COL) of d_type */
    tg_activation activation;
    tg_scale a_scale, b_scale, d_scale;
} peer_gemm;

typedef void (*peer_sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                           float alpha, const float *a, int lda, const float *b, int ldb,
                           float beta, float *c, int ldc);
typedef void (*peer_dgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                           double alpha, const double *a, int lda, const double *b, int ldb,
                           double beta, double *c, int ldc);
typedef void (*peer_sgemm_batch)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                                 float alpha, const float *a, int lda, int batch_a, const float *b,
                                 int ldb, int batch_b, float beta, float *c, int ldc, int batch_c,
                                 int batch_count);
typedef void (*peer_dgemm_batch)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                                 double alpha, const double *a, int lda, int batch_a,
                                 const double *b, int ldb, int batch_b, double beta, double *c,
                                 int ldc, int batch_c, int batch_count);

/* An environment variable that the library reads when it is opened. `value` is NULL if only the
 * user's value is of interest. */
typedef struct peer_setting {
    const char *name, *value;
    int needs_avx512;
} peer_setting;

typedef struct cli_peer cli_peer;
struct cli_peer {
    const char *name;
    const char *remedy; /* package to install */
    const char
        *path_variable; /* variable that names the library's folder or file, which comes first */
    const char *libraries[PEER_LIBRARY_CAPACITY];
    peer_setting settings[PEER_SETTING_CAPACITY];
    int is_on_gpu;
    int has_attention, lacks_products; /* most peers compute products alone */
    /* Finds the functions in `handle`, and fills version and kernel. Returns 0 with `reason` filled
     * if it fails. */
    int (*bind)(cli_peer *peer);
    void (*set_thread_count)(const cli_peer *peer, int thread_count); /* NULL on a GPU */
    /* Returns NULL, or why the peer cannot compute `gemm`, in static storage. */
    const char *(*explain_unsupported)(const peer_gemm *gemm);
    /* Prepare, run and release one gemm; `state` belongs to the peer, `operands` are those of the
     * gemm, A and B swapped where it says so. Return 0 on failure. Without `release` a state serves
     * the process. */
    int (*prepare)(const cli_peer *peer, const peer_gemm *gemm, void **state);
    int (*run)(const cli_peer *peer, const peer_gemm *gemm, void *state,
               const tg_buffers *operands);
    void (*release)(void *state);
    /* These do so for an attention, whose operands stay where they are from prepare to release. A
     * prepare that fails fills `reason`, which has PEER_TEXT_BYTES. `stream` is NULL on the CPU. */
    const char *(*explain_attention)(const tg_attention *attention);
    int (*prepare_attention)(const cli_peer *peer, const tg_attention *attention, void **state,
                             char *reason);
    int (*run_attention)(void *state, void *stream);
    void (*release_attention)(void *state);

    /* cli_open_peer fills the rest. */
    int is_tried;
    void *handle;               /* NULL while not open */
    char path[PEER_TEXT_BYTES]; /* path of the library */
    char version[PEER_TEXT_BYTES];
    char kernel
        [PEER_TEXT_BYTES]; /* instruction set or kernel in use, "" if the library does not tell */
    char reason[PEER_TEXT_BYTES];                      /* why it is not open */
    const char *setting_values[PEER_SETTING_CAPACITY]; /* value in force; NULL if there is none */
    int is_setting_kept[PEER_SETTING_CAPACITY];        /* 1: the user had set it */
    peer_sgemm sgemm;
    peer_dgemm dgemm;
    /* NULL if the library has none: the entries of a batch are then a loop. */
    peer_sgemm_batch sgemm_batch;
    peer_dgemm_batch dgemm_batch;
    void *thread_symbol;       /* function of the library that sets its thread count */
    int version_major;         /* version of oneDNN */
    const tg_context *context; /* context of the measured GPU; set before the peer prepares */
    double free_bytes;         /* free memory of the host; set before it prepares an attention */
};

typedef struct peer_call {
    const cli_peer *peer;
    peer_gemm gemm; /* not used by an attention */
    int is_attention;
    void *state;
} peer_call;

/* Return the peer of that name, or NULL; and peer `index`, NULL after the last. */
cli_peer *cli_find_peer(const char *name);
cli_peer *cli_get_peer(int index);

/* Opens the library once. Returns 1 if it is open, else peer->reason tells what is missing. Peers
 * must be opened in table order: MKL, the last, makes its BLAS names global. */
int cli_open_peer(cli_peer *peer);

/* Returns a function of the peer's open library; NULL with peer->reason filled if it has none. */
void *cli_find_function(cli_peer *peer, const char *name);

/* Fills the path (under PEER_TEXT_BYTES) of the library that holds `symbol`; "" if unknown. */
void cli_find_symbol_path(const void *symbol, char *path);

/* Prepares `problem`, whose data pointers it does not read. Returns 0 with `reason` filled if it
 * fails. */
int cli_prepare_peer_call(const cli_peer *peer, const tg_problem *problem, peer_call *call,
                          char *reason, size_t reason_bytes);
int cli_run_peer_call(const peer_call *call, const tg_buffers *buffers);
/* Prepare and run an attention with its operands. `reason` has PEER_TEXT_BYTES. */
int cli_prepare_peer_attention(const cli_peer *peer, const tg_attention *attention, peer_call *call,
                               char *reason);
int cli_run_peer_attention(const peer_call *call, void *stream);
void cli_release_peer_call(peer_call *call);

/* Returns NULL, or why a BLAS cannot form the gemm's epilogue. */
const char *cli_explain_blas_epilogue(const peer_gemm *gemm);

/* The functions of the rows: three CBLAS libraries and oneDNN's two ways. Those of its matmul exist
 * if the build has oneDNN's header (TG_HAVE_ONEDNN_HEADER); without it cli_bind_onednn reports
 * that. */
int cli_bind_openblas(cli_peer *peer);
int cli_bind_blis(cli_peer *peer);
int cli_bind_mkl(cli_peer *peer);
void cli_set_peer_threads_int(const cli_peer *peer, int thread_count);
void cli_set_peer_threads_int64(const cli_peer *peer, int thread_count);
const char *cli_explain_cblas(const peer_gemm *gemm);
int cli_run_cblas(const cli_peer *peer, const peer_gemm *gemm, void *state,
                  const tg_buffers *operands);
int cli_bind_onednn_version(cli_peer *peer);
int cli_bind_onednn_sgemm(cli_peer *peer);
int cli_bind_onednn(cli_peer *peer);
const char *cli_explain_onednn(const peer_gemm *gemm);
const char *cli_explain_onednn_sgemm(const peer_gemm *gemm);
int cli_prepare_onednn(const cli_peer *peer, const peer_gemm *gemm, void **state);
int cli_run_onednn(const cli_peer *peer, const peer_gemm *gemm, void *state,
                   const tg_buffers *operands);
int cli_run_onednn_sgemm(const cli_peer *peer, const peer_gemm *gemm, void *state,
                         const tg_buffers *operands);
void cli_release_onednn(void *state);

/* Attention by oneDNN's primitives, a product at a time. They exist as its matmul does; binding it
 * binds these. */
const char *cli_explain_onednn_attention(const tg_attention *attention);
int cli_prepare_onednn_attention(const cli_peer *peer, const tg_attention *attention, void **state,
                                 char *reason);
int cli_run_onednn_attention(void *state, void *stream);
void cli_release_onednn_attention(void *state);

/* LIBXSMM compiles a kernel for the sizes of an entry; a loop runs it on one thread. */
int cli_bind_libxsmm(cli_peer *peer);
void cli_set_libxsmm_threads(const cli_peer *peer, int thread_count);
const char *cli_explain_libxsmm(const peer_gemm *gemm);
int cli_prepare_libxsmm(const cli_peer *peer, const peer_gemm *gemm, void **state);
int cli_run_libxsmm(const cli_peer *peer, const peer_gemm *gemm, void *state,
                    const tg_buffers *operands);
void cli_release_libxsmm(void *state);

/* cuBLAS uses its default choice; cuBLASLt its first candidate for a shape, or the fastest of all
 * candidates, which the first run finds. */
int cli_bind_cublas(cli_peer *peer);
int cli_bind_cublas_lt(cli_peer *peer);
const char *cli_explain_cublas(const peer_gemm *gemm);
const char *cli_explain_cublas_lt(const peer_gemm *gemm);
int cli_prepare_cublas(const cli_peer *peer, const peer_gemm *gemm, void **state);
int cli_prepare_cublas_lt(const cli_peer *peer, const peer_gemm *gemm, void **state);
int cli_prepare_cublas_best(const cli_peer *peer, const peer_gemm *gemm, void **state);
int cli_run_cublas(const cli_peer *peer, const peer_gemm *gemm, void *state,
                   const tg_buffers *operands);
int cli_run_cublas_lt(const cli_peer *peer, const peer_gemm *gemm, void *state,
                      const tg_buffers *operands);
void cli_release_cublas_lt(void *state);

/* cuDNN computes attention alone. */
int cli_bind_cudnn(cli_peer *peer);
const char *cli_explain_cudnn(const tg_attention *attention);
int cli_prepare_cudnn(const cli_peer *peer, const tg_attention *attention, void **state,
                      char *reason);
int cli_run_cudnn(void *state, void *stream);
void cli_release_cudnn(void *state);

#endif /* TG_CLI_PEER_H */
