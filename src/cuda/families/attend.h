/* Attention on a GPU has a planning half (attend.c, attend_short.c, attend_real.c, attend_cost.c,
 * attend_order.c) and a launching half (attend_launch.c). Both use attend_operand.h. */
#ifndef TGI_CUDA_ATTEND_H
#define TGI_CUDA_ATTEND_H

#include "kernels/attend/attend_args.h"
#include "plan/attention_backend.h"

#define TGI_ATTEND_GROUP_QUERIES 64 /* queries of a warpgroup; a tile has whole warpgroups */

/* Chooses the row, and how queries and keys are divided among blocks. Errors: UNSUPPORTED. */
tg_status tgi_cuda_choose_attention(const tgi_machine *machine, const tg_attention *attention,
                                    tgi_attention_choice *choice);

/* A visitor of choices, with the state that it was given. */
typedef void tgi_attention_visit(const tgi_attention_choice *choice, void *state);

/* Shows all choices that a chip with predicted times has for the attention, incomplete. */
void tgi_cuda_visit_choices(const tgi_machine *machine, const tg_attention *attention,
                            tgi_attention_visit *visit, void *state);

/* Returns 1 if rows of FP32 and FP64 serve the attention. */
int tgi_cuda_is_real(const tg_attention *attention);

/* Shows the choices of rows of FP32 and FP64, on any chip, as tgi_cuda_visit_choices does. */
void tgi_cuda_visit_real(const tgi_machine *machine, const tg_attention *attention,
                         tgi_attention_visit *visit, void *state);

/* Sets the threads and the bytes of shared memory of `blocks` blocks, for each split, of a row of
 * FP32 or FP64. K and V have a place each where that leaves room for two blocks. */
void tgi_cuda_set_real_block(const tgi_machine *machine, int64_t blocks,
                             tgi_attention_choice *choice);

/* Returns 1 if the heads fit in a narrower row, which plans then take: in FP32 always, in FP64 if
 * multiprocessors have several blocks, of which they hold fewer of a wide row. Predictions do not
 * tell these rows apart. The narrower row was slower by over 2 % in three of 199 measured problems
 * of FP32, by at most 5 %. */
int tgi_cuda_has_narrower(const tgi_machine *machine, const tg_attention *attention,
                          const tgi_attention_choice *choice);

/* Returns the predicted time in ns of `blocks` blocks of a row of FP32 or FP64, without the merge.
 * The longest tile has `steps` steps. */
double tgi_cuda_predict_real(const tgi_machine *machine, const tg_attention *attention,
                             const tgi_attention_choice *choice, int64_t blocks, double steps,
                             double mean_steps);

/* Returns the same of a row of few queries: the longest of the waits of its steps, of what all
 * warps of a multiprocessor issue, and of its reads, and a part of the others. */
double tgi_cuda_predict_few_queries(const tgi_machine *machine, const tg_attention *attention,
                                    const tgi_attention_choice *choice, int64_t blocks,
                                    double steps);

/* Divides the keys among the choice's splits, blocks of a cluster and warps. */
void tgi_cuda_divide_keys(const tgi_machine *machine, const tg_attention *attention, int64_t blocks,
                          tgi_attention_choice *choice);

/* Adds the kernel's name and the order of tiles to a choice, and fits a block of FP32 or FP64 to
 * the number of blocks: the choice may have been made for one batch entry. */
void tgi_cuda_complete_choice(const tgi_machine *machine, const tg_attention *attention,
                              tgi_attention_choice *choice);

/* Shows the choices of a row of short sequences, as tgi_cuda_visit_choices does. */
void tgi_cuda_visit_short(const tgi_machine *machine, const tg_attention *attention,
                          const tgi_attention_row *row, tgi_attention_visit *visit, void *state);

/* Chooses a row of many queries, without workspace, for an attention that a row of short sequences
 * serves if its operands are aligned. */
void tgi_cuda_choose_unaligned(const tgi_machine *machine, const tg_attention *attention,
                               tgi_attention_choice *choice);

/* Returns the predicted time of the choice in ns. */
double tgi_cuda_predict_attention(const tgi_machine *machine, const tg_attention *attention,
                                  const tgi_attention_choice *choice);

/* Returns how many blocks of the choice a multiprocessor holds at the same time, for rows of which
 * it may hold several. */
int64_t tgi_cuda_count_held(const tgi_machine *machine, const tgi_attention_choice *choice);

/* Returns the number of head groups whose tiles blocks process together, before those of the next
 * ones. Their K and V fit in half of the L2 cache, or their number balances the blocks' loads. */
int64_t tgi_cuda_count_section_groups(const tgi_machine *machine, const tg_attention *attention,
                                      const tgi_attention_choice *choice);

/* Returns the argument of the kernels of a call. */
tgi_attend_args tgi_cuda_make_attend_args(const tgi_attention_call *call);

#endif
