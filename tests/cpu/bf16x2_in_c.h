/* Sums stored as BF16 by the integer steps of bf16_store_some, for bodies of pairs and of AMX on
 * machines without AVX512_BF16. They keep subnormal sums. Include it after a simd header. */
#ifndef BF16X2_IN_C_H
#define BF16X2_IN_C_H

#include <math.h>
#include <stdint.h>

INLINE void bf16x2_round_some(uint16_t *p, fp32_vec x, int n)
{
    bf16_store_some(p, x, n);
}
INLINE void bf16x2_round(uint16_t *p, fp32_vec x, int n)
{
    bf16x2_round_some(p, x, n);
}
/* Returns a bit for each lane whose number is subnormal. */
INLINE int bf16x2_find_subnormal(fp32_vec x)
{
    int lanes = 0;
    for (int i = 0; i < (int)(sizeof x / sizeof(float)); i++)
        lanes |= (fpclassify(x[i]) == FP_SUBNORMAL) << i;
    return lanes;
}
INLINE void bf16x2_round_two(uint16_t *p, fp32_vec x, fp32_vec y)
{
    const int count = (int)(sizeof x / sizeof(float));
    bf16_store_some(p, x, count);
    bf16_store_some(p + count, y, count);
}

#endif
