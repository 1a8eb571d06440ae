/*
 * Declares arithmetic of sizes that cannot overflow. Operands are 0 or more; parts and units are 1
 * or more. A result above INT64_MAX becomes INT64_MAX, which is above every limit that sizes are
 * compared with.
 *
 * VALIDATE bounds the sizes of a problem (core/validate.c), so that most products of them fit in
 * int64_t and need no check. These functions serve the others: sizes that are rounded up to tiles,
 * and factors that a caller's chip or limit gives.
 */
#ifndef TGI_CHECKED_H
#define TGI_CHECKED_H

#include <stdint.h>

static inline int64_t tgi_checked_add(int64_t x, int64_t y)
{
    int64_t sum;
    return __builtin_add_overflow(x, y, &sum) ? INT64_MAX : sum;
}

static inline int64_t tgi_checked_multiply(int64_t x, int64_t y)
{
    int64_t product;
    return __builtin_mul_overflow(x, y, &product) ? INT64_MAX : product;
}

/* Returns the number of parts of `part` elements that `count` elements fill. The last part may be
 * smaller. */
static inline int64_t tgi_divide_up(int64_t count, int64_t part)
{
    return count / part + (count % part != 0);
}

/* Returns the smallest multiple of `unit` that is not below `count`. */
static inline int64_t tgi_round_up(int64_t count, int64_t unit)
{
    return tgi_checked_multiply(tgi_divide_up(count, unit), unit);
}

#endif
