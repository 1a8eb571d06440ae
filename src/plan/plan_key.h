/* The key of a plan in the cache, made from the caller's problem before VALIDATE. Problems of equal
 * keys share a plan, or none of them is valid. */
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
    uint32_t used;                   /* set of used operands, by the factors before rounding */
    int32_t op_a, op_b, precision, activation, is_batch_invariant;
    uint32_t factor_classes; /* two bits for each factor: 0, -0, 1, or any other value, all of
                                which share a plan */
    uint32_t is_offset;      /* 1: A's pointer is not aligned, 2: B's is not */
} tgi_plan_key_members;

#define TGI_PLAN_KEY_WORDS ((int)((sizeof(tgi_plan_key_members) + 7) / 8))

/* Keys are compared and hashed by words, so that padding is 0. */
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

/* Makes the key and the factors. A and B are aligned if their pointers are multiples of
 * operand_alignment bytes, a power of two. Returns 0 if a factor overflows, so that the problem is
 * not valid. */
int tgi_plan_key_make(const tg_problem *problem, unsigned operand_alignment, tgi_plan_key *key,
                      tgi_plan_factors *factors);

/* Returns a hash of the key that is never 0. */
uint64_t tgi_plan_key_hash(const tgi_plan_key *key);

#endif
