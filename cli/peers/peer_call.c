/*
 * One of our problems in the terms of a row-major BLAS, and its run by a peer; and an attention.
 */
#include "peers/peer.h"

#include "check/check.h"

#include <stdio.h>

/* Reads a rows x cols matrix by its strides as row-major storage of itself or of its transpose. */
static int find_leading(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride,
                        int *is_transposed, int64_t *leading)
{
    if (col_stride == 1 && (row_stride >= cols || rows == 1)) {
        *is_transposed = 0;
        *leading = row_stride > cols ? row_stride : cols;
        return 1;
    }
    if (row_stride == 1 && (col_stride >= rows || cols == 1)) {
        *is_transposed = 1;
        *leading = col_stride > rows ? col_stride : rows;
        return 1;
    }
    return 0;
}

/* Reads op(matrix), rows x cols; with `is_swapped` its transpose, cols x rows. */
static int read_operand(const tg_matrix *matrix, tg_operation op, int64_t rows, int64_t cols,
                        int is_swapped, int *is_transposed, int64_t *leading)
{
    int swaps_strides = (op == TG_OPERATION_TRANSPOSE) != is_swapped;
    int64_t row_stride = swaps_strides ? matrix->col_stride : matrix->row_stride;
    int64_t col_stride = swaps_strides ? matrix->row_stride : matrix->col_stride;
    return is_swapped ? find_leading(cols, rows, row_stride, col_stride, is_transposed, leading)
                      : find_leading(rows, cols, row_stride, col_stride, is_transposed, leading);
}

const char *cli_explain_blas_epilogue(const peer_gemm *gemm)
{
    if (gemm->beta != 0.0)
        return "a BLAS with beta adds into C in place, so its samples would differ";
    if (gemm->bias != TG_BIAS_NONE || gemm->activation != TG_ACTIVATION_NONE)
        return "a BLAS has no bias and no activation";
    return NULL;
}

/* Reads the epilogue, whose C lies as D does. */
static const char *find_epilogue(const tg_problem *problem, peer_gemm *gemm)
{
    const int is_swapped = gemm->is_swapped;
    gemm->beta = problem->beta;
    gemm->bias = problem->bias == TG_BIAS_NONE                  ? TG_BIAS_NONE
                 : (problem->bias == TG_BIAS_ROW) != is_swapped ? TG_BIAS_ROW
                                                                : TG_BIAS_COL;
    gemm->activation = problem->activation;
    gemm->a_scale = is_swapped ? problem->b_scale : problem->a_scale;
    gemm->b_scale = is_swapped ? problem->a_scale : problem->b_scale;
    gemm->d_scale = problem->d_scale;
    int is_transposed = 0;
    if (problem->beta != 0.0 &&
        (!read_operand(&problem->c, TG_OPERATION_NONE, problem->d.row_count, problem->d.col_count,
                       is_swapped, &is_transposed, &gemm->ldc) ||
         is_transposed))
        return "C is not stored in the order of D";
    return NULL;
}

/* Reads the distances between the entries of a batch. */
static void find_batch(const tg_problem *problem, peer_gemm *gemm)
{
    gemm->batch_count = problem->batch_count;
    gemm->batch_a = gemm->is_swapped ? problem->b.batch_stride : problem->a.batch_stride;
    gemm->batch_b = gemm->is_swapped ? problem->a.batch_stride : problem->b.batch_stride;
    gemm->batch_c = problem->c.batch_stride;
    gemm->batch_d = problem->d.batch_stride;
}

static const char *find_gemm(const tg_problem *problem, peer_gemm *gemm)
{
    const int64_t m = problem->d.row_count, n = problem->d.col_count;
    const int64_t k =
        problem->op_a == TG_OPERATION_NONE ? problem->a.col_count : problem->a.row_count;
    if (m == 0 || n == 0 || k == 0 || problem->batch_count == 0)
        return "peers are not measured on products with a size of 0";
    int is_d_transposed = 0;
    if (!find_leading(m, n, problem->d.row_stride, problem->d.col_stride, &is_d_transposed,
                      &gemm->ldd))
        return "D is strided in both directions, which a BLAS cannot store";
    gemm->is_swapped = is_d_transposed;
    gemm->m = is_d_transposed ? n : m;
    gemm->n = is_d_transposed ? m : n;
    gemm->k = k;
    gemm->alpha = problem->alpha;
    gemm->type = is_d_transposed ? problem->b.type : problem->a.type;
    gemm->b_type = is_d_transposed ? problem->a.type : problem->b.type;
    gemm->d_type = problem->d.type;
    gemm->is_tf32 = problem->precision == TG_PRECISION_TF32;
    int is_a_read = 0, is_b_read = 0;
    if (is_d_transposed) {
        is_a_read =
            read_operand(&problem->b, problem->op_b, k, n, 1, &gemm->is_a_transposed, &gemm->lda);
        is_b_read =
            read_operand(&problem->a, problem->op_a, m, k, 1, &gemm->is_b_transposed, &gemm->ldb);
    } else {
        is_a_read =
            read_operand(&problem->a, problem->op_a, m, k, 0, &gemm->is_a_transposed, &gemm->lda);
        is_b_read =
            read_operand(&problem->b, problem->op_b, k, n, 0, &gemm->is_b_transposed, &gemm->ldb);
    }
    if (!is_a_read || !is_b_read)
        return "A or B is strided in both directions, which a BLAS cannot read";
    find_batch(problem, gemm);
    return find_epilogue(problem, gemm);
}

int cli_prepare_peer_call(const cli_peer *peer, const tg_problem *problem, peer_call *call,
                          char *reason, size_t reason_bytes)
{
    call->peer = peer;
    call->state = NULL;
    const char *obstacle =
        peer->lacks_products ? "it computes attention alone" : find_gemm(problem, &call->gemm);
    if (!obstacle)
        obstacle = peer->explain_unsupported(&call->gemm);
    if (!obstacle && peer->prepare && !peer->prepare(peer, &call->gemm, &call->state))
        obstacle = "the library refuses to prepare this shape";
    if (obstacle)
        snprintf(reason, reason_bytes, "%s", obstacle);
    return obstacle == NULL;
}

int cli_run_peer_call(const peer_call *call, const tg_buffers *buffers)
{
    tg_buffers operands = *buffers;
    if (call->gemm.is_swapped) {
        operands.a = buffers->b;
        operands.b = buffers->a;
        operands.a_scale = buffers->b_scale;
        operands.b_scale = buffers->a_scale;
    }
    return call->peer->run(call->peer, &call->gemm, call->state, &operands);
}

int cli_prepare_peer_attention(const cli_peer *peer, const tg_attention *attention, peer_call *call,
                               char *reason)
{
    const tg_attention *a = attention;
    *call = (peer_call){.peer = peer, .is_attention = 1};
    const char *obstacle = NULL;
    if (!peer->has_attention)
        obstacle = "it computes products alone";
    else if (a->batch_count == 0 || a->m == 0 || a->n == 0)
        obstacle = "peers are not measured on attention with a size of 0";
    else
        obstacle = peer->explain_attention(a);
    if (obstacle)
        snprintf(reason, PEER_TEXT_BYTES, "%s", obstacle);
    return !obstacle && peer->prepare_attention(peer, a, &call->state, reason);
}

int cli_run_peer_attention(const peer_call *call, void *stream)
{
    return call->peer->run_attention(call->state, stream);
}

void cli_release_peer_call(peer_call *call)
{
    if (call->state && call->is_attention)
        call->peer->release_attention(call->state);
    else if (call->state && call->peer->release)
        call->peer->release(call->state);
    call->state = NULL;
}
