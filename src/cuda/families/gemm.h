/* What the launches of the production families share: arguments from a call, parts of k. */
#ifndef TGI_CUDA_GEMM_H
#define TGI_CUDA_GEMM_H

#include "cuda/cuda.h"
#include "kernels/gemm_args.h"
#include "model/tile_model.h"

/* Partial sums of a plan, and A of rank and dot, repacked: more than that is not planned. A context
 * opens with as much: its first plans allocate nothing but for larger copies of operands. */
#define TGI_WORKSPACE_BYTES_MAX ((int64_t)32 << 20)

static inline int64_t tgi_divide_up(int64_t count, int64_t part)
{
    return (count + part - 1) / part;
}

/* The arguments of a call: its problem and pointers, how each operand may be accessed, k whole. */
void tgi_gemm_set_args(const tgi_call *call, tgi_gemm_args *args);

/* The same of the transposed problem. */
void tgi_gemm_set_transposed_args(const tgi_call *call, tgi_gemm_args *args);

/* The arguments with A elsewhere, at `data` in this layout, before its parts of k are set. */
void tgi_gemm_replace_a(tgi_gemm_args *args, const void *data, tgi_layout layout);

/* How A's and B's strides, or B's alone, allow them to be read, by 16 bytes or by elements.
 * Pointers are another matter. */
tgi_access tgi_gemm_find_access(const tgi_problem *problem);
tgi_access tgi_gemm_find_b_access(const tgi_problem *problem);

/* Bytes of k_part_count parts of D, 0 for one. */
int64_t tgi_gemm_part_bytes(const tgi_problem *problem, int64_t k_part_count);

typedef double tgi_gemm_predict(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                const tgi_problem *problem, const tgi_tile_work *work);

/* Fills the proposal where k in some `wanted` parts of whole stages is predicted to be faster than
 * what was tried before. `work` is that of whole k. 0 where the parts would not fit. */
int tgi_gemm_try_parts(const tgi_machine *machine, const tgi_problem *problem,
                       const tgi_tile_work *work, tgi_gemm_predict *predict, int64_t wanted,
                       tgi_proposal *proposal);

/* Tries 1, 2, 4 ... parts; 1 alone where the order of sums is to depend on k alone. */
void tgi_gemm_cut_k(const tgi_machine *machine, const tgi_problem *problem,
                    const tgi_tile_work *work, tgi_gemm_predict *predict, tgi_proposal *proposal);

/* Sets the parts that were planned. */
void tgi_gemm_set_parts(const tgi_call *call, tgi_gemm_args *args);

/* Notes the shared memory of a block, and refuses, with the reason, a kernel whose block needs more
 * than the chip has. */
int tgi_gemm_fits(const tgi_machine *machine, int64_t shared_bytes, tgi_proposal *proposal);

/* Blocks that share a multiprocessor: at most by_registers, one at least. */
int tgi_gemm_count_resident(const tgi_machine *machine, int by_registers, int64_t shared_bytes);

/* Adds the parts that a kernel has left in the workspace; nothing where k was not cut. */
tg_status tgi_gemm_add_parts(const tgi_cuda_queue *queue, tgi_gemm_args *args);

#endif
