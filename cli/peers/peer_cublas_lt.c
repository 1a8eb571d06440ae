/*
 * Calls cuBLASLt with its default, the first of the candidates that it proposes for a shape, and at
 * its best, with the candidate that is fastest when each is timed on the operands. It computes
 * column-major: our row-major D is its D^T.
 */
#include "peers/peer.h"
#include "check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The values of cublasLt.h and library_types.h that are in use. */
enum { operation_n = 0, operation_t = 1, compute_fp32 = 68, compute_fp64 = 70 };
enum { compute_tf32 = 77, data_e4m3 = 28, data_e5m2 = 29 };
enum { data_fp32 = 0, data_fp64 = 1, data_fp16 = 2, data_bf16 = 14 };
enum { description_op_a = 3, description_op_b = 4, preference_workspace_bytes = 1 };
enum { description_epilogue = 7, description_bias = 8, description_bias_type = 26 };
enum { description_a_scale = 17, description_b_scale = 18, description_a_scale_mode = 31 };
enum { description_b_scale_mode = 32, scale_mode_vector = 3 };
enum { layout_batch_count = 5, layout_batch_stride = 6 };
enum { epilogue_none = 1, epilogue_relu = 2, epilogue_bias = 4, epilogue_gelu_tanh = 32 };
enum { candidate_capacity = 12, timed_calls = 5 };
static const uint64_t workspace_bytes = (uint64_t)32 << 20;

/* cublasLtMatmulHeuristicResult_t */
typedef struct candidate {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status;
    float wave_count;
    int reserved[4];
} candidate;

typedef struct cublas_lt {
    int (*create)(void **handle);
    size_t (*get_version)(void);
    int (*make_description)(void **description, int compute, int scale_type);
    int (*set_description)(void *description, int attribute, const void *value, size_t bytes);
    int (*free_description)(void *description);
    int (*make_layout)(void **layout, int type, uint64_t rows, uint64_t cols, int64_t leading);
    int (*set_layout)(void *layout, int attribute, const void *value, size_t bytes);
    int (*free_layout)(void *layout);
    int (*make_preference)(void **preference);
    int (*set_preference)(void *preference, int attribute, const void *value, size_t bytes);
    int (*free_preference)(void *preference);
    int (*propose)(void *handle, void *description, void *a, void *b, void *c, void *d,
                   void *preference, int wanted, candidate *found, int *found_count);
    int (*multiply)(void *handle, void *description, const void *alpha, const void *a,
                    void *layout_a, const void *b, void *layout_b, const void *beta, const void *c,
                    void *layout_c, void *d, void *layout_d, const uint64_t *algorithm,
                    void *workspace, size_t workspace_bytes, void *stream);
} cublas_lt;
static cublas_lt library;

/* The state of one shape. `left` is cuBLAS's A, which is our B. */
typedef struct lt_state {
    const tg_context *context;
    void *handle, *description, *layout_left, *layout_right, *layout_c, *layout_d, *workspace;
    candidate candidates[candidate_capacity];
    int candidate_count, best; /* best: -1 until the first run of all candidates */
    int is_fp64, uses_c;
    double alpha_fp64, beta_fp64;
    float alpha_fp32, beta_fp32;
    tg_buffers operands; /* operands of the current run */
    int timed;           /* candidate that is timed */
} lt_state;

int cli_bind_cublas_lt(cli_peer *peer)
{
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
        {"cublasLtCreate", offsetof(cublas_lt, create)},
        {"cublasLtGetVersion", offsetof(cublas_lt, get_version)},
        {"cublasLtMatmulDescCreate", offsetof(cublas_lt, make_description)},
        {"cublasLtMatmulDescSetAttribute", offsetof(cublas_lt, set_description)},
        {"cublasLtMatmulDescDestroy", offsetof(cublas_lt, free_description)},
        {"cublasLtMatrixLayoutCreate", offsetof(cublas_lt, make_layout)},
        {"cublasLtMatrixLayoutSetAttribute", offsetof(cublas_lt, set_layout)},
        {"cublasLtMatrixLayoutDestroy", offsetof(cublas_lt, free_layout)},
        {"cublasLtMatmulPreferenceCreate", offsetof(cublas_lt, make_preference)},
        {"cublasLtMatmulPreferenceSetAttribute", offsetof(cublas_lt, set_preference)},
        {"cublasLtMatmulPreferenceDestroy", offsetof(cublas_lt, free_preference)},
        {"cublasLtMatmulAlgoGetHeuristic", offsetof(cublas_lt, propose)},
        {"cublasLtMatmul", offsetof(cublas_lt, multiply)},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = cli_find_function(peer, functions[i].symbol);
        if (!found)
            return 0;
        *(void **)((char *)&library + functions[i].offset) = found;
    }
    cli_find_symbol_path(dlsym(peer->handle, "cublasLtCreate"), peer->path);
    snprintf(peer->version, sizeof peer->version, "cuBLASLt %zu", library.get_version());
    if (peer->prepare == cli_prepare_cublas_best)
        snprintf(peer->kernel, sizeof peer->kernel, "fastest of up to %d candidates",
                 candidate_capacity);
    else
        snprintf(peer->kernel, sizeof peer->kernel, "its first candidate");
    return 1;
}

/* Returns the epilogue of cuBLASLt that does the gemm's, or -1. Its D has our columns as rows, and
 * its bias is a value a row. */
static int find_epilogue(const peer_gemm *gemm)
{
    const int bias = gemm->bias == TG_BIAS_NONE ? 0 : epilogue_bias;
    if (gemm->bias == TG_BIAS_ROW)
        return -1;
    switch (gemm->activation) {
    case TG_ACTIVATION_NONE:
        return bias ? bias : epilogue_none;
    case TG_ACTIVATION_RELU:
        return epilogue_relu | bias;
    case TG_ACTIVATION_GELU_TANH:
        return epilogue_gelu_tanh | bias;
    default:
        return -1;
    }
}

const char *cli_explain_cublas_lt(const peer_gemm *gemm)
{
    if (gemm->batch_count > INT32_MAX)
        return "its interface takes up to 2147483647 products";
    if (find_epilogue(gemm) < 0)
        return "its epilogues are a bias along the rows of D, relu and gelu_tanh";
    if (gemm->d_scale != TG_SCALE_NONE)
        return "it scales D in FP8 only";
    if ((gemm->a_scale == TG_SCALE_VECTOR) != (gemm->b_scale == TG_SCALE_VECTOR))
        return "it takes vectors of scales for both A and B only";
    if (!check_is_fp8(gemm->type))
        return NULL;
    if (gemm->is_a_transposed || !gemm->is_b_transposed)
        return "its FP8 takes an A stored along k and a B stored n x k: layout nt";
    if (gemm->type == TG_TYPE_FP8_E5M2 && gemm->b_type == TG_TYPE_FP8_E5M2)
        return "it does not multiply E5M2 by E5M2";
    if (check_is_fp8(gemm->d_type))
        return "it is measured with D of 16 or 32 bits";
    return NULL;
}

static int find_data_type(tg_type type)
{
    return type == TG_TYPE_FP64       ? data_fp64
           : type == TG_TYPE_FP32     ? data_fp32
           : type == TG_TYPE_BF16     ? data_bf16
           : type == TG_TYPE_FP16     ? data_fp16
           : type == TG_TYPE_FP8_E4M3 ? data_e4m3
                                      : data_e5m2;
}

/* The storage says how the entries of a matrix lie. */
typedef struct storage {
    int is_transposed;
    int64_t leading, batch_stride;
    int32_t batch_count;
} storage;

/* Describes op(matrix) of rows x cols as cuBLAS reads it: column-major with a leading dimension. */
static int make_layout(void **layout, tg_type type, int64_t rows, int64_t cols, storage stored)
{
    return library.make_layout(layout, find_data_type(type),
                               (uint64_t)(stored.is_transposed ? cols : rows),
                               (uint64_t)(stored.is_transposed ? rows : cols), stored.leading) ||
           library.set_layout(*layout, layout_batch_count, &stored.batch_count,
                              sizeof stored.batch_count) ||
           library.set_layout(*layout, layout_batch_stride, &stored.batch_stride,
                              sizeof stored.batch_stride);
}

static int set_int(void *description, int attribute, int value)
{
    return library.set_description(description, attribute, &value, sizeof value);
}

/* The types and modes of the epilogue's operands. The pointers follow with each run. */
static int describe_epilogue(lt_state *state, const peer_gemm *gemm)
{
    void *description = state->description;
    const int is_vector = gemm->a_scale == TG_SCALE_VECTOR;
    int error = 0;
    if (find_epilogue(gemm) != epilogue_none)
        error = set_int(description, description_epilogue, find_epilogue(gemm));
    if (!error && gemm->bias != TG_BIAS_NONE)
        error = set_int(description, description_bias_type, find_data_type(gemm->d_type));
    if (!error && is_vector)
        error = set_int(description, description_a_scale_mode, scale_mode_vector) ||
                set_int(description, description_b_scale_mode, scale_mode_vector);
    return error;
}

static int describe(lt_state *state, const peer_gemm *gemm)
{
    const int op_left = gemm->is_b_transposed ? operation_t : operation_n;
    const int op_right = gemm->is_a_transposed ? operation_t : operation_n;
    const int compute = state->is_fp64 ? compute_fp64 : gemm->is_tf32 ? compute_tf32 : compute_fp32;
    const int32_t batch_count = (int32_t)gemm->batch_count;
    const storage left = {gemm->is_b_transposed, gemm->ldb, gemm->batch_b, batch_count};
    const storage right = {gemm->is_a_transposed, gemm->lda, gemm->batch_a, batch_count};
    const storage d = {0, gemm->ldd, gemm->batch_d, batch_count};
    const storage c = state->uses_c ? (storage){0, gemm->ldc, gemm->batch_c, batch_count} : d;
    return library.make_description(&state->description, compute,
                                    state->is_fp64 ? data_fp64 : data_fp32) ||
           library.set_description(state->description, description_op_a, &op_left,
                                   sizeof op_left) ||
           library.set_description(state->description, description_op_b, &op_right,
                                   sizeof op_right) ||
           make_layout(&state->layout_left, gemm->b_type, gemm->n, gemm->k, left) ||
           make_layout(&state->layout_right, gemm->type, gemm->k, gemm->m, right) ||
           make_layout(&state->layout_c, gemm->d_type, gemm->n, gemm->m, c) ||
           make_layout(&state->layout_d, gemm->d_type, gemm->n, gemm->m, d) ||
           describe_epilogue(state, gemm);
}

static int propose(lt_state *state)
{
    void *preference = NULL;
    int error = library.make_preference(&preference) ||
                library.set_preference(preference, preference_workspace_bytes, &workspace_bytes,
                                       sizeof workspace_bytes) ||
                library.propose(state->handle, state->description, state->layout_left,
                                state->layout_right, state->layout_c, state->layout_d, preference,
                                candidate_capacity, state->candidates, &state->candidate_count);
    if (preference)
        library.free_preference(preference);
    return error || state->candidate_count == 0;
}

/* Fills in the handle and the workspace, which all shapes share: making them takes longer than most
 * shapes. */
static int find_shared(lt_state *state)
{
    static void *handle, *workspace;
    if (tg_activate_device(state->context) != TG_STATUS_OK)
        return 0;
    if (!handle && library.create(&handle) != 0)
        handle = NULL;
    if (!workspace &&
        tg_allocate_memory(state->context, (int64_t)workspace_bytes, &workspace) != TG_STATUS_OK)
        workspace = NULL;
    state->handle = handle;
    state->workspace = workspace;
    return handle && workspace;
}

static int prepare(const cli_peer *peer, const peer_gemm *gemm, int best, void **state)
{
    lt_state *made = calloc(1, sizeof *made);
    if (!made)
        return 0;
    made->context = peer->context;
    made->best = best;
    made->is_fp64 = gemm->type == TG_TYPE_FP64;
    made->alpha_fp64 = gemm->alpha;
    made->alpha_fp32 = (float)gemm->alpha;
    made->beta_fp64 = gemm->beta;
    made->beta_fp32 = (float)gemm->beta;
    made->uses_c = gemm->beta != 0.0;
    if (!find_shared(made) || describe(made, gemm) || propose(made)) {
        cli_release_cublas_lt(made);
        return 0;
    }
    *state = made;
    return 1;
}

int cli_prepare_cublas_lt(const cli_peer *peer, const peer_gemm *gemm, void **state)
{
    return prepare(peer, gemm, 0, state);
}

int cli_prepare_cublas_best(const cli_peer *peer, const peer_gemm *gemm, void **state)
{
    return prepare(peer, gemm, -1, state);
}

static int multiply(lt_state *state, int index)
{
    const void *alpha = state->is_fp64 ? (const void *)&state->alpha_fp64 : &state->alpha_fp32;
    const void *beta = state->is_fp64 ? (const void *)&state->beta_fp64 : &state->beta_fp32;
    const tg_buffers *operands = &state->operands;
    return library.multiply(state->handle, state->description, alpha, operands->b,
                            state->layout_left, operands->a, state->layout_right, beta,
                            state->uses_c ? operands->c : operands->d, state->layout_c, operands->d,
                            state->layout_d, state->candidates[index].algorithm, state->workspace,
                            (size_t)workspace_bytes, operands->stream);
}

static tg_status multiply_timed(void *state, int64_t index)
{
    lt_state *timed = state;
    (void)index;
    return multiply(timed, timed->timed) ? TG_STATUS_DEVICE_FAILURE : TG_STATUS_OK;
}

/* Runs each candidate once untimed, then timed. Candidates that fail are left out. */
static void choose_best(lt_state *state)
{
    double best_s = 0.0;
    for (int i = 0; i < state->candidate_count; i++) {
        double elapsed_s = 0.0;
        state->timed = i;
        if (state->candidates[i].status != 0 ||
            tg_time_calls(state->context, multiply_timed, state, 1, NULL, &elapsed_s) ||
            tg_time_calls(state->context, multiply_timed, state, timed_calls, NULL, &elapsed_s))
            continue;
        if (state->best < 0 || elapsed_s < best_s) {
            state->best = i;
            best_s = elapsed_s;
        }
    }
}

/* Tells the description where an operand of the epilogue lies. */
static int set_pointer(const lt_state *state, int attribute, const void *pointer)
{
    return pointer &&
           library.set_description(state->description, attribute, &pointer, sizeof pointer);
}

int cli_run_cublas_lt(const cli_peer *peer, const peer_gemm *gemm, void *state,
                      const tg_buffers *operands)
{
    lt_state *chosen = state;
    (void)peer;
    chosen->operands = *operands;
    if (set_pointer(chosen, description_bias, gemm->bias ? operands->bias : NULL) ||
        set_pointer(chosen, description_a_scale, gemm->b_scale ? operands->b_scale : NULL) ||
        set_pointer(chosen, description_b_scale, gemm->a_scale ? operands->a_scale : NULL))
        return 0;
    if (chosen->best < 0)
        choose_best(chosen);
    return chosen->best >= 0 && multiply(chosen, chosen->best) == 0;
}

void cli_release_cublas_lt(void *state)
{
    lt_state *made = state;
    void *const layouts[] = {made->layout_d, made->layout_c, made->layout_right, made->layout_left};
    for (int i = 0; i < 4; i++) {
        if (layouts[i])
            library.free_layout(layouts[i]);
    }
    if (made->description)
        library.free_description(made->description);
    free(made);
}
