#include <math.h>

#include "model/figures.h"
#include "model/tile_model.h"

double tgi_model_repack_seconds(const tgi_gpu *gpu, double bytes, double lines)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double bytes_s = 2.0 * bytes / (f->repack_share * gpu->memory_bytes_per_s);
    return bytes > 0.0 ? f->repack_s + bytes_s + lines * f->repack_line_s : 0.0;
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
    const double scale_s = is_scaled ? tgi_model_repack_seconds(gpu, elems * 4.0 / 2.0, 0.0) : 0.0;
    return f->slice_start_s + scale_s +
           tgi_model_repack_seconds(gpu, elems * (4.0 + 2.0 * slices) / 2.0, 0.0);
}

double tgi_model_bf16d_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                               const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double per_sm = ceil(work->block_count / gpu->sm_count);
    const double resident = fmin(per_sm, work->blocks_per_sm);
    const double lines =
        kernel->tile_rows + kernel->tile_cols + (f->bf16d_across_ratio - 1.0) * work->across_lines;
    /* The warps of a multiprocessor share its schedulers and its loads. */
    const double cycles = resident * kernel->thread_count / 32.0 *
                          (f->bf16d_line_cycles * lines +
                           f->bf16d_sum_cycles * kernel->tile_rows * (double)kernel->tile_cols);
    const double chunk_s = ceil(work->block_k / kernel->tile_depth) * cycles / gpu->clock_hz;
    const double rounds = fmax(1.0, per_sm / resident);
    const int terms = tgi_model_find_terms(&p->epilogue);
    const double seconds = rounds * (chunk_s + f->bf16d_tile_s + terms * f->bf16d_terms_s) +
                           (rounds - 1.0) * f->bf16d_round_s;
    /* Each tile reads its lines again from L2. */
    const double again = (ceil((double)p->n / kernel->tile_cols) - 1.0) * (double)p->m +
                         (ceil((double)p->m / kernel->tile_rows) - 1.0) * (double)p->n;
    const double bytes = tgi_model_tile_bytes(p);
    const double all_bytes = bytes + again * (double)p->k * 4.0 * (double)p->batch_count;
    const double memory_s =
        fmax(bytes / f->bf16d_memory_share, all_bytes / f->cache_ratio) / gpu->memory_bytes_per_s;
    const double cluster_s =
        work->cluster_blocks > 1.0 ? f->bf16d_cluster_block_s * work->cluster_blocks : 0.0;
    return f->launch_s + f->bf16d_s + cluster_s + fmax(seconds, memory_s);
}
