/*
 * Divides by a number that the host knows. A product and a shift replace an integer division, which
 * takes a kernel forty instructions that wait for one another.
 */
#ifndef TGI_DIVISOR_H
#define TGI_DIVISOR_H

#include "core/dtype.h" /* TGI_INLINE */

/* A divisor makes n / value == n * factor >> shift for 0 <= n < 2^31, with a product of 64 bits. */
typedef struct tgi_divisor {
    int32_t value;
    uint32_t factor; /* 2^shift / value, the next integer above */
    int32_t shift;   /* 31 + the bits of value - 1, so that n times the excess of `factor` is <
                    * 2^shift */
} tgi_divisor;

/* Returns the divisor of value >= 1. */
static inline tgi_divisor tgi_make_divisor(int32_t value)
{
    tgi_divisor divisor = {value, 0, 31};
    while ((int64_t)1 << (divisor.shift - 31) < value)
        divisor.shift++;
    divisor.factor = (uint32_t)(((uint64_t)1 << divisor.shift) / (uint64_t)value + 1);
    return divisor;
}

TGI_INLINE int32_t tgi_divide(int32_t n, tgi_divisor divisor)
{
    return (int32_t)((uint64_t)(uint32_t)n * divisor.factor >> divisor.shift);
}

#endif
