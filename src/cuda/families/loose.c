#include "cuda/families/loose.h"

#include "kernels/copy/unaligned_lines.h"

int tgi_loose_is(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_loose;
}

void tgi_loose_describe(tgi_operand *o)
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
