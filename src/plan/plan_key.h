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
    tgi_plan_words pattern; /* bits outside the mask are 0, but for alpha and beta */
    tgi_plan_words mask;
    /* 1: alpha or beta is neither 0 nor 1. All such values share a plan, and their bits are outside
     * the mask. */
    int has_free_factors;
} tgi_plan_key;

/* alpha and beta, rounded to FP32 unless the inputs are FP64. */
typedef struct tgi_plan_factors {
#define TGI_FACTOR(name, value) double name;
#include "core/operands.def"
#undef TGI_FACTOR
} tgi_plan_factors;

/* Makes the key of a valid problem. Pointers to A and B enter it by their place within
 * operand_alignment bytes, a power of two. */
void tgi_plan_key_make(const tg_problem *problem, unsigned operand_alignment, tgi_plan_key *key);

/* Returns a hash of what every mask covers. Problems that match one key have one hash; it is never
 * 0. */
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

/* Returns 1 if the problem matches the key. */
static inline int tgi_plan_key_matches(const tgi_plan_key *key, const tg_problem *problem)
{
    /* Every processor has registers for two words. The caller's problem may lie between them. */
    typedef uint64_t pair __attribute__((vector_size(16), may_alias));
    typedef uint64_t unaligned_pair __attribute__((vector_size(16), aligned(8), may_alias));
    const unaligned_pair *x = (const unaligned_pair *)problem;
    const pair *y = (const pair *)&key->pattern, *mask = (const pair *)&key->mask;
    const uint64_t last = ((const tgi_plan_words *)problem)->words[TGI_PLAN_KEY_WORDS - 1];
    tgi_plan_factors factors;
    pair differs = {(last ^ key->pattern.words[TGI_PLAN_KEY_WORDS - 1]) &
                        key->mask.words[TGI_PLAN_KEY_WORDS - 1],
                    0};
#pragma GCC unroll 32
    for (int i = 0; i < TGI_PLAN_KEY_WORDS / 2; i++)
        differs |= (x[i] ^ y[i]) & mask[i];
    return (differs[0] | differs[1]) == 0 &&
           (!key->has_free_factors || tgi_plan_key_has_factors(key, problem) ||
            tgi_plan_key_round_factors(key, problem, &factors));
}

#endif
