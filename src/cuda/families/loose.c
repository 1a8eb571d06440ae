#include "cuda/families/loose.h"

#include "cuda/families/gemm.h"
#include "kernels/tile_shape.h"

#define UNIT_BYTES 16 /* that the copy engine's addresses are multiples of */

int tgi_loose_is(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_loose;
}

void tgi_loose_describe(tgi_operand *o)
{
    const tgi_runs runs = tgi_operand_runs(o);
    const int64_t batch_bytes = o->batch_stride * o->elem_bytes;
    o->is_loose = o->is_repacked && runs.along == 1 && runs.stride >= runs.length &&
                  runs.count >= TGI_LOOSE_KINDS && tgi_operand_is_batch_fit(o) &&
                  runs.stride < TGI_TENSOR_STRIDE_MAX / TGI_LOOSE_KINDS / o->elem_bytes;
    if (!o->is_loose)
        return;
    o->is_repacked = 0;
    o->pitch_bytes = runs.stride * o->elem_bytes;
    o->batch_bytes = o->batch_count == 1 ? o->pitch_bytes * TGI_LOOSE_KINDS : batch_bytes;
}

tg_status tgi_loose_map(const tgi_cuda_queue *queue, const tgi_operand *o, const void *data,
                        tgi_wgmma_loose *loose)
{
    const tgi_runs runs = tgi_operand_runs(o);
    const int box_elems = (int)(TGI_LOOSE_LINE_BYTES / o->elem_bytes);
    tg_status status = TG_STATUS_OK;
    loose->shifts = 0;
    for (int i = 0; !status && i < TGI_LOOSE_KINDS; i++) {
        const char *line = (const char *)data + i * o->pitch_bytes;
        const int64_t shift_bytes = (int64_t)((uintptr_t)line % UNIT_BYTES);
        const tgi_tensor tensor = {
            .data = line - shift_bytes,
            .elem_bytes = o->elem_bytes,
            .count = {runs.length + tgi_divide_up(shift_bytes, o->elem_bytes),
                      tgi_divide_up(runs.count - i, TGI_LOOSE_KINDS), o->batch_count},
            .stride_bytes = {o->pitch_bytes * TGI_LOOSE_KINDS, o->batch_bytes}};
        loose->shifts |= (uint32_t)shift_bytes << (4 * i);
        status = tgi_tensor_encode(queue, &tensor, box_elems, TGI_LOOSE_LINES / TGI_LOOSE_KINDS,
                                   &loose->map[i]);
    }
    return status;
}
