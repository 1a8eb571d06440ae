#include "model/figures.h"
#include "model/tile_model.h"

double tgi_model_repack_seconds(const tgi_gpu *gpu, double bytes)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    return bytes > 0.0 ? f->repack_s + 2.0 * bytes / (f->repack_share * gpu->memory_bytes_per_s)
                       : 0.0;
}

double tgi_model_slice_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int is_a_in_registers = kernel->family == TGI_FAMILY_cuda_bf16r;
    const double lines = (is_a_in_registers ? 0.0 : (double)p->m) + (double)p->n;
    const double elems = lines * (double)p->k * (double)p->batch_count;
    const int is_scaled = kernel->math == TGI_MATH_fp16x;
    const double slices = tgi_precision_table[p->precision].slice_count;
    /* Slicing moves as many bytes as a repack of half the sum of its input and output. A pass
     * before it finds the scales. */
    const double scale_s = is_scaled ? tgi_model_repack_seconds(gpu, elems * 4.0 / 2.0) : 0.0;
    return f->slice_start_s + scale_s +
           tgi_model_repack_seconds(gpu, elems * (4.0 + 2.0 * slices) / 2.0);
}
