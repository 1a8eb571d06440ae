#include "plan/plan_key.h"

#include <math.h>
#include <string.h>

#include "core/factor.h"

#define LANE_COUNT 4

/* tgi_plan_key_matches compares the matrices before op_a, and all members from op_a on. */
_Static_assert((offsetof(tg_problem, op_a) - offsetof(tg_problem, a)) % sizeof(tg_matrix) == 0,
               "matrices alone lie between struct_bytes and op_a");

/* Rounds a factor. Returns 0 if it overflows. */
static int round_factor(double value, tg_type type, double *rounded)
{
    *rounded = tgi_factor_round(value, type);
    return !isinf(*rounded) || isinf(value);
}

static int is_free(double rounded)
{
    return rounded != 0.0 && rounded != 1.0;
}

void tgi_plan_key_make(const tg_problem *p, unsigned operand_alignment, tgi_plan_key *key)
{
    const uintptr_t place = operand_alignment - 1;
    tg_problem *mask = &key->mask.problem;
    memset(key, 0, sizeof *key);
#define COVER(member) memset(&mask->member, 0xff, sizeof mask->member)
#define COVER_MATRIX(name, role, is_used)                                                          \
    if (TGI_ROLE_##role != TGI_ROLE_EPILOGUE || (is_used)) {                                       \
        COVER(name.type);                                                                          \
        COVER(name.row_count);                                                                     \
        COVER(name.col_count);                                                                     \
        COVER(name.row_stride);                                                                    \
        COVER(name.col_stride);                                                                    \
        COVER(name.batch_stride);                                                                  \
    }
#define COVER_BIAS(name, role, is_used) COVER(name);
#define COVER_SCALE(name, role, is_used) COVER(name);
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, text, executors, is_used)  \
    COVER_##form(name, role, is_used)
#include "core/operands.def"
#undef TGI_OPERAND
    COVER(op_a);
    COVER(op_b);
    COVER(batch_count);
    COVER(precision);
    COVER(is_batch_invariant);
    COVER(activation);
#define TGI_OPERAND(name, ...)                                                                     \
    key->has_matrix_terms |= tgi_operands_is_matrix_used(p, TGI_OPERAND_##name);
#include "core/operands.def"
#undef TGI_OPERAND
    mask->a.data = (void *)place;
    mask->b.data = (void *)place;
#define TGI_FACTOR(name, value)                                                                    \
    double name;                                                                                   \
    if (round_factor(p->name, p->a.type, &name) && is_free(name))                                  \
        key->has_free_factors = 1;                                                                 \
    else                                                                                           \
        COVER(name);
#include "core/operands.def"
#undef TGI_FACTOR
    memcpy(&key->pattern, p, sizeof *p);
    for (int i = 0; i < TGI_PLAN_KEY_WORDS; i++)
        key->pattern.words[i] &= key->mask.words[i];
#define TGI_FACTOR(name, value) key->pattern.problem.name = p->name;
#include "core/operands.def"
#undef TGI_FACTOR
}

int tgi_plan_key_round_factors(const tgi_plan_key *key, const tg_problem *p,
                               tgi_plan_factors *factors)
{
    const uint64_t zero = 0;
#define TGI_FACTOR(name, value)                                                                    \
    if (!round_factor(p->name, p->a.type, &factors->name) ||                                       \
        (memcmp(&key->mask.problem.name, &zero, sizeof zero) == 0 && !is_free(factors->name)))     \
        return 0;
#include "core/operands.def"
#undef TGI_FACTOR
    return 1;
}

/* Four multiplicative hashes run side by side, so that no multiplication waits for the previous
 * one. */
uint64_t tgi_plan_key_hash(const tg_problem *p, unsigned operand_alignment)
{
    const uintptr_t place = operand_alignment - 1;
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
#define VALUES_OF_MATRIX(name)                                                                     \
    (uint64_t) p->name.type, (uint64_t)p->name.row_count, (uint64_t)p->name.col_count,             \
        (uint64_t)p->name.row_stride, (uint64_t)p->name.col_stride,                                \
        (uint64_t)p->name.batch_stride,
#define KIND_OF_MATRIX(name)
#define KIND_OF_BIAS(name) (uint64_t) p->name,
#define KIND_OF_SCALE(name) (uint64_t) p->name,
    const uint64_t values[] = {
#define TGI_OPERAND(name, title, form, role, ...)                                                  \
    TGI_OF_PRODUCT_##role(VALUES_OF_MATRIX(name)) KIND_OF_##form(name)
#include "core/operands.def"
#undef TGI_OPERAND
#define TGI_FACTOR(name, value) (uint64_t)((p->name == 0.0) + 2 * (p->name == 1.0)),
#include "core/operands.def"
#undef TGI_FACTOR
        (uint64_t)p->op_a,
        (uint64_t)p->op_b,
        (uint64_t)p->batch_count,
        (uint64_t)p->precision,
        (uint64_t)p->is_batch_invariant,
        (uint64_t)p->activation,
        (uintptr_t)p->a.data & place,
        (uintptr_t)p->b.data & place};
    uint64_t lanes[LANE_COUNT] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        lanes[i % LANE_COUNT] = (lanes[i % LANE_COUNT] ^ values[i]) * factor;
    uint64_t hash = lanes[0];
    for (int lane = 1; lane < LANE_COUNT; lane++)
        hash = ((hash ^ hash >> 32) + lanes[lane]) * factor;
    return (hash ^ hash >> 32) | 1;
}
