#include "plan/plan_key.h"

#include <math.h>
#include <string.h>

#define LANE_COUNT 4

static inline void set_shape(const tg_matrix *matrix, int64_t shape[5])
{
    shape[0] = matrix->row_count;
    shape[1] = matrix->col_count;
    shape[2] = matrix->row_stride;
    shape[3] = matrix->col_stride;
    shape[4] = matrix->batch_stride;
}

/* Rounds a factor. Returns 0 if it overflows. */
static inline int round_factor(double value, tg_type type, double *rounded)
{
    *rounded = type == TG_TYPE_FP64 ? value : (double)(float)value;
    return !isinf(*rounded) || isinf(value);
}

static inline uint32_t find_class(double factor)
{
    return factor == 0.0 ? (signbit(factor) ? 1 : 0) : factor == 1.0 ? 2 : 3;
}

int tgi_plan_key_make(const tg_problem *p, unsigned operand_alignment, tgi_plan_key *made,
                      tgi_plan_factors *factors)
{
    const uintptr_t mask = operand_alignment - 1;
    tgi_plan_key_members *key = &made->of;
    memset(made, 0, sizeof *made);
#define TGI_FACTOR(name, value)                                                                    \
    if (!round_factor(p->name, p->a.type, &factors->name))                                         \
        return 0;                                                                                  \
    key->factor_classes = 4 * key->factor_classes + find_class(factors->name);
#include "core/operands.def"
#undef TGI_FACTOR
#define SET_MATRIX(name, role, is_used)                                                            \
    if (TGI_ROLE_##role != TGI_ROLE_EPILOGUE || (is_used)) {                                       \
        set_shape(&p->name, key->name);                                                            \
        key->kind[TGI_OPERAND_##name] = (int32_t)p->name.type;                                     \
    }
#define SET_BIAS(name, role, is_used) key->kind[TGI_OPERAND_##name] = (int32_t)p->name;
#define SET_SCALE(name, role, is_used) SET_BIAS(name, role, is_used)
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, text, is_used)             \
    key->used |= (uint32_t)(is_used) << TGI_OPERAND_##name;                                        \
    SET_##form(name, role, is_used)
#include "core/operands.def"
#undef TGI_OPERAND
    key->batch_count = p->batch_count;
    key->op_a = (int32_t)p->op_a;
    key->op_b = (int32_t)p->op_b;
    key->precision = (int32_t)p->precision;
    key->activation = (int32_t)p->activation;
    key->is_batch_invariant = p->is_batch_invariant;
    key->is_offset =
        (((uintptr_t)p->a.data & mask) != 0) + 2 * (((uintptr_t)p->b.data & mask) != 0);
    return 1;
}

/* Four multiplicative hashes run side by side, so that no product waits for the one before. */
uint64_t tgi_plan_key_hash(const tgi_plan_key *key)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15), *words = key->words;
    uint64_t lanes[LANE_COUNT] = {1, 2, 3, 4};
#pragma GCC unroll 64
    for (int i = 0; i < TGI_PLAN_KEY_WORDS; i++)
        lanes[i % LANE_COUNT] = (lanes[i % LANE_COUNT] ^ words[i]) * factor;
    uint64_t hash = lanes[0];
#pragma GCC unroll 64
    for (int lane = 1; lane < LANE_COUNT; lane++)
        hash = ((hash ^ hash >> 32) + lanes[lane]) * factor;
    return (hash ^ hash >> 32) | 1;
}
