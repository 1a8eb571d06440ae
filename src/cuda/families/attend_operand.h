/* Declares how TMA reads the operands of attention. The planner and the launcher use it. */
#ifndef TGI_CUDA_ATTEND_OPERAND_H
#define TGI_CUDA_ATTEND_OPERAND_H

#include "core/attention_problem.h"
#include "cuda/tensor.h"
#include "plan/attention_backend.h"

#define TGI_ATTEND_MAP_COUNT 4

/* The tensors of the tensor maps, in the order of tgi_attend_args. */
extern const tgi_attention_tensor_id tgi_attend_map_ids[TGI_ATTEND_MAP_COUNT];

/* Returns the rows of a TMA box of K and V, a multiple of eight that divides pages and steps, or 0
 * where there is none. */
int64_t tgi_attend_count_box_rows(const tg_attention *a, int64_t keys);

/* Returns 1 if tiles of K and V are dense (kernels/attend/attend_dense.cuh), provided that both are
 * aligned. */
int tgi_attend_is_dense(const tg_attention *a, const tgi_attention_choice *choice);

/* Describes K, V, Q or D as a tensor of elements, rows, heads, and batch entries or pages. Returns
 * 0 if TMA cannot read it, or store it. */
int tgi_attend_describe(const tg_attention *a, const tgi_attention_choice *choice,
                        tgi_attention_tensor_id id, tgi_tensor *tensor);

/* Returns 1 if every row of the tensor begins at a multiple of `bytes` and its elements are
 * contiguous. */
int tgi_attend_is_aligned(const tg_attention *a, tgi_attention_tensor_id id, int64_t bytes);

/* Returns 1 if TMA can read the tensor where it lies, or store it there. */
int tgi_attend_has_map(const tg_attention *a, const tgi_attention_choice *choice,
                       tgi_attention_tensor_id id);

/* Returns 1 if TMA can copy Q, K and V to the choice's row and D consists of whole units, provided
 * that all are aligned. */
int tgi_attend_has_units(const tg_attention *attention, const tgi_attention_choice *choice);

#endif
