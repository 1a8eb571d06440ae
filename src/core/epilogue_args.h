/*
 * Declares the epilogue as data, the arguments of the executors of core/epilogue.h. It compiles as
 * C11, C++17 and CUDA; host and device read the same struct.
 */
#ifndef TGI_EPILOGUE_ARGS_H
#define TGI_EPILOGUE_ARGS_H

#include "core/operand_list.h"

#define TGI_BIAS_MATRIX(name)
#define TGI_BIAS_BIAS(name) tg_bias name;
#define TGI_BIAS_SCALE(name)
#define TGI_SCALE_MATRIX(name)
#define TGI_SCALE_BIAS(name)
#define TGI_SCALE_SCALE(name) tg_scale name;

/* The members have the names of tg_problem's, and the order in which the epilogue uses them. */
typedef struct tgi_epilogue {
    /* alpha and beta, rounded to FP32 unless the inputs are FP64. */
#define TGI_FACTOR(name, value) double name;
#include "core/operands.def"
#undef TGI_FACTOR
    /* The kind of the bias. */
#define TGI_OPERAND(name, title, form, ...) TGI_BIAS_##form(name)
#include "core/operands.def"
#undef TGI_OPERAND
    tg_activation activation;
    /* The kinds of the scales. */
#define TGI_OPERAND(name, title, form, ...) TGI_SCALE_##form(name)
#include "core/operands.def"
#undef TGI_OPERAND
} tgi_epilogue;

#undef TGI_BIAS_MATRIX
#undef TGI_BIAS_BIAS
#undef TGI_BIAS_SCALE
#undef TGI_SCALE_MATRIX
#undef TGI_SCALE_BIAS
#undef TGI_SCALE_SCALE

/* Returns the operands whose memory is read or written, one bit 1 << tgi_operand_id each. */
static inline unsigned tgi_epilogue_find_used(const tgi_epilogue *p)
{
    unsigned used = 0;
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, key, executors, is_used)   \
    used |= (unsigned)(is_used) << TGI_OPERAND_##name;
#include "core/operands.def"
#undef TGI_OPERAND
    return used;
}

/* Returns 1 if D is alpha times the sums plus beta C, converted. */
static inline int tgi_epilogue_is_linear(const tgi_epilogue *epilogue)
{
    const unsigned others = TGI_OPERANDS_EPILOGUE & ~(1u << TGI_OPERAND_c);
    return epilogue->activation == TG_ACTIVATION_NONE &&
           (tgi_epilogue_find_used(epilogue) & others) == 0;
}

/* Returns 1 if D is the sum of products itself, converted. */
static inline int tgi_epilogue_is_sum_alone(const tgi_epilogue *epilogue)
{
    return epilogue->alpha == 1.0 && epilogue->activation == TG_ACTIVATION_NONE &&
           (tgi_epilogue_find_used(epilogue) & TGI_OPERANDS_EPILOGUE) == 0;
}

#endif
