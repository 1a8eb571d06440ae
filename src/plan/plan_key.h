/* The key of a plan in the cache, made from the caller's problem as it is: problems of equal keys
 * are valid or not alike, and share a plan. */
#ifndef TGI_PLAN_KEY_H
#define TGI_PLAN_KEY_H

#include "core/operand_list.h"

#define TGI_SHAPE_MATRIX(name) int64_t name[5];
#define TGI_SHAPE_BIAS(name)
#define TGI_SHAPE_SCALE(name)

/* The members of the caller's problem that tell plans apart. */
typedef struct tgi_plan_key_members {
    /* Rows, columns and strides of the matrices; 0 if the matrix is not read. */
#define TGI_OPERAND(name, title, form, ...) TGI_SHAPE_##form(name)
#include "core/operands.def"
#undef TGI_OPERAND
    int64_t batch_count;
    int32_t kind[TGI_OPERAND_COUNT]; /* the type of a matrix, the kind of a vector */
    uint32_t used;                   /* operands, by the factors before they are rounded */
    int32_t op_a, op_b, precision, activation, is_batch_invariant;
    uint32_t factor_classes; /* two bits for each factor: 0, -0, 1, or any other value, all of
                                which share a plan */
    uint32_t is_offset;      /* 1: A's pointer is not aligned, 2: B's is not */
} tgi_plan_key_members;

#define TGI_PLAN_KEY_WORDS ((int)((sizeof(tgi_plan_key_members) + 7) / 8))

/* Compared and hashed by its words: what is padding is 0. */
typedef union tgi_plan_key {
    tgi_plan_key_members of;
    uint64_t words[TGI_PLAN_KEY_WORDS];
} tgi_plan_key;

#undef TGI_SHAPE_MATRIX
#undef TGI_SHAPE_BIAS
#undef TGI_SHAPE_SCALE

/* alpha and beta, rounded to FP32 unless the inputs are FP64. */
typedef struct tgi_plan_factors {
#define TGI_FACTOR(name, value) double name;
#include "core/operands.def"
#undef TGI_FACTOR
} tgi_plan_factors;

/* Makes the key and the factors. Pointers to A and B that are no multiples of operand_alignment
 * bytes, a power of two, are not aligned. Returns 0 if a factor overflows: the problem is not valid
 * then. */
int tgi_plan_key_make(const tg_problem *problem, unsigned operand_alignment, tgi_plan_key *key,
                      tgi_plan_factors *factors);

/* Returns a hash of the key that is never 0. */
uint64_t tgi_plan_key_hash(const tgi_plan_key *key);

#endif
