/*
 * Decides by layouts and types how tiles of the families on wgmma take C and a bias, and how they
 * store D.
 */
#include "cuda/families/wgmma_terms.h"

#include "cuda/families/slices.h"
#include "cuda/families/wgmma_tiles.h"
#include "kernels/tma_map.h"

#define PITCH_MAX ((int64_t)1 << 38) /* elements of 4 bytes; keeps strides below 2^40 bytes */

int tgi_wgmma_is_d_transposed(const tgi_kernel *kernel, const tgi_problem *p)
{
    return p->d.row == 1 && p->m > 1 && !tgi_kernels_has_slices(kernel);
}

/* Returns 1 if a tensor map can describe C or D of this layout, whose lines of whole units are its
 * columns if is_transposed is 1, else its rows. */
static int has_unit_lines(const tgi_problem *p, const tgi_layout *layout, int is_transposed)
{
    const int64_t elem_bytes = tgi_type_bytes(p->d_type);
    const int64_t elems = is_transposed ? p->m : p->n, lines = is_transposed ? p->n : p->m;
    const int64_t pitch = is_transposed ? layout->col : layout->row;
    return (is_transposed ? layout->row : layout->col) == 1 &&
           elems * elem_bytes % TGI_TENSOR_UNIT_BYTES == 0 &&
           (lines == 1 || (pitch >= elems && pitch < PITCH_MAX &&
                           pitch * elem_bytes % TGI_TENSOR_UNIT_BYTES == 0)) &&
           (p->batch_count == 1 || (layout->batch > 0 && layout->batch < PITCH_MAX &&
                                    layout->batch * elem_bytes % TGI_TENSOR_UNIT_BYTES == 0));
}

int tgi_wgmma_is_d_tma_stored(const tgi_kernel *kernel, const tgi_problem *p)
{
    const int is_transposed = tgi_wgmma_is_d_transposed(kernel, p);
    return (tgi_type_bytes(p->d_type) > 1 || !is_transposed) &&
           has_unit_lines(p, &p->d, is_transposed);
}

/* Returns 1 if the kernel has code that adds terms of D's type before the epilogue. */
static int may_add_early(const tgi_kernel *kernel, const tgi_problem *p)
{
    return (kernel->family == TGI_FAMILY_cuda_wgmma || tgi_wgmma_is_fitted(kernel)) &&
           tgi_type_bytes(p->type) < 4 && tgi_type_bytes(p->d_type) == 2;
}

tgi_c_source tgi_wgmma_find_c_source(const tgi_kernel *kernel, const tgi_problem *p)
{
    if (!may_add_early(kernel, p) || p->epilogue.beta == 0.0)
        return TGI_C_LATE;
    if (has_unit_lines(p, &p->c, tgi_wgmma_is_c_transposed(p)))
        return TGI_C_STAGED;
    return p->c.col == 1 && kernel->tile_cols <= TGI_EARLY_C_COLS ? TGI_C_EARLY : TGI_C_LATE;
}

int tgi_wgmma_is_relu_stored(const tgi_kernel *kernel, const tgi_problem *p)
{
    const int is_lined = tgi_wgmma_is_d_transposed(kernel, p) || p->d.col == 1;
    return is_lined && tgi_type_bytes(p->d_type) == 2 &&
           p->epilogue.activation == TG_ACTIVATION_RELU && p->epilogue.d_scale == TG_SCALE_NONE;
}

/* Returns 1 if a term may be added to the sums of a part of k. */
static int are_sums_unscaled(const tgi_problem *p)
{
    const tgi_epilogue *e = &p->epilogue;
    return e->alpha == 1.0 && e->a_scale == TG_SCALE_NONE && e->b_scale == TG_SCALE_NONE;
}

int tgi_wgmma_is_c_summed(const tgi_kernel *kernel, const tgi_problem *p)
{
    return tgi_wgmma_find_c_source(kernel, p) != TGI_C_LATE && are_sums_unscaled(p) &&
           !p->is_batch_invariant;
}

/* Returns 1 if a bias that is a product gives the bits of the epilogue, which adds one that begins
 * between units of 16 bytes: short sums of FP8 are added to the others as the epilogue adds a bias,
 * but before other splits. */
static int is_bias_invariant(const tgi_problem *p, int is_split)
{
    return tgi_type_is_fp8(p->type) && !is_split;
}

int tgi_wgmma_is_bias_staged(const tgi_kernel *kernel, const tgi_problem *p, int is_split)
{
    const tgi_epilogue *e = &p->epilogue;
    return may_add_early(kernel, p) && e->bias != TG_BIAS_NONE && e->beta == 0.0 &&
           p->d_type == (tgi_type_is_fp8(p->type) ? TG_TYPE_BF16 : p->type) &&
           are_sums_unscaled(p) && (!p->is_batch_invariant || is_bias_invariant(p, is_split));
}
