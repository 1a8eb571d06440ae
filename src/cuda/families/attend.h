/* Attention on a GPU: the planning half (attend.c) and the launching half
 * (attend_launch.c). */
#ifndef TGI_CUDA_ATTEND_H
#define TGI_CUDA_ATTEND_H

#include "kernels/attend/attend_args.h"
#include "plan/attention_backend.h"

/* Chooses the row, and how queries and keys go to blocks. Errors: UNSUPPORTED. */
tg_status tgi_cuda_choose_attention(const tgi_machine *machine, const tg_attention *attention,
                                    tgi_attention_choice *choice);

/* Returns the argument of the kernels of a call. */
tgi_attend_args tgi_cuda_make_attend_args(const tgi_attention_call *call);

#endif
