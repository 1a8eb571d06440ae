/* Predicts family small without stages, whose threads read operands from global memory. */
#include <math.h>

#include "model/figures.h"
#include "model/tile_model.h"

double tgi_model_direct_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int is_across = work->access != TGI_ACCESS_VECTORS;
    const double element_s = tgi_epilogue_is_sum_alone(&p->epilogue) ? 0.0 : f->element_s[0];
    /* The loads of several steps wait together. A single step needs no loop. */
    const double waits = work->block_k > 1.0 ? ceil(work->block_k / work->copy_k) : 0.0;
    const double elem_bytes = (double)tgi_type_bytes(p->type);
    const double words = fmax(1.0, elem_bytes / 4.0);
    const double steps_s = elem_bytes < 4.0 ? f->direct_steps_s[1] : f->direct_steps_s[0] * words;
    const double latency_s = f->direct_block_s + work->tile_count * (f->direct_row_s + element_s) +
                             waits * steps_s +
                             (work->part_count - 1.0) * words * words * f->direct_lane_s[is_across];
    /* Further blocks of a multiprocessor wait at the same time, but share its instructions. */
    const double further = fmax(0.0, work->block_count / gpu->sm_count - 1.0);
    const double issue_s = further * words * (f->direct_issue_s + work->block_k * f->direct_step_s);
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    const double lanes = p->type == TG_TYPE_FP64 ? arch->fp64_lanes : arch->fp32_lanes;
    const double macs = (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count;
    const double multiply_s = macs / (lanes * gpu->sm_count * gpu->clock_hz);
    const double memory_s = tgi_model_tile_bytes(p) / (f->tiles_share * gpu->memory_bytes_per_s);
    return f->launch_s + fmax(fmax(latency_s + issue_s, multiply_s), memory_s);
}
