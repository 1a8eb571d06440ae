/* Divides counts of the passes over operands. */
#ifndef TGI_DIVIDE_COUNTS_CUH
#define TGI_DIVIDE_COUNTS_CUH

#include <stdint.h>

/* Returns count / by, of counts that are not negative. Few counts need 64 bits, whose division is
 * slow. */
static __device__ __forceinline__ int64_t tgi_divide_counts(int64_t count, int64_t by)
{
    return (count | by) >> 32 ? count / by
                              : static_cast<uint32_t>(count) / static_cast<uint32_t>(by);
}

#endif
