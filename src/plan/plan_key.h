/*
 * The key of a plan in the cache is the caller's problem as it was given, with a mask over what
 * tells plans apart. A lookup compares the caller's problem under the mask and translates nothing.
 * Problems that match a key are valid, and share its plan.
 */
#ifndef TGI_PLAN_KEY_H
#define TGI_PLAN_KEY_H

#include "core/operand_list.h"

#define TGI_PLAN_KEY_WORDS ((int)(sizeof(tg_problem) / sizeof(uint64_t)))

typedef union tgi_plan_words {
    _Alignas(16) tg_problem problem;
    uint64_t words[TGI_PLAN_KEY_WORDS];
} tgi_plan_words;

typedef struct tgi_plan_key {
    tgi_plan_words pattern; /* bits outside the mask are 0, except those of alpha and beta */
    tgi_plan_words mask;
    /* 1: alpha or beta is neither 0 nor 1. All such values share a plan, and their bits are outside
     * the mask. */
    int has_free_factors;
    int has_matrix_terms; /* 1: the epilogue reads a matrix, C */
} tgi_plan_key;

/* alpha and beta, rounded to FP32 unless the inputs are FP64. */
typedef struct tgi_plan_factors {
#define TGI_FACTOR(name, value) double name;
#include "core/operands.def"
#undef TGI_FACTOR
} tgi_plan_factors;

/* Makes the key of a valid problem. Pointers to A and B enter it modulo operand_alignment bytes, a
 * power of two. */
void tgi_plan_key_make(const tg_problem *problem, unsigned operand_alignment, tgi_plan_key *key);

/* Returns a hash of the bits that every mask covers. Problems that match one key have one hash; it
 * is never 0. */
uint64_t tgi_plan_key_hash(const tg_problem *problem, unsigned operand_alignment);

/* Rounds alpha and beta. Returns 0 if the factors of a problem that otherwise matches the key are
 * of another kind: 0, 1, or too large for FP32. */
int tgi_plan_key_round_factors(const tgi_plan_key *key, const tg_problem *problem,
                               tgi_plan_factors *factors);

/* Returns 1 if the problem has the key's own alpha and beta. */
static inline int tgi_plan_key_has_factors(const tgi_plan_key *key, const tg_problem *problem)
{
    int is_same = 1;
#define TGI_FACTOR(name, value) is_same &= problem->name == key->pattern.problem.name;
#include "core/operands.def"
#undef TGI_FACTOR
    return is_same;
}

/* A pair is two words of a problem. Every processor has registers for it. */
typedef uint64_t tgi_plan_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Returns 1 if the problem matches the key. The time goes to loads, so no mask is loaded that is
 * known, and no matrix that is not read is compared. */
static inline int tgi_plan_key_matches(const tgi_plan_key *key, const tg_problem *problem)
{
    const char *given = (const char *)problem, *pattern = (const char *)&key->pattern;
    const char *mask = (const char *)&key->mask;
    const tg_problem *of_key = &key->pattern.problem, *covered = &key->mask.problem;
    tgi_plan_factors factors;
    tgi_plan_pair differs = {0, 0};
    /* The pointers to A and B must be as aligned as the key's. */
    uintptr_t unaligned =
        (((uintptr_t)problem->a.data ^ (uintptr_t)of_key->a.data) & (uintptr_t)covered->a.data) |
        (((uintptr_t)problem->b.data ^ (uintptr_t)of_key->b.data) & (uintptr_t)covered->b.data);
#define PAIR(words, offset) (*(const tgi_plan_pair *)((words) + (offset)))
#define COMPARE(offset)                                                                            \
    differs |= (PAIR(given, offset) ^ PAIR(pattern, offset)) & PAIR(mask, offset);
#define COMPARE_WHOLE(offset) differs |= PAIR(given, offset) ^ PAIR(pattern, offset);
    /* A matrix is its pointer and three pairs. */
    _Static_assert(sizeof(tg_matrix) == offsetof(tg_matrix, type) + 3 * sizeof(tgi_plan_pair), "");
#define COMPARE_MATRIX(name)                                                                       \
    COMPARE(offsetof(tg_problem, name.type))                                                       \
    COMPARE_WHOLE(offsetof(tg_problem, name.col_count))                                            \
    COMPARE_WHOLE(offsetof(tg_problem, name.col_stride))
#define COMPARE_BIAS(name)
#define COMPARE_SCALE(name)
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_PRODUCT_##role(COMPARE_##form(name))
#include "core/operands.def"
#undef TGI_OPERAND
#undef COMPARE_MATRIX
#define COMPARE_MATRIX(name)                                                                       \
    COMPARE(offsetof(tg_problem, name.type))                                                       \
    COMPARE(offsetof(tg_problem, name.col_count))                                                  \
    COMPARE(offsetof(tg_problem, name.col_stride))
    if (key->has_matrix_terms) {
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_EPILOGUE_##role(COMPARE_##form(name))
#include "core/operands.def"
#undef TGI_OPERAND
    }
    /* These are the members behind the matrices. */
#pragma GCC unroll 16
    for (size_t offset = offsetof(tg_problem, op_a); offset < sizeof *problem; offset += 16)
        COMPARE(offset + 16 <= sizeof *problem ? offset : sizeof *problem - 16)
#undef PAIR
#undef COMPARE
#undef COMPARE_WHOLE
#undef COMPARE_MATRIX
#undef COMPARE_BIAS
#undef COMPARE_SCALE
    return (differs[0] | differs[1] | unaligned) == 0 &&
           (!key->has_free_factors || tgi_plan_key_has_factors(key, problem) ||
            tgi_plan_key_round_factors(key, problem, &factors));
}

#endif
