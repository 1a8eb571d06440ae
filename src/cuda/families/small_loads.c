/* Tells how the staged kernels of family small load A and B. */

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "model/figures.h"

int tgi_small_is_wide(const tgi_kernel *kernel)
{
    return kernel->stage_count > 0 &&
           kernel->tile_rows * kernel->tile_cols ==
               kernel->thread_rows * kernel->thread_cols * kernel->thread_count;
}

/* Returns 1 if A or B is loaded by units of 16 bytes along k. */
static int has_k_units(const tgi_problem *p, int is_b)
{
    return is_b ? tgi_gemm_is_b_along_k(p) && tgi_gemm_has_b_vectors(p, 1)
                : tgi_gemm_is_a_along_k(p) && tgi_gemm_has_a_vectors(p, 1);
}

int tgi_small_loads_pairs(const tgi_machine *machine, const tgi_kernel *kernel,
                          const tgi_problem *p, int is_b)
{
    const tgi_layout *layout = is_b ? &p->b : &p->a;
    const int is_along = is_b ? tgi_gemm_is_b_along_k(p) : tgi_gemm_is_a_along_k(p);
    const int64_t lines = is_b ? p->n : p->m, line = is_b ? layout->col : layout->row;
    const int64_t step = is_b ? layout->row : layout->col;
    const int64_t near = is_along ? p->k : lines, far = is_along ? lines : p->k;
    return tgi_arch_has(machine->gpu.capability, TGI_FEATURE_TMA) && kernel->math == TGI_MATH_mma &&
           tgi_type_bytes(kernel->type) == 2 && !tgi_small_is_wide(kernel) &&
           !has_k_units(p, is_b) && (is_along ? step : line) == 1 && near % 2 == 0 &&
           (far == 1 || (is_along ? line : step) % 2 == 0) &&
           (p->batch_count == 1 || layout->batch % 2 == 0);
}

double tgi_small_count_by_elements(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *p)
{
    double count = 0.0;
    for (int is_b = 0; is_b < 2; is_b++)
        count += has_k_units(p, is_b) ? 0.0
                 : tgi_small_loads_pairs(machine, kernel, p, is_b)
                     ? tgi_figures_find(machine->gpu.capability)->mma_pair_share
                     : 1.0;
    return count;
}
