/* Integer division rounded up. */
#ifndef TGI_ROUND_H
#define TGI_ROUND_H

#include <stdint.h>

/* Returns how many parts of `part` elements `count` elements fill, the last one in part. */
static inline int64_t tgi_divide_up(int64_t count, int64_t part)
{
    return (count + part - 1) / part;
}

/* Returns the smallest multiple of `unit` that is not below `count`. */
static inline int64_t tgi_round_up(int64_t count, int64_t unit)
{
    return tgi_divide_up(count, unit) * unit;
}

#endif
