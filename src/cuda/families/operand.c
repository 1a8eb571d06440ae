#include "cuda/families/operand.h"

#include <stdlib.h>

#include "core/checked.h"
#include "kernels/copy/unaligned_lines.h"

#define REPACKED_PITCH_BYTES 128
#define WORKSPACE_UNIT_BYTES 256

int tgi_operand_is_batch_fit(const tgi_operand *o)
{
    const int64_t batch_bytes = o->batch_stride * o->elem_bytes;
    return o->batch_count == 1 || (batch_bytes > 0 && batch_bytes % TGI_TENSOR_UNIT_BYTES == 0 &&
                                   batch_bytes < TGI_TENSOR_STRIDE_MAX);
}

/* Returns 1 if TMA can read run_count runs of `count` elements, which begin `stride` elements
 * apart. */
static int is_direct(const tgi_operand *o, int64_t count, int64_t stride, int64_t run_count)
{
    const int64_t pitch_bytes = stride * o->elem_bytes;
    const int is_pitch_fit =
        run_count == 1 || (pitch_bytes % TGI_TENSOR_UNIT_BYTES == 0 && stride >= count &&
                           pitch_bytes < TGI_TENSOR_STRIDE_MAX);
    return is_pitch_fit && tgi_operand_is_batch_fit(o);
}

tgi_runs tgi_operand_runs(const tgi_operand *o)
{
    return o->is_across ? (tgi_runs){o->k, o->line_count, o->k_stride, o->line_stride}
                        : (tgi_runs){o->line_count, o->k, o->line_stride, o->k_stride};
}

void tgi_operand_describe(const tgi_problem *p, int is_b, int can_be_across, int is_offset,
                          tgi_operand *o)
{
    const tgi_layout *layout = is_b ? &p->b : &p->a;
    o->line_count = is_b ? p->n : p->m;
    o->k = o->copy_k = p->k;
    o->line_stride = is_b ? layout->col : layout->row;
    o->k_stride = is_b ? layout->row : layout->col;
    o->batch_stride = layout->batch;
    o->batch_count = layout->batch == 0 ? 1 : p->batch_count;
    o->elem_bytes = tgi_type_bytes(p->type);
    o->is_unaligned = 0;
    const int has_runs_along = o->k_stride == 1 || o->k == 1;
    const int has_runs_across = o->line_stride == 1 || o->line_count == 1;
    if (!is_offset && has_runs_along && is_direct(o, o->k, o->line_stride, o->line_count)) {
        o->is_across = o->is_repacked = 0;
    } else if (!is_offset && can_be_across && has_runs_across &&
               is_direct(o, o->line_count, o->k_stride, o->k)) {
        o->is_across = 1;
        o->is_repacked = 0;
    } else {
        o->is_repacked = 1;
        o->is_across = can_be_across && llabs(o->line_stride) < llabs(o->k_stride);
    }
    const tgi_runs runs = tgi_operand_runs(o);
    const int64_t run_bytes = runs.length * o->elem_bytes;
    /* A single run may have any pitch. */
    o->pitch_bytes = o->is_repacked    ? tgi_round_up(run_bytes, REPACKED_PITCH_BYTES)
                     : runs.count == 1 ? tgi_round_up(run_bytes, TGI_TENSOR_UNIT_BYTES)
                                       : runs.stride * o->elem_bytes;
    /* A single entry may have any stride that a tensor map takes. */
    o->batch_bytes = o->is_repacked        ? tgi_checked_multiply(o->pitch_bytes, runs.count)
                     : o->batch_count == 1 ? o->pitch_bytes
                                           : o->batch_stride * o->elem_bytes;
}

const char *tgi_operand_find_fault(const tgi_operand *o, int is_offset)
{
    const tgi_runs runs = tgi_operand_runs(o);
    const int64_t pitch_bytes = runs.stride * o->elem_bytes;
    const int64_t batch_bytes = o->batch_stride * o->elem_bytes;
    if (is_offset)
        return "it begins between multiples of 16 bytes";
    if (runs.length > 1 && runs.along != 1)
        return "neither its rows nor its columns are contiguous";
    if (runs.count > 1 && runs.stride < runs.length)
        return runs.stride < 0 ? "a stride is negative" : "its lines overlap";
    if (runs.count > 1 && pitch_bytes % TGI_TENSOR_UNIT_BYTES)
        return "its lines do not all start at multiples of 16 bytes";
    if (runs.count > 1 && pitch_bytes >= TGI_TENSOR_STRIDE_MAX)
        return "its lines lie 2^40 bytes apart, or more";
    if (batch_bytes < 0)
        return "its batch stride is negative";
    return batch_bytes % TGI_TENSOR_UNIT_BYTES
               ? "its batch entries do not all start at multiples of 16 bytes"
               : "its batch entries lie 2^40 bytes apart, or more";
}

void tgi_operand_pad(tgi_operand *o, int64_t unit)
{
    /* The pitch has room for lines along k. */
    o->copy_k = tgi_round_up(o->k, unit);
    if (o->is_across)
        o->batch_bytes = tgi_checked_multiply(o->pitch_bytes, o->copy_k);
}

void tgi_operand_describe_unaligned(tgi_operand *o)
{
    const tgi_runs runs = tgi_operand_runs(o);
    const int64_t batch_bytes = o->batch_stride * o->elem_bytes;
    o->is_unaligned = o->is_repacked && runs.along == 1 && runs.stride >= runs.length &&
                      runs.count >= TGI_UNALIGNED_KINDS && tgi_operand_is_batch_fit(o) &&
                      runs.stride < TGI_TENSOR_STRIDE_MAX / TGI_UNALIGNED_KINDS / o->elem_bytes;
    if (!o->is_unaligned)
        return;
    o->is_repacked = 0;
    o->pitch_bytes = runs.stride * o->elem_bytes;
    o->batch_bytes = o->batch_count == 1 ? o->pitch_bytes * TGI_UNALIGNED_KINDS : batch_bytes;
}

int64_t tgi_operand_workspace_bytes(const tgi_operand *o)
{
    return o->is_repacked ? tgi_round_up(tgi_checked_multiply(o->batch_bytes, o->batch_count),
                                         WORKSPACE_UNIT_BYTES)
                          : 0;
}

double tgi_operand_count_repacked(const tgi_operand *o)
{
    return o->is_repacked && o->elem_bytes == 2
               ? (double)tgi_operand_runs(o).count * (double)o->batch_count
               : 0.0;
}
